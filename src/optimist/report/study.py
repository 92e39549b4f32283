"""Study: the runs of a report by family, and the columns of a family: runs of one method and one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from optimist.envs.family import families
from optimist.errors import ConfigError
from optimist.report.charts import Key, method_keys
from optimist.report.formatting import readable, short_steps
from optimist.report.identify import ATARI, CAGE2, KEYDOOR
from optimist.report.runs import RETURN, Problem, Run, Statistic, same

Unlike = Literal["refuse", "separate", "mix"]
KINDS = {"sticky": "sticky-action probabilities", "budget": "budgets in steps"}
"""The fields in which the runs of one column agree, with their names in the plural."""
LONG_STEPS = 30_000_000
"""Atari runs with more steps than this belong to the table of 50M steps, all others to that of 10M."""
UNFINISHED = " (unfinished)"
"""Added to the name of a method whose runs are not finished."""


@dataclass
class Study:
    """The runs to compare, the statistic, and the problems found."""

    runs: Sequence[Run]
    problems: list[Problem]
    statistic: Statistic = "last-100"
    unlike: Unlike = "separate"

    def family(self, name: str) -> Family:
        """The runs of one family."""
        runs = [run for run in self.runs if run.identity.family == name]
        return Family(name, runs, self.statistic, self.unlike)

    @cached_property
    def families(self) -> list[Family]:
        """Families that have runs."""
        found = [self.family(family.name) for family in families()]
        return [family for family in found if family.runs]

    def check(self) -> None:
        """Raise where `unlike` forbids a column of mixed kinds; note finished runs that lack the statistic."""
        for family in self.families:
            for long in family.tables:
                family.columns(long=long)
        for run in self.runs:
            if run.finished and run.scores and self.statistic not in run.scores:
                what = f"has no statistic {self.statistic} (it has {', '.join(run.scores)}); in no table"
                self.problems.append(Problem(run.name, what, path=run.path))


@dataclass(frozen=True)
class Family:
    """The runs of a family of environments, and the columns they form."""

    name: str
    runs: Sequence[Run]
    statistic: Statistic
    unlike: Unlike

    @property
    def slug(self) -> str:
        """The name as a part of file names."""
        return {CAGE2: "cage2", KEYDOOR: "keydoor"}.get(self.name, self.name.lower())

    @cached_property
    def envs(self) -> list[str]:
        """The environments, sorted by name."""
        return sorted({run.env for run in self.runs})

    @property
    def tables(self) -> tuple[bool | None, ...]:
        """The values of `long` for which the family has tables."""
        return (False, True) if self.name == ATARI else (None,)

    def columns(self, *, long: bool | None = None, statistic: Statistic | None = None) -> dict[str, list[Run]]:
        """Column → its finished runs with the statistic; for Atari `long` selects one of the two tables."""
        runs = [
            run
            for run in self.runs
            if (statistic or self.statistic) in run.scores and (long is None or (run.budget > LONG_STEPS) == long)
        ]
        return columns(sorted(runs, key=_order), unlike=self.unlike, across=long is not None)

    def compared(self, statistic: Statistic | None = None) -> Iterator[tuple[str, str, list[Run]]]:
        """Environment, column and runs: every line of a table, environment by environment."""
        found = [column for long in self.tables for column in self.columns(long=long, statistic=statistic).items()]
        for env in self.envs:
            for name, runs in found:
                here = [run for run in runs if run.env == env]
                if here:
                    yield env, name, here

    @cached_property
    def labels(self) -> dict[int, str]:
        """id(run) → the name of its column; a method in both Atari tables has two names."""
        found: dict[int, str] = {}
        for long in self.tables:
            for name, runs in self.columns(long=long).items():
                taken = f"{name}, 50M" if name in found.values() else name
                found |= {id(run): taken for run in runs}
        return found

    @cached_property
    def _briefs(self) -> dict[tuple[str, str], str]:
        found: dict[str, dict[str, Run]] = {}
        for run in self.runs:
            name = self.labels.get(id(run), run.method if run.finished else run.method + UNFINISHED)
            found.setdefault(run.env, {}).setdefault(name, run)
        result: dict[tuple[str, str], str] = {}
        for env, columns in found.items():
            short = {name: name.replace(run.method, _brief(run, columns.values()), 1) for name, run in columns.items()}
            several = {name for name, count in Counter(short.values()).items() if count > 1}
            result |= {(env, name): name if words in several else words for name, words in short.items()}
        return result

    def brief(self, env: str, name: str) -> str:
        """The column's name without settings that do not differ between the columns of this environment."""
        return self._briefs.get((env, name), name)

    def brief_over(self, env_names: Mapping[str, Iterable[str]]) -> dict[str, str]:
        """Column → its brief name where that is the same in all environments and of no other column."""
        found: dict[str, set[str]] = {}
        for env, names in env_names.items():
            for name in names:
                found.setdefault(name, set()).add(self.brief(env, name))
        count = Counter(words for options in found.values() for words in options)
        return {
            name: min(options) if len(options) == 1 and count[min(options)] == 1 else name
            for name, options in found.items()
        }

    def drawn(self, metric: str) -> dict[str, dict[str, list[Run]]]:
        """Environment → column → runs that logged a metric; unfinished ones only where no run is finished."""
        found = {}
        for env in self.envs:
            here = sorted((run for run in self.runs if run.env == env and metric in run.curves), key=_order)
            groups: dict[str, list[Run]] = {name: [] for name in self.labels.values()}
            for run in here:
                if run.finished:
                    groups.setdefault(self.labels.get(id(run), run.method), []).append(run)
                elif not any(other.finished and other.method == run.method for other in here):
                    groups.setdefault(run.method + UNFINISHED, []).append(run)
            if here:
                found[env] = {name: runs for name, runs in groups.items() if runs}
        return found

    @cached_property
    def keys(self) -> dict[str, Key]:
        """A colour for every method, the same for its unfinished runs."""
        drawn = [self.drawn(metric) for metric in (RETURN, "policy/entropy")]
        names = {name: None for env in self.envs for found in drawn for name in found.get(env, {})}
        names |= dict.fromkeys(self.labels.values())
        methods = dict.fromkeys(name.removesuffix(UNFINISHED) for name in names)
        keys = method_keys(sorted(methods, key=lambda name: (name.count("·"), _rank(name.partition(" · ")[0]))))
        both = ((name, key) for method, key in keys.items() for name in (method, method + UNFINISHED))
        return {name: key._replace(label=name) for name, key in both if name in names}


def columns(runs: Sequence[Run], *, unlike: Unlike = "separate", across: bool = False) -> dict[str, list[Run]]:
    """Group runs into columns of one kind per environment, or with `across` of one kind over all environments.

    Where the runs of a method differ in kind, `separate` adds the difference to the column's name, `mix` marks the
    column with a star, and `refuse` raises.
    """
    methods: dict[str, list[Run]] = {}
    for run in runs:
        methods.setdefault(run.method, []).append(run)
    result: dict[str, list[Run]] = {}
    for method, column in methods.items():
        envs = dict.fromkeys(run.env for run in column)
        groups = {"": column} if across else {f", {env},": [run for run in column if run.env == env] for env in envs}
        differ = {field: _first_pair(field, groups) for field in KINDS}
        mixed = {field: pair for field, pair in differ.items() if pair is not None}
        if not mixed or unlike == "mix":
            result[f"{method} *" if mixed else method] = column
        elif unlike == "refuse":
            field, (env, run, other) = next(iter(mixed.items()))
            first, second = readable(getattr(run, field)), readable(getattr(other, field))
            raise ConfigError(
                f"the column {method}{env} would mix {KINDS[field]}: {first} ({run.name}) and {second} ({other.name}); "
                "--unlike separate gives each its own column, --unlike mix averages them"
            )
        else:
            for run in column:
                words = ", ".join(_words(field, run, column) for field in mixed)
                result.setdefault(f"{method} ({words})", []).append(run)
    return result


def _brief(run: Run, columns: Collection[Run]) -> str:
    """The run's method without the settings that every column of its kind and at least one more column have."""
    others = [set(other.identity.changes) for other in columns]
    alike = [set(other.identity.changes) for other in columns if other.identity.base == run.identity.base]
    changes = run.identity.changes
    differ = [
        change
        for change in changes
        if not all(change in other for other in alike) or sum(change in other for other in others) < 2
    ]
    return " · ".join((run.identity.base, *differ))


def _first_pair(field: str, groups: Mapping[str, Sequence[Run]]) -> tuple[str, Run, Run] | None:
    """The first two runs of a group that differ in the field, with the group's name."""
    for name, (first, *others) in groups.items():
        for other in others:
            if not same(field, getattr(first, field), getattr(other, field)):
                return name, first, other
    return None


def _words(field: str, run: Run, column: Sequence[Run]) -> str:
    """The kind of a run in words, with the value of the first run of this kind."""
    values = (getattr(other, field) for other in column)
    value: Any = next(value for value in values if same(field, value, getattr(run, field)))
    return f"{short_steps(value)} steps" if field == "budget" else f"sticky {readable(value)}"


def _order(run: Run) -> tuple[int, int, str, int]:
    """Sort key of a run's column: few changes first, then by method, then short runs before long ones."""
    return len(run.identity.changes), _rank(run.identity.base), run.method, run.budget


def _rank(base: str) -> int:
    """PPO and Cardiff first, since others are compared with them; each learner before its variants with anchors."""
    learner = base.partition("+")[0].partition(",")[0]
    return 10 * (learner not in ("PPO", "Cardiff")) + 2 * base.count("literal") + base.count("+")
