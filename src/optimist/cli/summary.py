"""The summary of a trained run in words, with its learning curve in characters and the next commands."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from optimist.cli.arguments import print_result

NEXT = ("evaluate", "watch", "report")
"""The commands to use a run with."""
RETURN = "rollout/raw_return"
ROWS = 6
"""Lines of a learning curve."""
BLOCKS, ASCII = " ▁▂▃▄▅▆▇█", " ..::==##"
"""Heights from 0 to 8 eighths of a line."""


def print_summary(summary: Mapping[str, Any], as_json: bool) -> None:
    """Print the summary, a learning curve and what can be done next; or the summary as one JSON object."""
    if as_json:
        print_result(summary, as_json=True)
    else:
        _print_words(summary)


def _print_words(summary: Mapping[str, Any]) -> None:
    from optimist.tracking.writers import read_metrics

    columns = get_terminal_size(fallback=(80, 24)).columns
    print()
    for line in sentences(summary):
        print("\n".join(wrap(line, columns, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)))
    lines = read_metrics(Path(summary["run"]) / "metrics.jsonl")
    points = [(line["step"], line[RETURN]) for line in lines if not math.isnan(line.get(RETURN, math.nan))]
    if len(points) > 1:
        print("\nMean return of the last 100 training episodes:")
        print("\n".join(draw_curve(*zip(*points, strict=True), columns=columns, blocks=_blocks())))
    print("\nNext:")
    for command in NEXT:
        env = f" --env {summary['env']}" if ":" in summary["env"] and command != "report" else ""
        print(f"  optimist {command} {shlex.quote(str(summary['run']))}{env}")


def sentences(summary: Mapping[str, Any]) -> Iterator[str]:
    """What was trained, its return, its goal and evaluations if there are any, and its folder."""
    from optimist.envs.family import family_of
    from optimist.tracking.progress import duration

    task = family_of(summary["env"]).label(summary["env"], summary["env_kwargs"])
    delay = f", rewards every {summary['reward_delay']} steps" if "reward_delay" in summary else ""
    since = f" since step {summary['time/since_step']:,}" if "time/since_step" in summary else ""
    speed = f"{duration(summary['time/seconds'])}{since} ({summary['time/steps_per_second']:,.0f} steps/s)"
    preset = f"{summary['preset']}: " if summary["preset"] else ""
    method = f"{preset}{summary['algorithm'].upper()} on {task}{delay}"
    yield f"{method}, seed {summary['seed']}: {summary['steps']:,} steps in {speed}."
    if summary["episodes"]:
        counted = f"the last {summary['episodes_in_statistic']} of {summary['episodes']:,} training episodes"
        yield f"Return: {_number(summary['last_100_return'])}, the mean of {counted}."
    else:
        yield "Return: unknown, as no training episode has ended; train longer (--total-steps)."
    yield from _goal(summary)
    yield from _evaluations(summary)
    if "changes" in summary:
        yield f"Settings changed while it was trained: {'; '.join(summary['changes'])}."
    yield f"Folder with settings, metrics, checkpoints and policy: {summary['run']}"


def _goal(summary: Mapping[str, Any]) -> Iterator[str]:
    if "goal_seen" not in summary:
        return
    if not summary["goal_seen"]:
        yield "Goal: never reached in training."
        return
    verdict = "solved" if summary["solved"] else "not solved"
    rate = f"{summary['goal_rate']:.0%} of the last {summary['episodes_in_statistic']} episodes"
    yield f"Goal: {verdict}; first reached at step {summary['first_goal_step']:,}, and in {rate}."


def _evaluations(summary: Mapping[str, Any]) -> Iterator[str]:
    found = []
    if "final_evaluation" in summary:
        final = summary["final_evaluation"]
        interval = final["interval_95"]
        within = f" (95 % interval {_number(interval[0])} to {_number(interval[1])})" if interval else ""
        found.append(f"{_number(final['mean_return'])} in {final['episodes']} fresh episodes at the end{within}")
    if "best_evaluation" in summary:
        best = summary["best_evaluation"]
        found.append(f"at best {_number(best['mean_return'])} during training, at step {best['step']:,}")
    if found:
        yield f"Evaluation, mean return: {'; '.join(found)}."


def draw_curve(steps: Sequence[float], values: Sequence[float], *, columns: int, blocks: str = BLOCKS) -> list[str]:
    """Lines of characters: values over steps as columns of blocks, with the smallest and largest value at the left."""
    import numpy as np

    low, high = min(values), max(values)
    labels = [_number(high), _number(low)] if high > low else ["", _number(low)]
    margin = max(map(len, labels))
    across = max(columns - margin - 3, 10)
    drawn = np.interp(np.linspace(steps[0], steps[-1], across), steps, values)
    share = (drawn - low) / (high - low) if high > low else np.zeros(across)
    heights = 1 + np.rint(share * (8 * ROWS - 1)).astype(int)  # in eighths of a line
    rows = range(ROWS - 1, -1, -1) if high > low else range(1)
    at = {rows[-1]: labels[1], rows[0]: labels[0] or labels[1]}
    lines = [
        f"{at.get(row, ''):>{margin}} │ " + "".join(blocks[min(max(height - 8 * row, 0), 8)] for height in heights)
        for row in rows
    ]
    first, last = f"{steps[0]:,}", f"{steps[-1]:,} steps"
    axis = first + last.rjust(across - len(first))
    return [*(line.replace("│", "|") if blocks == ASCII else line for line in lines), " " * (margin + 3) + axis]


def _blocks() -> str:
    """The characters that the terminal can show."""
    try:
        f"{BLOCKS}│".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return ASCII
    return BLOCKS


def _number(value: float) -> str:
    """Four significant digits, and no minus before zero."""
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return "0" if float(text.replace(",", "")) == 0 else text
