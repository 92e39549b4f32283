"""Details of each run: facts, scores, time per phase, memory, curves and config; and the table of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tomli_w

from optimist.report.formatting import counted, decimals, number, render, short_number
from optimist.report.runs import RETURN, STATISTICS, Curve, Run
from optimist.report.tables import Cell, Head, Table
from optimist.tracking.writers import known_metrics

CURVES = (
    ("return", (RETURN, "evaluation/mean_return")), ("goal rate", ("rollout/goal_rate",)),
    ("episode length", ("rollout/length",)), ("entropy", ("policy/entropy",)), ("KL", ("policy/kl",)),
    ("policy loss", ("loss/policy",)), ("value loss", ("loss/value",)), ("cloning loss L_BC", ("loss/bc",)),
    ("return", ("opr/threshold", "opr/memory_return")), ("M's share of N_max", ("opr/memory_fill",)),
    ("admitted", ("opr/admitted",)), ("speed", ("time/steps_per_second",)),
)  # fmt: skip
COLORS = ("var(--c0)", "var(--c1)")
NAMES = {RETURN: "training", "evaluation/mean_return": "evaluation", "opr/threshold": "τ", "opr/memory_return": "in M"}
PHASES = {"time/collect": "collect (environments and policy)", "time/update": "update (memory to gradient steps)"}
MEMORY = ("opr/threshold", "opr/memory_episodes", "opr/memory_transitions", "opr/memory_fill", "opr/memory_return",
          "opr/memory_bytes", "opr/bc_coef", "opr/bc_weight")  # fmt: skip
WIDTH, HEIGHT, TOP, BOTTOM = 240, 112, 20, 18
DIGIT = 6.8  # width of a label's character, in units of the picture
POINTS = 60  # of a curve


def runs_table(runs: Sequence[Run], brief: Mapping[int, str], links: Mapping[int, str]) -> Table:
    """One row per run; id(run) → the method's name without settings that all share, and where its name links to."""
    statistics = [name for name in STATISTICS if any(name in run.scores for run in runs)]
    heads = [Head("run", numeric=False), Head("method", numeric=False), Head("environment", numeric=False),
             Head("seed"), Head("state", numeric=False), Head("steps"), *map(Head, statistics),
             Head("steps/s")]  # fmt: skip
    rows = []
    for run in runs:
        scores = [Cell(value=run.scores[name].value) if name in run.scores else Cell() for name in statistics]
        speed = run.summary.get("time/steps_per_second") or run.summary.get("steps_per_second")
        state = "finished" if run.finished else "unfinished"
        rows.append([
            Cell(run.name, href=links[id(run)]), Cell(run.method, brief=brief[id(run)]), Cell(run.env),
            Cell(str(run.seed)), Cell(state), Cell(f"{run.steps:,}"), *scores,
            Cell(f"{speed:,.0f}" if isinstance(speed, int | float) else ""),
        ])  # fmt: skip
    caption = f"{counted(len(runs), 'run')}."
    return Table("runs", "All runs.", heads, rows, caption, records=[_record(run) for run in runs])


def _record(run: Run) -> dict[str, Any]:
    """One row of runs.csv."""
    speed = run.summary.get("time/steps_per_second") or run.summary.get("steps_per_second")
    seen, solved = run.summary.get("goal_seen"), run.summary.get("solved")
    return {
        "run": run.name, "family": run.identity.family, "environment": run.env, "method": run.method,
        "preset": run.identity.preset, "changes": " ".join(run.identity.changes), "seed": run.seed,
        "finished": int(run.finished), "steps": run.steps, "budget_steps": run.budget,
        "sticky": "" if run.sticky is None else run.sticky,
        **{name.replace("-", "_"): run.scores[name].value if name in run.scores else ""
           for name in STATISTICS if name != "not stated"},
        "episodes": run.summary.get("episodes", ""),
        "goal_seen": "" if seen is None else int(seen), "solved": "" if solved is None else int(solved),
        "steps_per_second": speed if isinstance(speed, int | float) else "",
    }  # fmt: skip


def run_page(run: Run, index: int, files: Mapping[str, str]) -> str:
    """The run's details, collapsed; `files`: name → where it links to."""
    return render(
        "run.html", run=run, number=index, facts=_facts(run), scores=_scores(run), times=_times(run),
        files=files, memory=_memory(run), sparks=_sparks(run), config=tomli_w.dumps(dict(run.config)),
    )  # fmt: skip


def spark(title: str, unit: str, curves: Sequence[tuple[Curve, str, str]]) -> str:
    """A small line chart as SVG, light enough for a thousand runs: curves of one unit with their colours and names."""
    low = min(float(curve.values.min()) for curve, *_ in curves)
    high = max(float(curve.values.max()) for curve, *_ in curves)
    last = max(float(curve.steps[-1]) for curve, *_ in curves)
    bottom, top = (low, high) if high > low else (min(low, 0.0), max(high, 0.0) or float(low == 0.0))
    left = max(24.0, 6 + DIGIT * max(len(short_number(bound)) for bound in (bottom, top)))
    lines = [
        {"points": _points(curve, bottom, top, last, left), "color": color, "name": name}
        for curve, color, name in curves
    ]
    label = f"{title} ({unit})" if unit not in ("–", "") else title
    return render(
        "spark.html", label=label, low=low, high=high, ticks=(bottom, top), last=last, lines=lines,
        width=WIDTH, height=HEIGHT, left=left, top=TOP, bottom=BOTTOM,
    )  # fmt: skip


def _points(curve: Curve, low: float, high: float, last: float, left: float) -> list[tuple[float, float]]:
    chosen = np.unique(np.linspace(0, len(curve.steps) - 1, min(POINTS, len(curve.steps))).round().astype(int))
    x = left + (WIDTH - 4 - left) * curve.steps[chosen] / max(last, 1.0)
    share = (curve.values[chosen] - low) / (high - low)
    y = HEIGHT - BOTTOM - 2 - (HEIGHT - BOTTOM - TOP - 4) * share
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _facts(run: Run) -> dict[str, str]:
    seconds = run.summary.get("time/seconds")
    speed, resumed = run.summary.get("time/steps_per_second"), run.summary.get("time/since_step")
    since = f" since it was resumed at step {resumed:,}" if isinstance(resumed, int) else ""
    facts = {
        "preset": run.identity.preset or "–",
        "changed": ", ".join(run.identity.changes) or "nothing",
        "changed during the run": "; ".join(map(str, run.summary.get("changes", ()))) or None,
        "steps": f"{run.steps:,} of {run.budget:,}",
        "sticky actions": None if run.sticky is None else f"{run.sticky:g}",
        "training episodes": _whole(run.summary.get("episodes")),
        "time": f"{seconds:,.0f} s{since}" if isinstance(seconds, int | float) else None,
        "speed": f"{speed:,.0f} steps/s" if isinstance(speed, int | float) else None,
        "device": run.config.get("device"),
        "goal": _goal(run.summary),
    }
    return {name: str(value) for name, value in facts.items() if value is not None}


def _goal(summary: Mapping[str, Any]) -> str | None:
    if "goal_seen" not in summary:
        return None
    if not summary["goal_seen"]:
        return "never seen"
    first = _whole(summary.get("first_goal_step"))
    return f"first seen at step {first}, {'solved' if summary.get('solved') else 'not solved'}"


def _scores(run: Run) -> list[tuple[str, str, str]]:
    """Value, statistic and meaning of each score."""
    found = []
    for name, score in run.scores.items():
        text = number(score.value, decimals(score.value))
        bounds = (run.summary.get("final_evaluation") or {}).get("interval_95") if name.startswith("final") else None
        if isinstance(bounds, list) and len(bounds) == 2 and all(isinstance(bound, int | float) for bound in bounds):
            text += f" ({number(bounds[0], 2)} to {number(bounds[1], 2)})"
        episodes = "" if score.episodes is None else f", {counted(score.episodes, 'episode')}"
        found.append((text, name + episodes, STATISTICS[name]))
    return found


def _times(run: Run) -> dict[str, float]:
    """Seconds of each phase: the mean of what was logged times the number of updates."""
    updates = run.summary.get("updates")
    times = {}
    for metric, curve in run.curves.items():
        if metric.startswith("time/") and metric != "time/steps_per_second":
            count = updates if isinstance(updates, int) else len(curve.values)
            times[PHASES.get(metric, metric)] = float(curve.values.mean()) * count
    return times if sum(times.values()) > 0 else {}


def _memory(run: Run) -> dict[str, str]:
    if run.last("opr/memory_episodes") is None:
        return {}
    found = {}
    for metric in MEMORY:
        if (value := run.last(metric)) is not None:
            unit = known_metrics()[metric].unit.strip("–")
            found[metric.partition("/")[2].replace("_", " ")] = f"{short_number(value)} {unit}".strip()
    return found


def _sparks(run: Run) -> list[str]:
    found = []
    for title, metrics in CURVES:
        logged = [
            (run.curves[metric], color, NAMES.get(metric, ""))
            for metric, color in zip(metrics, COLORS, strict=False)
            if metric in run.curves
        ]
        if logged:
            unit = known_metrics()[next(metric for metric in metrics if metric in run.curves)].unit
            found.append(spark(title, unit, logged))
    return found


def _whole(value: Any) -> str | None:
    return f"{int(value):,}" if isinstance(value, int | float) and not isinstance(value, bool) else None
