"""Charts over training: returns, entropy, threshold and memory, and CAGE 2 with its last half as an inset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from optimist.errors import unknown_name
from optimist.report.charts import (
    INK,
    MUTED,
    Chart,
    Key,
    Panel,
    aligned,
    draw_band,
    draw_seeds,
    include_zero,
    step_axis,
)
from optimist.report.identify import ATARI
from optimist.report.published import published_column
from optimist.report.runs import RETURN, Run, count_seeds
from optimist.report.study import Family

Draw: TypeAlias = Callable[[Any], None]
"""Draws on an axis."""
Drawn: TypeAlias = Mapping[str, Mapping[str, Sequence[Run]]]
"""Environment → column → runs."""
Level: TypeAlias = tuple[Key, float]
"""A number to compare with."""
MAX_NAMED = 8  # a caption names up to this many methods
TEN_MILLION = 10_000_000
BASELINES = (
    (Key("PPO, CleanRL, 10M", INK, "--"), "cleanrl_10M", "ppo_atari_envpool_xla_jax"),
    (Key("OPR, the paper's “10M”", MUTED, "-."), "opr_table_10M", "OPR"),
    (Key("SIL, the paper's “50M”", MUTED, ":"), "opr_table_50M", "SIL"),
)
CAGE_CLAIMS = ((Key("paper: Cardiff −6.2", MUTED, ":"), -6.2), (Key("paper: Cardiff+OPR −4.2", MUTED, "--"), -4.2))
PAPER_METHODS = ("cage2/ppo", "cage2/cardiff", "cage2/cardiff-opr-paper")
"""The methods of the paper's CAGE 2 figure."""
INSET = (0.4, 0.08, 0.57, 0.5)
"""Left, bottom, width and height of an inset, as shares of its axes."""
THRESHOLD, MEMORY_RETURN, MEMORY_FILL = "opr/threshold", "opr/memory_return", "opr/memory_fill"
MEMORY_KEYS = {
    RETURN: Key("training return", MUTED),
    THRESHOLD: Key("threshold τ", "#d55e00", "--"),
    MEMORY_RETURN: Key("mean return in M", "#0072b2"),
    MEMORY_FILL: Key("M's share of N_max", "#009e73"),
}
BAND = (
    "Thick: mean over seeds, up to the end of the shortest (dot); thin: seeds; band: their range, from three seeds on."
)


def learning(family: Family) -> Chart | None:
    """Returns over training, one panel per environment; for Atari also published scores and a line at 10M steps."""
    drawn = family.drawn(RETURN)
    levels = {env: _published_levels(family, env) for env in drawn}
    panels = [Panel(env, _Lines(family, runs, RETURN, "return", levels[env])) for env, runs in drawn.items()]
    baselines = dict.fromkeys(key for env in drawn for key, _ in levels[env])
    caption = f"Mean raw return of the last 100 training episodes. {BAND} {_sizes(family, drawn)}"
    if family.name == ATARI:
        most = max((_last(runs) for groups in drawn.values() for runs in groups.values()), default=0.0)
        mark = "the vertical line marks 10M steps" if most >= 0.8 * TEN_MILLION else "10M steps is right of the axis"
        caption += f" Dashed: published scores, single numbers under other protocols; {mark}."
    keys = (*_used(family, drawn), *baselines)
    return Chart(f"learning-{family.slug}", "Learning curves", panels, caption, keys) if panels else None


def cage_zoom(family: Family, methods: Sequence[str] = ()) -> Chart | None:
    """The paper's CAGE 2 figure: training, its last half as an inset, and the two numbers of the paper.

    `methods` are presets or names of columns; without them the paper's three, or every method where one of them has no
    run.
    """
    drawn = chosen(family.drawn(RETURN), methods)
    panels: list[Panel] = []
    claims: Sequence[Level] = ()
    for env, groups in drawn.items():
        levels = CAGE_CLAIMS if env.endswith("30 steps") and not env.startswith("Sleep") else ()
        claims = levels or claims
        panels.append(Panel(env, _with_inset(_Lines(family, groups, RETURN, "return", levels))))
    keys = (*_used(family, drawn), *(key for key, _ in claims))
    caption = (
        "Mean raw return of the last 100 training episodes; inset: the second half of training, cut to the better "
        f"methods. {BAND} {_sizes(family, drawn)}"
    )
    title = "CAGE Challenge 2: training"
    return Chart("learning-cage2", title, panels, caption, keys, (4.8, 3.6), 2) if panels else None


def chosen(drawn: Drawn, methods: Sequence[str]) -> Drawn:
    """The columns of these presets or names; without names the paper's three, unchanged, if all have runs."""
    if methods:
        named = {name: _names_of(runs) for groups in drawn.values() for name, runs in groups.items()}
        known = sorted(set().union(*named.values())) if named else []
        if missing := [method for method in methods if method not in known]:
            raise unknown_name("method with runs", missing[0], known)
        return _only(drawn, lambda runs: bool(_names_of(runs) & set(methods)))
    whole = _only(drawn, lambda runs: runs[0].identity.preset in PAPER_METHODS and not runs[0].identity.changes)
    presets = {runs[0].identity.preset for groups in whole.values() for runs in groups.values()}
    return whole if presets == set(PAPER_METHODS) else drawn


def _names_of(runs: Sequence[Run]) -> set[str]:
    """What a column can be called: its preset and its method."""
    return {runs[0].identity.preset, runs[0].method} - {""}


def _only(drawn: Drawn, keep: Callable[[Sequence[Run]], bool]) -> Drawn:
    found = {env: {name: runs for name, runs in groups.items() if keep(runs)} for env, groups in drawn.items()}
    return {env: groups for env, groups in found.items() if groups}


def entropy(family: Family) -> Chart | None:
    """Entropy of the policy over training."""
    drawn = family.drawn("policy/entropy")
    panels = [Panel(env, _Lines(family, groups, "policy/entropy", "entropy (nats)")) for env, groups in drawn.items()]
    caption = (
        "Mean entropy of the policy. 0 means that it no longer explores: a collapse where the return is low, "
        f"certainty where it is high. {BAND} {_sizes(family, drawn)}"
    )
    name = f"entropy-{family.slug}"
    return Chart(name, "Entropy over training", panels, caption, _used(family, drawn)) if panels else None


def memory(family: Family) -> Chart | None:
    """OPR's memory: τ and the mean return in M with the training return, and the share of M in use."""
    drawn = family.drawn(MEMORY_RETURN)
    panels = []
    for env, groups in drawn.items():
        for name, runs in groups.items():
            panels.append(
                Panel(
                    f"{family.brief(env, name)}\n{env}", _draw_means(runs, (RETURN, THRESHOLD, MEMORY_RETURN), "return")
                )
            )
            panels.append(Panel("… and the share of M in use\n", _draw_means(runs, (MEMORY_FILL,), "share of N_max")))
    caption = (
        "Left: an episode whose return exceeds τ (percentile P of the last K returns) is admitted to the memory M. "
        "While the line of M is above that of training, M holds better episodes than the policy's. Right: transitions "
        f"in M as a share of N_max. Mean over seeds. {_sizes(family, drawn)}"
    )
    name, keys = f"memory-{family.slug}", tuple(MEMORY_KEYS.values())
    return Chart(name, "Threshold and memory", panels, caption, keys, (4.3, 2.6), 2) if panels else None


@dataclass
class _Lines:
    """Draws a metric of the columns of one environment: mean and range over seeds, and levels to compare with."""

    family: Family
    groups: Mapping[str, Sequence[Run]]
    metric: str
    label: str
    levels: Sequence[Level] = ()
    band: float = 0.13

    @property
    def most(self) -> float:
        return max(map(_last, self.groups.values()))

    def __call__(self, axis: Any) -> None:
        scale = step_axis(axis, self.most)
        for name, runs in self.groups.items():
            draw_seeds(axis, [run.curves[self.metric] for run in runs], scale, self.family.keys[name], self.band)
        for key, level in self.levels:
            axis.axhline(level, color=key.color, linestyle=key.dash, linewidth=1.1)
        if self.family.name == ATARI and self.most >= 0.8 * TEN_MILLION:
            axis.axvline(TEN_MILLION * scale, color=MUTED, linestyle="--", linewidth=0.9)
        include_zero(axis)
        axis.set_ylabel(self.label)


def _with_inset(lines: _Lines) -> Draw:
    """The lines, and their second half as an inset."""
    enlarged = _enlarged(lines)

    def draw(axis: Any) -> None:
        lines(axis)
        inset = axis.inset_axes(INSET)
        enlarged(inset)
        inset.set(xlabel="", ylabel="")
        inset.tick_params(labelsize=7)

    return draw


def _enlarged(lines: _Lines) -> Draw:
    """The second half of training, without methods far below the best."""
    tops, bottoms = [level for _, level in lines.levels], [level for _, level in lines.levels]
    halves = []
    for runs in lines.groups.values():
        steps, values = aligned([run.curves[RETURN] for run in runs])
        halves.append(values.mean(0)[steps >= lines.most / 2])
    halves = [half for half in halves if len(half)]
    best = max((half.mean() for half in halves), default=0.0)
    for half in halves:
        if half.mean() >= best - 1.2 * abs(best) - 1:
            tops.append(float(half.max()))
            bottoms.append(float(np.quantile(half, 0.05)))

    def draw(axis: Any) -> None:
        replace(lines, band=0.07)(axis)
        scale = step_axis(axis, lines.most)
        axis.set_xlim(lines.most * scale / 2, lines.most * scale)
        if tops:
            margin = 0.12 * (max(tops) - min(bottoms)) + 0.1
            axis.set_ylim(min(bottoms) - margin, max(tops) + margin)

    return draw


def _draw_means(runs: Sequence[Run], metrics: Sequence[str], label: str) -> Draw:
    """The mean over runs of each metric; a share is filled down to 0."""

    def draw(axis: Any) -> None:
        scale = step_axis(axis, _last(runs))
        for metric in metrics:
            logged = [run.curves[metric] for run in runs if metric in run.curves]
            if logged:
                steps, values = aligned(logged)
                mean = values.mean(0)
                low = np.zeros_like(mean) if metric == MEMORY_FILL else mean
                draw_band(axis, steps * scale, mean, low, mean, MEMORY_KEYS[metric])
        axis.set_ylabel(label)
        include_zero(axis)
        if MEMORY_FILL in metrics:
            axis.set_ylim(0, 1.05)

    return draw


def _published_levels(family: Family, env: str) -> list[Level]:
    found = [(key, published_column(block, method).scores.get(env)) for key, block, method in BASELINES]
    return [(key, score) for key, score in found if score is not None and family.name == ATARI]


def _last(runs: Sequence[Run]) -> float:
    return max((curve.steps[-1] for run in runs for curve in run.curves.values()), default=1.0)


def _used(family: Family, drawn: Drawn) -> list[Key]:
    """The legend: columns that appear in some panel."""
    names = family.brief_over(drawn)
    return [key._replace(label=names[name], full=name) for name, key in family.keys.items() if name in names]


def _sizes(family: Family, drawn: Drawn) -> str:
    """The number of seeds of each line, in words."""
    counts: dict[str, list[int]] = {}
    for groups in drawn.values():
        for name, runs in groups.items():
            counts.setdefault(name, []).append(count_seeds(runs))
    if len(counts) > MAX_NAMED:
        every = [number for numbers in counts.values() for number in numbers]
        return f"Seeds: {' to '.join(map(str, dict.fromkeys((min(every), max(every)))))} a line."
    words, names = [], family.brief_over(drawn)
    for name, numbers in counts.items():
        ends = dict.fromkeys((min(numbers), max(numbers)))
        words.append(f"{names[name]} {' to '.join(map(str, ends))}")
    return f"Seeds: {'; '.join(words)}."
