"""What a search leaves behind: trials.jsonl, table.md with the best trial first, and best.toml to train with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from optimist.report.means import mean_interval
from optimist.sweep.space import nested
from optimist.tracking.atomic import write_text

if TYPE_CHECKING:
    import optuna


def trial_lines(study: optuna.Study) -> list[dict[str, Any]]:
    """What is known of each trial; those with a value first, best first."""
    lines = [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            "value": trial.value if trial.state.name == "COMPLETE" else None,
            "values": trial.user_attrs.get("values"),
            "params": trial.params,
            "error": trial.user_attrs.get("error"),
        }
        for trial in study.trials
    ]
    return sorted(lines, key=lambda line: (line["value"] is None, -(line["value"] or 0.0), line["trial"]))


def write_trials(folder: Path, names: list[str], seeds: int, lines: list[dict[str, Any]]) -> None:
    """trials.jsonl, table.md and, once a trial is complete, best.toml."""
    write_text(folder / "trials.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    table = [["trial", "mean ± 95 %", *names], ["---"] * (len(names) + 2)]
    for line in lines:
        mean = str(mean_interval(line["values"])) if line["values"] else line["state"]
        table.append([str(line["trial"]), mean, *(short(line["params"].get(name)) for name in names)])
    text = "".join(f"| {' | '.join(row)} |\n" for row in table)
    note = f"\n{seeds} seeds a trial. The best of many is a maximum, biased upwards: run it again on new seeds.\n"
    write_text(folder / "table.md", text + note)
    if lines and lines[0]["value"] is not None:
        write_text(folder / "best.toml", tomli_w.dumps(nested(lines[0]["params"])))


def words(params: dict[str, Any]) -> str:
    """The settings of a trial on one line."""
    return ", ".join(f"{name} {short(value)}" for name, value in params.items())


def short(value: Any) -> str:
    """A value with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
