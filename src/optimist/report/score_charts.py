"""Charts of scores: every seed of every method, and ablations as differences from the unchanged preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optimist.report.charts import INK, PALETTE, Chart, Key, Panel
from optimist.report.means import difference_interval, mean_interval
from optimist.report.study import Study
from optimist.report.training_charts import slug

LONGEST = 62  # characters of a row's name; the tables have it in full


def seeds(study: Study, family: str) -> Chart | None:
    """Every seed's score as a dot, the mean with its interval as a bar; a panel an environment."""
    keys, panels = study.keys(family), []
    for env in study.envs(family):
        values: dict[str, list[float]] = {}
        for long in study.tables(family):
            for runs in study.columns(family, long=long).values():
                found = [run.scores[study.statistic].value for run in runs if run.env == env]
                if found:
                    values[study.labels(family)[id(runs[0])]] = found
        if values:
            panels.append(Panel(env, _draw_seeds(values, keys), 0.75 + 0.38 * len(values)))
    if not panels:
        return None
    caption = (
        f"Statistic: {study.statistic}. Dot: one seed; bar: mean with Student's 95 % interval over seeds "
        "(none for a single seed; with two it can leave the picture)."
    )
    return Chart(f"seeds-{slug(family)}", "Scores, every seed", panels, caption, (), (4.3, 2.4), 2)


def ablations(study: Study, family: str) -> Chart | None:
    """Variants of a preset: difference of each to the unchanged one, with Welch's interval."""
    panels = []
    for env in study.envs(family):
        groups: dict[str, dict[tuple[str, ...], list[float]]] = {}
        for run in study.of(family):
            if run.env == env and study.statistic in run.scores:
                variants = groups.setdefault(f"{run.identity.base}|{run.budget}|{run.sticky}", {})
                variants.setdefault(run.identity.changes, []).append(run.scores[study.statistic].value)
        for group, variants in groups.items():
            base = variants.pop((), None)
            if base is not None and variants:
                title = f"{env}: {group.split('|')[0]}, n = {len(base)}"
                panels.append(Panel(title, _draw_ablation(base, variants), 0.8 + 0.4 * len(variants)))
    if not panels:
        return None
    caption = (
        f"Difference in {study.statistic} score between a variant (settings as named) and the preset as it is, whose "
        "seeds the title counts. Bars: Welch's 95 % intervals; no bar where one side has a single seed."
    )
    return Chart(f"ablations-{slug(family)}", "Ablations", panels, caption, (), (4.6, 2.4), 2)


def _draw_seeds(values: Mapping[str, Sequence[float]], keys: Mapping[str, Key]) -> Any:
    def draw(axis: Any) -> None:
        for row, (name, scores) in enumerate(values.items()):
            color = keys[name].color
            spread = ((np.arange(len(scores)) * 0.618) % 1 - 0.5) * 0.3 if len(scores) > 1 else np.zeros(1)
            axis.plot(scores, row + spread, "o", color=color, markersize=3.2, alpha=0.55, markeredgewidth=0)
            interval = mean_interval(list(scores))
            if np.isfinite(interval.half_width):
                ends = [interval.mean - interval.half_width, interval.mean + interval.half_width]
                axis.plot(ends, [row, row], color=color, linewidth=2)
            axis.plot(interval.mean, row, "|", color=color, markersize=11, markeredgewidth=2.2)
            row_label(axis, f"{name}  (n = {len(scores)})", row)
        every = [score for scores in values.values() for score in scores]
        margin = 0.35 * (max(every) - min(every)) or 0.1 * abs(every[0]) or 1.0
        low, high = axis.get_xlim()
        axis.set_xlim(max(low, min(every) - margin), min(high, max(every) + margin))
        axis.locator_params(axis="x", nbins=6)
        axis.set_xlabel("return")
        rows_from_top(axis, len(values))

    return draw


def _draw_ablation(base: Sequence[float], variants: Mapping[tuple[str, ...], Sequence[float]]) -> Any:
    def draw(axis: Any) -> None:
        for row, (changes, scores) in enumerate(variants.items()):
            difference = difference_interval(scores, base)
            if np.isfinite(difference.half_width):
                ends = [difference.mean - difference.half_width, difference.mean + difference.half_width]
                axis.plot(ends, [row, row], color=PALETTE[0], linewidth=5, alpha=0.35)
            axis.plot(difference.mean, row, "o", color=PALETTE[0], markersize=5)
            row_label(axis, f"{', '.join(changes)}  (n = {len(scores)})", row)
        axis.axvline(0.0, color=INK, linewidth=0.8)
        axis.set_xlabel("difference in return")
        rows_from_top(axis, len(variants))

    return draw


def rows_from_top(axis: Any, count: int) -> None:
    """Rows from the top, without a vertical axis: their names stand above them."""
    axis.set_ylim(count - 0.55, -0.85)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)


def row_label(axis: Any, text: str, row: int) -> None:
    """The name of a row, above it at the left."""
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[3 - LONGEST // 2 :]}"
    label = axis.text(0.0, row - 0.3, shown, transform=axis.get_yaxis_transform(), va="bottom", fontsize=7.8)
    label.set_in_layout(False)  # a long name must not squeeze the axes
