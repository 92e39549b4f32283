"""Rows and tables: runs.jsonl, one JSON object a run, and table.md, method × environment with 95 % intervals."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optimist.errors import RunFolderError
from optimist.stats.intervals import difference_interval, fisher_lower, mean_interval, wilson_interval
from optimist.sweep.folder import ROWS, SCORE, TABLE, SweepFolder
from optimist.sweep.plan import Plan, Run, SweepFile
from optimist.tracking.files import write_text
from optimist.tracking.writers import read_metrics

OUTCOMES = (
    "episodes", "episodes_in_statistic", "last_100_return", "goal_seen", "first_goal_step", "goal_rate", "solved",
)  # fmt: skip
"""Entries of a run's summary that its row keeps."""
RETURN = "rollout/raw_return"
SPEEDS = {"steps/s": "seconds", "steps/CPU-s": "cpu_seconds"}
"""Measures that are speeds → the clock among a row's metrics."""

Row = dict[str, Any]


def collect_rows(folder: SweepFolder, plan: Plan) -> list[Row]:
    """A row for each run: its record, and its outcome or why there is none; then published rows of other runs.

    Rows hold no wall-clock times.
    """
    events, published = folder.last_events(), dict(folder.published)
    rows = [
        published.pop(run.name) if run.name in published else _make_row(folder, run, plan, events.get(run.name, {}))
        for run in plan.runs
    ]
    return rows + list(published.values())


def _make_row(folder: SweepFolder, run: Run, plan: Plan, event: Mapping[str, Any]) -> Row:
    row: Row = {**run.record, "folder": f"runs/{run.name}"}
    try:
        summary = folder.read_json(run.name)
        if summary is not None:
            value, words = read_statistic(summary, plan.file.statistic)
            row |= {"state": "finished", "steps": summary["steps"], "value": value, "statistic": words}
            curve = _read_curve(folder, run)
            row["metrics"] = _metrics(summary, curve) | (folder.read_json(run.name, SCORE) or {})
            if plan.file.last_third:
                row["metrics"] |= _read_last_third(folder, run, plan.file.last_third)
            return row | {"curve": thin(curve, plan.file.curve_points)}
        reason = event["error"] if event.get("event") == "failed" else None
    except (RunFolderError, KeyError, TypeError) as error:
        reason = str(error) if isinstance(error, RunFolderError) else f"summary.json lacks {error}"
    return row | {"state": "failed" if reason else "unfinished", "error": reason}


def _metrics(summary: Mapping[str, Any], curve: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Outcomes of the summary, the final policy's return, and the mean return over the whole run."""
    found = {name: summary[name] for name in OUTCOMES if name in summary}
    if "final_evaluation" in summary:
        found["final_return"] = summary["final_evaluation"]["mean_return"]
    return found | {"mean_return": statistics.fmean(value for _, value in curve) if curve else None}


def read_statistic(summary: Mapping[str, Any], name: str) -> tuple[float | None, str]:
    """The number a run is compared by and its description; None if no episode ended."""
    if name == "best-epoch":
        found = summary["best_evaluation"]
    elif name == "final" or (name == "auto" and "final_evaluation" in summary):
        found = summary["final_evaluation"]
    else:
        return summary["last_100_return"], summary["statistic"]
    return found["mean_return"], found["statistic"]


def _read_last_third(folder: SweepFolder, run: Run, names: Sequence[str]) -> dict[str, float | None]:
    """The mean of each metric over the last third of the run; None where it was not logged."""
    lines = [
        line for line in read_metrics(folder.run_path(run.name) / "metrics.jsonl") if 3 * line["step"] > 2 * run.budget
    ]
    found = {name: [line[name] for line in lines if math.isfinite(line.get(name, math.nan))] for name in names}
    return {name: statistics.fmean(values) if values else None for name, values in found.items()}


def _read_curve(folder: SweepFolder, run: Run) -> list[list[float]]:
    """Step and mean return of the last 100 training episodes, one point a line of the metrics, which may be missing."""
    path = folder.run_path(run.name) / "metrics.jsonl"
    lines = read_metrics(path) if path.exists() else []
    return [[line["step"], round(line[RETURN], 4)] for line in lines if math.isfinite(line.get(RETURN, math.nan))]


def thin(curve: list[list[float]], points: int) -> list[list[float]]:
    """At most so many points of the curve; the last is always one of them."""
    every = max(1, math.ceil(len(curve) / points))
    return curve[::-1][::every][::-1]


@dataclass
class Group:
    """The rows of one method on one environment that have the same budget and statistic."""

    method: str
    env: str
    steps: int
    statistic: str
    flags: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    missing: int = 0

    def values(self, measure: str) -> list[Any]:
        """The measure's values over the finished runs that have it."""
        found = [_measured(row, measure) for row in self.rows]
        return [value for value in found if value is not None]

    def cell(self, measure: str) -> str:
        """The measure in words: a share with its Wilson interval, a mean with Student's, or a median speed."""
        if measure in SPEEDS:
            speed = self.speed(SPEEDS[measure])
            return "" if speed is None else f"{speed:,.0f}"
        part, _, whole = measure.partition("/")
        if whole:
            own = [row for row in self.rows if _measured(row, whole)]
            return _share([bool(_measured(row, part)) for row in own]) if self.values(whole) else ""
        values = self.values(measure)
        if not values:
            return "" if self.rows else "–"
        return _share(values) if isinstance(values[0], bool) else str(mean_interval(values))

    def speed(self, clock: str) -> float | None:
        """Median steps per second by this clock; None if a run was not timed."""
        times = self.values(clock)
        if not self.rows or len(times) < len(self.rows):
            return None
        speeds: list[float] = [row["steps"] / seconds for row, seconds in zip(self.rows, times, strict=True)]
        return statistics.median(speeds)

    def compared(self, measure: str, base: Group) -> str:
        """Difference to the baseline ± 95 % (Welch); for shares Fisher's one-sided p of being below it."""
        own, other = self.values(measure), base.values(measure)
        if not own or not other or self is base:
            return "–"
        if isinstance(own[0], bool):
            return f"p = {fisher_lower(sum(own), len(own), sum(other), len(other)):.2f}"
        return str(difference_interval(own, other))


def group_rows(rows: Iterable[Row], average_over: str = "") -> list[Group]:
    """Rows grouped by method, environment, steps and statistic; runs without a result are counted as missing."""
    groups: dict[tuple[Any, ...], Group] = {}
    rows = list(rows)
    if average_over:
        rows += _averages(rows, average_over)
    for row in (row for row in rows if row["state"] == "finished"):
        key = (row["method"], row["env"], row["steps"], row["statistic"])
        groups.setdefault(key, Group(*key, flags=row["flags"])).rows.append(row)
    for row in (row for row in rows if row["state"] != "finished"):
        same = [group for group in groups.values() if (group.method, group.env) == (row["method"], row["env"])]
        key = (row["method"], row["env"], row["budget"], "")
        (same[0] if same else groups.setdefault(key, Group(*key, flags=row["flags"]))).missing += 1
    return sorted(groups.values(), key=lambda group: (str(group.flags), group.env, group.steps))


def _averages(rows: list[Row], flag: str) -> list[Row]:
    """For each seed that has all values of the flag, a row with the mean of its numbers over them."""
    finished = [row for row in rows if row["state"] == "finished" and flag in row["flags"]]
    sets: dict[tuple[Any, ...], dict[Any, Row]] = {}
    choices: dict[str, set[Any]] = {}
    for row in finished:
        rest = {name: value for name, value in row["flags"].items() if name != flag}
        key = (row["method"], json.dumps(rest), row["steps"], row["statistic"], row["seed"])
        sets.setdefault(key, {})[row["flags"][flag]] = row
        choices.setdefault(key[1], set()).add(row["flags"][flag])
    found = []
    for (method, rest, *_), parts in sets.items():
        if set(parts) != choices[rest]:
            continue
        first = next(iter(parts.values()))
        env = first["env"].replace(f" {flag}={first['flags'][flag]}", f" mean over {flag}")
        numbers = {"value", *first["metrics"]}
        means = {name: _mean([_measured(part, name) for part in parts.values()]) for name in numbers}
        row = {**first, "method": method, "env": env, "flags": {**json.loads(rest), flag: "~mean"}}
        found.append(row | {"value": means.pop("value"), "metrics": means})
    return found


def _mean(values: Sequence[Any]) -> float | None:
    numbers = [value for value in values if type(value) in (int, float)]
    return statistics.fmean(numbers) if len(numbers) == len(values) else None


def _measured(row: Row, measure: str) -> Any:
    if measure == "value":
        return row["value"]
    return row.get("metrics", {}).get(measure)  # rows of format 1 have none


def _share(values: Sequence[bool]) -> str:
    low, high = wilson_interval(sum(values), len(values))
    return f"{sum(values)}/{len(values)}" + (f" ({low:.2f} – {high:.2f})" if values else "")


def table_cells(rows: Iterable[Row], file: SweepFile) -> list[list[str]]:
    """The table: a header, then a line for each group."""
    groups = group_rows(rows, file.average_over)
    measures = [name for name in file.measures if any(group.cell(name) for group in groups)]
    header = ["method", "env", "steps", "seeds", *measures]
    lines = []
    for group in groups:
        seeds = f"{len(group.rows)} of {len(group.rows) + group.missing}" if group.missing else f"{len(group.rows)}"
        cells = [group.cell(name) + _times_other_library(group, groups, name) for name in measures]
        line = [group.method, group.env, f"{group.steps:,}", seeds, *cells]
        if file.baseline:
            line.append(group.compared(measures[0], _baseline_of(group, groups, file.baseline)))
        lines.append([*line, group.statistic] if "value" in measures else line)
    if file.baseline:
        header.append(f"against {file.baseline}")
    return [[*header, "statistic"] if "value" in measures else header, *lines]


def _times_other_library(group: Group, groups: Iterable[Group], measure: str) -> str:
    """For a speed, ` (1.78 ×)`: the ratio to that of the same runs in another library."""
    speed = group.speed(SPEEDS[measure]) if measure in SPEEDS else None
    for other in groups:
        if other.env == group.env and other.method.startswith(f"{group.method} of "):
            theirs = other.speed(SPEEDS[measure]) if speed else None
            return f" ({speed / theirs:.2f} ×)" if speed and theirs else ""
    return ""


def _baseline_of(group: Group, groups: Iterable[Group], method: str) -> Group:
    """The baseline's group with the same flags and the same steps up to 1 %: updates differ in size."""
    for one in groups:
        same = (one.method, one.flags, one.statistic) == (method, group.flags, group.statistic)
        if same and abs(one.steps - group.steps) <= 0.01 * group.steps:
            return one
    return group


def markdown(rows: list[Row], file: SweepFile) -> str:
    """The table, and below it the runs without a result."""
    header, *lines = table_cells(rows, file)
    text = "".join(f"| {' | '.join(words)} |\n" for words in (header, ["---"] * len(header), *lines))
    text += "\nMeans ± 95 % (Student's t over seeds); shares of runs with 95 % intervals (Wilson).\n"
    missing = [row for row in rows if row["state"] != "finished"]
    if missing:
        text += f"\nMissing, {len(missing)} of {len(rows)} runs:\n\n"
        text += "".join(f"- {row['run']}: {row['error'] or 'not finished'}\n" for row in missing)
    return text


def write_results(folder: SweepFolder, rows: list[Row], file: SweepFile) -> None:
    """Write runs.jsonl and table.md."""
    write_text(folder.path / ROWS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_text(folder.path / TABLE, markdown(rows, file))
