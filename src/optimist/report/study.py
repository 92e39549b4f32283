"""Study: the runs of a report, grouped into families, environments and columns that hold only scores of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optimist.report.charts import Key, method_keys
from optimist.report.identify import ATARI, FAMILIES
from optimist.report.runs import Curve, Problem, Run
from optimist.report.scores import Score, Statistic, Unlike, columns

LONG_STEPS = 30_000_000
"""Atari runs with more steps than this stand in the table of 50M steps, all others in that of 10M."""
POINTS = 160  # of a drawn curve
UNFINISHED = " (unfinished)"
"""Behind the name of a method whose runs have not come to their end."""


@dataclass
class Study:
    """What is compared, under which statistic, and what is missing."""

    runs: Sequence[Run]
    problems: list[Problem]
    statistic: Statistic = "last-100"
    unlike: Unlike = "separate"
    _labels: dict[str, dict[int, str]] = field(default_factory=dict)
    _keys: dict[str, dict[str, Key]] = field(default_factory=dict)

    def families(self) -> list[str]:
        """Those that have runs."""
        return [family for family in FAMILIES if any(run.identity.family == family for run in self.runs)]

    def of(self, family: str) -> list[Run]:
        """All runs of a family."""
        return [run for run in self.runs if run.identity.family == family]

    def columns(
        self, family: str, *, long: bool | None = None, statistic: Statistic | None = None
    ) -> dict[str, list[Run]]:
        """Column → its finished runs with the statistic; for Atari those of one of the two tables, by `long`."""
        chosen = statistic or self.statistic
        runs = [
            run
            for run in self.of(family)
            if chosen in run.scores and (long is None or (run.budget > LONG_STEPS) == long)
        ]
        owner = {id(run.scores[chosen]): run for run in runs}
        scores: list[Score] = [run.scores[chosen] for run in sorted(runs, key=_order)]
        found = columns(scores, unlike=self.unlike, across=long is not None)
        return {name: [owner[id(score)] for score in column] for name, column in found.items()}

    def tables(self, family: str) -> tuple[bool | None, ...]:
        """The values of `long` that a family has tables for."""
        return (False, True) if family == ATARI else (None,)

    def check(self) -> None:
        """Raises where a column would mix scores of different kinds and may not; notes runs that lack the statistic."""
        for family in self.families():
            for long in self.tables(family):
                self.columns(family, long=long)
        for run in self.runs:
            if run.finished and run.scores and self.statistic not in run.scores:
                have = ", ".join(run.scores)
                what = f"has no statistic {self.statistic} (it has {have}); in no table"
                self.problems.append(Problem(run.name, what))

    def labels(self, family: str) -> dict[int, str]:
        """id(run) → the column it stands in; a method of both Atari tables has two."""
        if family not in self._labels:
            found: dict[int, str] = {}
            for long in self.tables(family):
                for name, runs in self.columns(family, long=long).items():
                    taken = f"{name}, 50M" if name in found.values() else name
                    found |= {id(run): taken for run in runs}
            self._labels[family] = found
        return self._labels[family]

    def drawn(self, family: str, env: str, metric: str) -> dict[str, list[Run]]:
        """Column → runs of an environment that logged a metric; unfinished ones only where there are no others."""
        labels = self.labels(family)
        here = sorted((run for run in self.of(family) if run.env == env and metric in run.curves), key=_order)
        found: dict[str, list[Run]] = {name: [] for name in labels.values()}
        for run in here:
            if run.finished:
                found.setdefault(labels.get(id(run), run.method), []).append(run)
            elif not any(other.finished and other.method == run.method for other in here):
                found.setdefault(run.method + UNFINISHED, []).append(run)
        return {name: runs for name, runs in found.items() if runs}

    def keys(self, family: str) -> dict[str, Key]:
        """A colour for every method of a family, the same for its unfinished runs."""
        if family not in self._keys:
            self._keys[family] = self._make_keys(family)
        return self._keys[family]

    def _make_keys(self, family: str) -> dict[str, Key]:
        names: dict[str, None] = {}
        for env in self.envs(family):
            for metric in ("rollout/raw_return", "policy/entropy"):
                names |= dict.fromkeys(self.drawn(family, env, metric))
        names |= dict.fromkeys(self.labels(family).values())
        methods = dict.fromkeys(name.removesuffix(UNFINISHED) for name in names)
        keys = method_keys(sorted(methods, key=lambda name: (name.count("·"), _rank(name.partition(" · ")[0]))))
        both = ((name, key) for method, key in keys.items() for name in (method, method + UNFINISHED))
        return {name: key._replace(label=name) for name, key in both if name in names}

    def envs(self, family: str) -> list[str]:
        """The environments of a family, games by their name."""
        return sorted({run.env for run in self.of(family)})


def aligned(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """Steps [S] within what all curves cover, and their values there [runs, S], by linear interpolation."""
    first, last = max(curve.steps[0] for curve in curves), min(curve.steps[-1] for curve in curves)
    if last < first:
        return np.empty(0), np.empty((len(curves), 0))
    steps = curves[0].steps[(curves[0].steps >= first) & (curves[0].steps <= last)]
    if len(steps) > POINTS or len(steps) == 0:
        steps = np.linspace(first, last, POINTS)
    return steps, np.stack([np.interp(steps, curve.steps, curve.values) for curve in curves])


def _order(run: Run) -> tuple[int, int, str, int]:
    """Where a run's column stands among others: settings as they come first, then short runs before long ones."""
    return len(run.identity.changes), _rank(run.identity.base), run.method, run.budget


def _rank(base: str) -> int:
    """PPO and Cardiff first, for others are compared with them; then other learners; what is added to one behind it."""
    learner = base.partition("+")[0].partition(",")[0]
    return 10 * (learner not in ("PPO", "Cardiff")) + 2 * base.count("literal") + base.count("+")
