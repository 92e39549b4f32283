"""What a search leaves behind: trials.jsonl, table.md with the best trial first, and best.toml to train with."""

from __future__ import annotations

import json
import math
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
        mean = mean_in_words(line["values"]) if line["values"] else line["state"]
        table.append([str(line["trial"]), mean, *(short(line["params"].get(name)) for name in names)])
    text = "".join(f"| {' | '.join(row)} |\n" for row in table)
    note = f"\n{seeds} seeds a trial. The best of many is a maximum, biased upwards: run it again on new seeds.\n"
    write_text(folder / "table.md", text + note)
    if lines and lines[0]["value"] is not None:
        write_text(folder / "best.toml", tomli_w.dumps(nested(lines[0]["params"])))


def words(params: dict[str, Any]) -> str:
    """The settings of a trial on one line."""
    return ", ".join(f"{name} {short(value)}" for name, value in params.items())


def mean_in_words(values: list[float]) -> str:
    """The mean with four digits, for it decides between trials, and the half width of its 95 % interval with two."""
    mean, half_width = mean_interval(values)
    return digits(mean, 4) + (f" ± {digits(half_width, 2)}" if math.isfinite(half_width) else "")


def digits(value: float, count: int) -> str:
    """A number with so many significant digits and no exponent."""
    if value == 0:
        return "0"  # −0 too
    places = max(0, count - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def short(value: Any) -> str:
    """A value with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
