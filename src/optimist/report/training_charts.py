"""Charts over training: returns, entropy, threshold and memory, CAGE 2 with its last part enlarged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optimist.report.charts import INK, MUTED, Chart, Key, Panel, step_axis
from optimist.report.identify import ATARI, CAGE2
from optimist.report.published import published_column
from optimist.report.runs import RETURN, Run, count_seeds
from optimist.report.study import Study, aligned

TEN_MILLION = 10_000_000
BASELINES = (
    (Key("PPO, CleanRL, 10M", INK, "--"), "cleanrl_10M", "ppo_atari_envpool_xla_jax"),
    (Key("OPR, the paper's “10M”", MUTED, "-."), "opr_table_10M", "OPR"),
    (Key("SIL, the paper's “50M”", MUTED, ":"), "opr_table_50M", "SIL"),
)
CAGE_CLAIMS = ((Key("paper: Cardiff −6.2", MUTED, ":"), -6.2), (Key("paper: Cardiff+OPR −4.2", MUTED, "--"), -4.2))
BAND = "Line: mean over seeds; band: range over seeds, none for a single one."


def learning(study: Study, family: str) -> Chart | None:
    """Returns over training, a panel an environment; Atari with published scores as dashed lines and the 10M mark."""
    panels, most = [], 0.0
    baselines: dict[Key, None] = {}
    for env in study.envs(family):
        groups = study.drawn(family, env, RETURN)
        if groups:
            most = max(most, *(_last(runs) for runs in groups.values()))
            levels = _levels(family, env)
            baselines |= dict.fromkeys(key for key, _ in levels)
            panels.append(Panel(env, _draw_lines(study, family, groups, RETURN, "return", levels)))
    if not panels:
        return None
    caption = f"Mean raw return of the last 100 training episodes. {BAND} {_sizes(study, family, RETURN)}"
    if family == ATARI:
        mark = "the vertical line marks 10M steps" if most >= 0.8 * TEN_MILLION else "10M steps lie to the right of it"
        caption += f" Dashed: published scores, single numbers under other protocols; {mark}."
    name = f"learning-{slug(family)}"
    return Chart(name, "Learning dynamics", panels, caption, (*_used(study, family, RETURN), *baselines))


def cage_zoom(study: Study) -> Chart | None:
    """The paper's CAGE 2 figure: training beside its last half enlarged, and the two numbers the paper gives."""
    panels: list[Panel] = []
    claims: Sequence[tuple[Key, float]] = ()
    for env in study.envs(CAGE2):
        groups = study.drawn(CAGE2, env, RETURN)
        if not groups:
            continue
        levels = CAGE_CLAIMS if env.endswith("30 steps") and not env.startswith("Sleep") else ()
        claims = levels or claims
        panels.append(Panel(env, _draw_lines(study, CAGE2, groups, RETURN, "return", levels)))
        faint = _draw_lines(study, CAGE2, groups, RETURN, "return", levels, band=0.07)
        panels.append(Panel("… its last half, enlarged", _enlarged(faint, groups, levels)))
    if not panels:
        return None
    keys = (*_used(study, CAGE2, RETURN), *(key for key, _ in claims))
    caption = (
        f"Mean raw return of the last 100 training games; right: the second half of training, cut to the better "
        f"methods. {BAND} {_sizes(study, CAGE2, RETURN)}"
    )
    return Chart("learning-cage2", "CAGE Challenge 2: training", panels, caption, keys, (4.3, 3.0), 2)


def entropy(study: Study, family: str) -> Chart | None:
    """Entropy of the policy over training: does it collapse, and does OPR prevent it?"""
    metric = "policy/entropy"
    panels = []
    for env in study.envs(family):
        groups = study.drawn(family, env, metric)
        if groups:
            panels.append(Panel(env, _draw_lines(study, family, groups, metric, "entropy (nats)", floor=0.0)))
    if not panels:
        return None
    caption = (
        "Mean entropy of the policy; 0 means that it no longer explores: a collapse if the return is low there, "
        f"and just certainty if it is high. {BAND} {_sizes(study, family, metric)}"
    )
    return Chart(f"entropy-{slug(family)}", "Entropy over training", panels, caption, _used(study, family, metric))


def memory(study: Study, family: str) -> Chart | None:
    """What OPR remembers: τ, the mean return in M beside that of training, and how full M is."""
    panels = []
    for env in study.envs(family):
        for name, runs in study.drawn(family, env, "opr/memory_return").items():
            title = f"{_short(name, 46)}\n{env}"
            panels.append(Panel(title, _draw_memory(runs)))
            panels.append(Panel("… and how full M is\n", _draw_fill(runs)))
    if not panels:
        return None
    keys = (
        Key("training return", MUTED), Key("threshold τ", "#d55e00", "--"), Key("mean return in M", "#0072b2"),
        Key("M's share of N_max", "#009e73"),
    )  # fmt: skip
    caption = (
        "Left: an episode whose return passes τ (percentile P of the last K returns) enters the memory M; the line of "
        "M lies above that of training while M holds better episodes than the policy plays. Right: transitions in M "
        f"as a share of N_max. Mean over seeds. {_sizes(study, family, 'opr/memory_return')}"
    )
    return Chart(f"memory-{slug(family)}", "Threshold and memory", panels, caption, keys, (4.3, 2.6), 2)


def slug(family: str) -> str:
    """The family as part of a file's name."""
    return {"CAGE Challenge 2": "cage2", "Key-Door-Treasure": "keydoor"}.get(family, family.lower())


def _draw_lines(
    study: Study, family: str, groups: Mapping[str, Sequence[Run]], metric: str, label: str,
    levels: Sequence[tuple[Key, float]] = (), floor: float | None = None, band: float = 0.16,
) -> Any:  # fmt: skip
    keys = study.keys(family)

    def draw(axis: Any) -> None:
        most = max(_last(runs) for runs in groups.values())
        scale = step_axis(axis, most)
        for name, runs in groups.items():
            steps, values = aligned([run.curves[metric] for run in runs])
            if not len(steps):
                continue
            key = keys[name]
            axis.plot(steps * scale, values.mean(0), color=key.color, linestyle=key.dash)
            if len(runs) > 1:
                axis.fill_between(steps * scale, values.min(0), values.max(0), color=key.color, alpha=band, linewidth=0)
        for key, level in levels:
            axis.axhline(level, color=key.color, linestyle=key.dash, linewidth=1.1)
        if family == ATARI and most >= 0.8 * TEN_MILLION:
            axis.axvline(TEN_MILLION * scale, color=MUTED, linestyle="--", linewidth=0.9)
        if floor is not None:
            axis.set_ylim(floor, floor + 1.08 * max(axis.get_ylim()[1] - floor, 1e-3))
        axis.set_ylabel(label)

    return draw


def _enlarged(draw: Any, groups: Mapping[str, Sequence[Run]], levels: Sequence[tuple[Key, float]]) -> Any:
    """The same axes, from half of training on, without what lies far below the best."""
    most = max(_last(runs) for runs in groups.values())
    tops, bottoms = [level for _, level in levels], [level for _, level in levels]
    means = {}
    for name, runs in groups.items():
        steps, values = aligned([run.curves[RETURN] for run in runs])
        late = values.mean(0)[steps >= most / 2]
        if len(late):
            means[name] = late
    best = max((late.mean() for late in means.values()), default=0.0)
    for late in means.values():
        if late.mean() >= best - 1.2 * abs(best) - 1:
            tops.append(float(late.max()))
            bottoms.append(float(np.quantile(late, 0.05)))

    def draw_part(axis: Any) -> None:
        draw(axis)
        scale = step_axis(axis, most)
        axis.set_xlim(most * scale / 2, most * scale)
        if tops:
            margin = 0.12 * (max(tops) - min(bottoms)) + 0.1
            axis.set_ylim(min(bottoms) - margin, max(tops) + margin)

    return draw_part


def _draw_memory(runs: Sequence[Run]) -> Any:
    lines = ((RETURN, MUTED, "-"), ("opr/threshold", "#d55e00", "--"), ("opr/memory_return", "#0072b2", "-"))

    def draw(axis: Any) -> None:
        scale = step_axis(axis, _last(runs))
        for metric, color, dash in lines:
            logged = [run.curves[metric] for run in runs if metric in run.curves]
            if logged:
                steps, values = aligned(logged)
                axis.plot(steps * scale, values.mean(0), color=color, linestyle=dash)
        axis.set_ylabel("return")

    return draw


def _draw_fill(runs: Sequence[Run]) -> Any:
    metric = "opr/memory_fill"

    def draw(axis: Any) -> None:
        scale = step_axis(axis, _last(runs))
        logged = [run.curves[metric] for run in runs if metric in run.curves]
        if logged:
            steps, values = aligned(logged)
            axis.plot(steps * scale, values.mean(0), color="#009e73")
            axis.fill_between(steps * scale, 0, values.mean(0), color="#009e73", alpha=0.16, linewidth=0)
        axis.set(ylim=(0, 1.05), ylabel="share of N_max")

    return draw


def _levels(family: str, env: str) -> list[tuple[Key, float]]:
    """Published scores of an Atari game."""
    if family != ATARI:
        return []
    found = [(key, published_column(block, method).scores.get(env)) for key, block, method in BASELINES]
    return [(key, score.value) for key, score in found if score is not None]


def _last(runs: Sequence[Run]) -> float:
    return max((curve.steps[-1] for run in runs for curve in run.curves.values()), default=1.0)


def _used(study: Study, family: str, metric: str) -> list[Key]:
    """The legend: columns that some panel shows."""
    shown = {name for env in study.envs(family) for name in study.drawn(family, env, metric)}
    return [key for name, key in study.keys(family).items() if name in shown]


def _sizes(study: Study, family: str, metric: str) -> str:
    """How many seeds stand behind each line."""
    counts: dict[str, list[int]] = {}
    for env in study.envs(family):
        for name, runs in study.drawn(family, env, metric).items():
            counts.setdefault(name, []).append(count_seeds(runs))
    words = [f"{name} {_range(numbers)}" for name, numbers in counts.items()]
    return f"Seeds: {'; '.join(words)}."


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
