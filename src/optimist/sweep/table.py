"""Finished runs → runs.jsonl, one line each, and table.md: method × environment, seeds, mean and interval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optimist.errors import RunFolderError
from optimist.report.means import mean_interval
from optimist.sweep.folder import WorkFolder
from optimist.sweep.statistic import score
from optimist.tracking.atomic import write_text

HEADER = ("method", "env", "steps", "seeds", "mean ± 95 %", "solved", "statistic")


@dataclass
class Row:
    """All runs of one method on one environment that were measured alike."""

    method: str
    env: str
    steps: int
    statistic: str
    total: int = 0
    values: list[float] = field(default_factory=list)
    solved: list[bool] = field(default_factory=list)

    def words(self) -> list[str]:
        """The row as the table shows it."""
        count = f"{len(self.values)}" if len(self.values) == self.total else f"{len(self.values)} of {self.total}"
        mean = str(mean_interval(self.values)) if self.values else "–"
        solved = f"{sum(self.solved)}/{len(self.solved)}" if self.solved else ""
        return [self.method, self.env, f"{self.steps:,}", count, mean, solved, self.statistic]


def collect(folder: WorkFolder, records: Iterable[Mapping[str, Any]], statistic: str) -> list[dict[str, Any]]:
    """A line for each run of the plan: what it is, and what it reached or why there is nothing; no wall-clock times."""
    events = folder.last_events()
    return [_line(folder, record, statistic, events.get(record["run"], {})) for record in records]


def _line(folder: WorkFolder, record: Mapping[str, Any], statistic: str, event: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {**record, "folder": f"runs/{record['run']}"}
    try:
        summary = folder.summary(record["run"])
        if summary is not None:
            found = score(summary, statistic)
            line |= {"state": "finished", "steps": summary["steps"], "value": found.value}
            line |= {"statistic": found.statistic, "solved": summary.get("solved")}
            return line
        reason = event["error"] if event.get("event") == "failed" else None
    except (RunFolderError, KeyError, TypeError) as error:
        reason = str(error) if isinstance(error, RunFolderError) else f"summary.json lacks {error}"
    return line | {"state": "failed" if reason else "unfinished", "error": reason}


def rows(lines: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Lines of runs.jsonl, gathered by method, environment, steps and statistic."""
    found: dict[tuple[Any, ...], Row] = {}
    missing: list[Mapping[str, Any]] = []
    for line in lines:
        if line["state"] != "finished":
            missing.append(line)
            continue
        key = (line["method"], line["env"], line["steps"], line["statistic"])
        row = found.setdefault(key, Row(*key))
        row.total += 1
        if line["value"] is not None:
            row.values.append(line["value"])
        if line["solved"] is not None:
            row.solved.append(line["solved"])
    for line in missing:
        alike = [row for row in found.values() if (row.method, row.env) == (line["method"], line["env"])]
        key = (line["method"], line["env"], line["budget"], "")
        row = alike[0] if alike else found.setdefault(key, Row(*key))
        row.total += 1
    return sorted(found.values(), key=lambda row: (row.env, row.method))


def markdown(lines: list[dict[str, Any]]) -> str:
    """The table and, under it, the runs that are missing from it."""
    table = [HEADER, ["---"] * len(HEADER), *(row.words() for row in rows(lines))]
    text = "".join(f"| {' | '.join(words)} |\n" for words in table)
    missing = [line for line in lines if line["state"] != "finished"]
    if missing:
        text += f"\nMissing, {len(missing)} of {len(lines)} runs:\n\n"
        text += "".join(f"- {line['run']}: {line['error'] or 'not finished'}\n" for line in missing)
    return text


def write_results(folder: WorkFolder, lines: list[dict[str, Any]]) -> list[Path]:
    """runs.jsonl and table.md."""
    runs, table = folder.path / "runs.jsonl", folder.path / "table.md"
    write_text(runs, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    write_text(table, markdown(lines))
    return [runs, table]
