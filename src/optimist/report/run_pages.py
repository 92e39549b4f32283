"""A page for each run: what it was, what it reached, where its time went, what it remembers, its curves and config."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from optimist.report.runs import RETURN, Run
from optimist.report.scores import STATISTICS, counted, short_number
from optimist.report.sparks import spark
from optimist.report.tables import Cell, Head, Table, decimals, number
from optimist.tracking.metrics import METRICS

CURVES = (
    ("return", (RETURN, "evaluation/mean_return")), ("goal rate", ("rollout/goal_rate",)),
    ("episode length", ("rollout/length",)), ("entropy", ("policy/entropy",)), ("KL", ("policy/kl",)),
    ("policy loss", ("loss/policy",)), ("value loss", ("loss/value",)), ("cloning loss L_BC", ("loss/bc",)),
    ("return", ("opr/threshold", "opr/memory_return")), ("M's share of N_max", ("opr/memory_fill",)),
    ("admitted", ("opr/admitted",)), ("speed", ("time/steps_per_second",)),
)  # fmt: skip
COLORS = ("var(--c0)", "var(--c1)")
NAMES = {RETURN: "training", "evaluation/mean_return": "tests", "opr/threshold": "τ", "opr/memory_return": "in M"}
STATIONS = {"time/collect": "environments and policy (stations 1, 2)", "time/update": "memory to update (stations 3–7)"}
MEMORY = ("opr/threshold", "opr/memory_episodes", "opr/memory_transitions", "opr/memory_fill", "opr/memory_return",
          "opr/memory_bytes", "opr/bc_coef", "opr/bc_weight")  # fmt: skip


def runs_table(runs: Sequence[Run]) -> Table:
    """Every run in a row."""
    heads = [Head("run", numeric=False), Head("method", numeric=False), Head("environment", numeric=False),
             Head("seed"), Head("state", numeric=False), Head("steps"),
             *(Head(name) for name in STATISTICS if any(name in run.scores for run in runs)),
             Head("steps/s")]  # fmt: skip
    rows = []
    for run in runs:
        scores = [Cell(value=run.scores[name].value) if name in run.scores else Cell()
                  for name in STATISTICS if any(name in other.scores for other in runs)]  # fmt: skip
        speed = run.summary.get("time/steps_per_second") or run.summary.get("steps_per_second")
        state = "finished" if run.finished else "unfinished"
        rows.append(
            [Cell(run.name), Cell(run.method), Cell(run.env), Cell(str(run.seed)), Cell(state), Cell(f"{run.steps:,}"),
             *scores, Cell(f"{speed:,.0f}" if isinstance(speed, int | float) else "")]
        )  # fmt: skip
    return Table("runs", "All runs.", heads, rows, f"{counted(len(runs), 'run')}.")


def run_page(run: Run, number_of_run: int) -> str:
    """The run's page, folded up."""
    state = "" if run.finished else ' <mark class="warn">unfinished</mark>'
    parts = [
        _facts(run),
        _block("Evaluation", _evaluation(run)),
        _block("Time per station", _timing(run)),
        _block("Memory at the end", _memory(run)),
        _block("Curves", _curves(run)),
        _block("Config", _config(run)),
    ]
    seed = "" if run.seed is None else f", seed {run.seed}"
    return (
        f'<details class="run" id="run-{number_of_run}"><summary><b>{html.escape(run.method)}</b> '
        f"{html.escape(run.env)}{seed}{state}<small>{html.escape(run.name)}</small></summary>{''.join(parts)}</details>\n"
    )


def _block(title: str, content: str) -> str:
    return f"<h4>{title}</h4>{content}" if content else ""


def _facts(run: Run) -> str:
    seconds = run.summary.get("time/seconds")
    speed, resumed = run.summary.get("time/steps_per_second"), run.summary.get("time/since_step")
    since = f" since it was resumed at step {resumed:,}" if isinstance(resumed, int) else ""
    facts = {
        "preset": run.identity.preset or "–",
        "changed": ", ".join(run.identity.changes) or "nothing",
        "changed on the way": "; ".join(map(str, run.summary.get("changes", ()))) or None,
        "steps": f"{run.steps:,} of {run.budget:,}",
        "sticky actions": None if run.sticky is None else f"{run.sticky:g}",
        "training episodes": _whole(run.summary.get("episodes")),
        "time": f"{seconds:,.0f} s{since}" if isinstance(seconds, int | float) else None,
        "speed": f"{speed:,.0f} steps/s" if isinstance(speed, int | float) else None,
        "device": run.config.get("device"),
        "goal": _goal(run.summary),
    }
    items = "".join(
        f"<div><dt>{key}</dt><dd>{html.escape(str(v))}</dd></div>" for key, v in facts.items() if v is not None
    )
    return f'<dl class="facts">{items}</dl>'


def _goal(summary: Mapping[str, Any]) -> str | None:
    if "goal_seen" not in summary:
        return None
    if not summary["goal_seen"]:
        return "never seen"
    first = _whole(summary.get("first_goal_step"))
    return f"first seen at step {first}, {'solved' if summary.get('solved') else 'not solved'}"


def _evaluation(run: Run) -> str:
    items = ""
    for name, score in run.scores.items():
        shown = number(score.value, decimals(score.value))
        bounds = (run.summary.get("final_evaluation") or {}).get("interval_95") if name.startswith("final") else None
        if isinstance(bounds, list) and len(bounds) == 2 and all(isinstance(b, int | float) for b in bounds):
            shown += f" ({number(bounds[0], 2)} to {number(bounds[1], 2)})"
        episodes = "" if score.episodes is None else f", {counted(score.episodes, 'episode')}"
        items += f"<li><b>{shown}</b> {name}{episodes}<small>{STATISTICS[name]}</small></li>"
    return f'<ul class="scores">{items}</ul>' if items else ""


def _timing(run: Run) -> str:
    """Seconds of each station: the mean of what was logged times the updates done."""
    updates = run.summary.get("updates")
    parts = {}
    for metric, curve in run.curves.items():
        if metric.startswith("time/") and metric != "time/steps_per_second":
            count = updates if isinstance(updates, int) else len(curve.values)
            parts[metric] = float(curve.values.mean()) * count
    total = sum(parts.values())
    if not total > 0:
        return ""
    bars = "".join(
        f'<span style="width:{100 * seconds / total:.1f}%;background:var(--c{at % 7})"></span>'
        for at, seconds in enumerate(parts.values())
    )
    items = "".join(
        f'<li><i style="background:var(--c{at % 7})"></i>{html.escape(STATIONS.get(metric, metric))}: {seconds:,.1f} s '
        f"({100 * seconds / total:.0f} %)</li>"
        for at, (metric, seconds) in enumerate(parts.items())
    )
    bar = f'<div class="bar" role="img" aria-label="share of time per station">{bars}</div>'
    return f'{bar}<ul class="legend">{items}</ul>'


def _memory(run: Run) -> str:
    found = [(name, run.last(name)) for name in MEMORY]
    items = "".join(
        f"<div><dt>{html.escape(name.partition('/')[2].replace('_', ' '))}</dt>"
        f"<dd>{short_number(value)} <small>{METRICS[name].unit if METRICS[name].unit != '–' else ''}</small></dd></div>"
        for name, value in found
        if value is not None
    )
    return f'<dl class="facts">{items}</dl>' if items and run.last("opr/memory_episodes") is not None else ""


def _curves(run: Run) -> str:
    pictures = ""
    for title, metrics in CURVES:
        logged = [
            (run.curves[name], color, NAMES.get(name, ""))
            for name, color in zip(metrics, COLORS, strict=False)
            if name in run.curves
        ]
        if logged:
            first = next(name for name in metrics if name in run.curves)
            pictures += spark(title, METRICS[first].unit, logged)
    return f'<div class="sparks">{pictures}</div>' if pictures else ""


def _config(run: Run) -> str:
    if not run.config:
        return ""
    import tomli_w

    text = html.escape(tomli_w.dumps(dict(run.config)))
    return f'<details><summary>every setting</summary><pre class="scroll" tabindex="0">{text}</pre></details>'


def _whole(value: Any) -> str | None:
    return f"{int(value):,}" if isinstance(value, int | float) and not isinstance(value, bool) else None
