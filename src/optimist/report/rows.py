"""All runs below some folders: run folders and rows of results files (`runs.jsonl` of sweeps)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from optimist.config.toml import flat, overlay, to_dict
from optimist.errors import OptimistError, RunFolderError
from optimist.presets import get_preset
from optimist.reading import parse_json, read_lines
from optimist.report.formatting import counted
from optimist.report.identify import SECTIONS, Identity, identify
from optimist.report.runs import (
    CONFIG,
    RETURN,
    SUMMARY,
    Problem,
    Run,
    Score,
    Statistic,
    make_curve,
    read_run,
    read_scores,
    same,
)

ROWS = "runs.jsonl"
SKIPPED = ("checkpoints", ".git", "__pycache__")


def collect(folders: Sequence[Path]) -> tuple[list[Run], list[Problem]]:
    """Every run below the folders (or in results files), each seed of a method once, and what could not be used."""
    runs: list[Run] = []
    problems: list[Problem] = []
    seen: set[Path] = set()
    for folder in folders:
        if not folder.exists():
            raise RunFolderError(f"no folder {folder}; give folders with run folders or results files ({ROWS}) below")
        for path in _files(folder):
            if path.resolve() in seen:
                continue
            seen.add(path.resolve())
            if path.name == SUMMARY:
                read, found = [], [Problem(_relative(path.parent, folder), f"a {SUMMARY} without a {CONFIG}; left out")]
            elif path.name == CONFIG:
                run, found = read_run(path.parent, _relative(path.parent, folder))
                read = [run] if run is not None else []
            else:
                read, found = read_rows(path, _relative(path, folder))
            source = path if path.name == ROWS else path.parent
            runs += [replace(run, path=source) for run in read]
            problems += [problem._replace(path=source) for problem in found]
    runs, repeated = without_repeats(runs)
    return runs, problems + repeated


def read_rows(path: Path, name: str) -> tuple[list[Run], list[Problem]]:
    """The runs of a results file; rows that are damaged or not those of a sweep are counted."""
    runs, bad, problems = [], 0, list[Problem]()
    try:
        lines = list(read_lines(path))
    except OSError as error:
        return [], [Problem(name, f"cannot be read: {error.strerror}")]
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line)
            if "folder" in row and (path.parent / row["folder"] / CONFIG).exists():
                continue  # read as a run folder, which holds more
            if row["state"] == "finished":
                runs.append(run_from_row(row, f"{name}:{number}"))
            else:
                reason = row.get("error") or "not finished"
                problems.append(Problem(f"{name}: {row['run']}", f"{row['state']} ({reason})", "unfinished"))
        except (ValueError, TypeError, KeyError, AttributeError, OptimistError):
            bad += 1
    if bad:
        problems.append(Problem(name, f"{bad} of {counted(len(lines), 'row')} left out: damaged"))
    return runs, problems


def run_from_row(row: Mapping[str, Any], name: str) -> Run:
    """The finished run of a sweep's row."""
    flags, settings = json.dumps(row["flags"]), json.dumps(row["settings"])
    identity, sticky = _identify_row(row["preset"], flags, settings, row.get("library", ""))
    budget, metrics = int(row["steps"]), row["metrics"]
    points = [(float(step), float(value)) for step, value in row.get("curve") or ()]
    curves = {RETURN: make_curve(points)} if points else {}
    scores = read_scores(metrics, {})
    if row["value"] is not None:
        scores.setdefault(_statistic(str(row["statistic"])), Score(float(row["value"])))
    forms: tuple[tuple[Statistic, str], ...] = (
        ("final", "final_return"), ("final", "sampled_return"), ("final-greedy", "argmax_return"),
    )  # fmt: skip
    for statistic, metric in forms:
        if metric in metrics:
            scores[statistic] = Score(float(metrics[metric]), metrics.get("score_episodes"))
    return Run(name, identity, int(row["seed"]), budget, sticky, True, budget, scores, curves, summary=metrics)


@cache
def _identify_row(preset: str, flags: str, settings: str, library: str) -> tuple[Identity, float | None]:
    """Identity and sticky-action probability of all seeds of a method; some of its settings may no longer exist."""
    default, changes = to_dict(get_preset(preset)(**json.loads(flags))), json.loads(settings)
    config = overlay(default, changes)
    identity = identify(config)
    removed = [
        f"{key}={value}"
        for section in SECTIONS
        for key, value in changes.get(section, {}).items()
        if key not in default[section]
    ]
    base = f"{identity.base} of {library}" if library else identity.base
    identity = replace(identity, base=base, changes=tuple(sorted([*identity.changes, *removed])))
    return identity, config["env"]["kwargs"].get("sticky")


def _statistic(words: str) -> Statistic:
    """The statistic that a summary describes with these words."""
    if words.startswith("highest"):
        return "best-epoch"
    if "final policy" in words:
        return "final-greedy" if "greedy" in words else "final"
    return "last-100"


def without_repeats(runs: list[Run]) -> tuple[list[Run], list[Problem]]:
    """Keep one run per method, environment, budget and seed.

    Finished runs come first, among them those whose config was not changed; of unfinished runs the longest is kept.
    """
    kept: dict[tuple[Any, ...], list[Run]] = {}
    repeated: list[Problem] = []
    finished = sorted((run for run in runs if run.finished), key=lambda run: bool(run.summary.get("changes")))
    unfinished = sorted((run for run in runs if not run.finished), key=lambda run: -run.steps)
    for run in finished + unfinished:
        others = kept.setdefault((run.identity, run.seed, run.sticky), [])
        taken = next((other for other in others if same("budget", other.budget, run.budget)), None)
        if taken is not None:
            what = f"{taken.name} is used instead; {differences(run.config, taken.config)}"
            repeated.append(Problem(run.name, what, "repeated", run.path))
        else:
            others.append(run)
    chosen = {id(run) for others in kept.values() for run in others}
    return [run for run in runs if id(run) in chosen], repeated


def differences(config: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The settings in which two runs of one experiment differ, in words."""
    if not config or not other:
        return "rows of results files have no config to compare"
    ours, theirs = dict(flat(config)), dict(flat(other))
    found = [
        f"{key} is {ours.get(key, 'not set')}, there {theirs.get(key, 'not set')}"
        for key in sorted({*ours, *theirs})
        if ours.get(key) != theirs.get(key)
    ]
    return "; ".join(found) or "their configs are equal"


def _files(folder: Path) -> list[Path]:
    """config.toml of run folders, or their summary where that is missing, and results files; links are not followed."""
    if folder.is_file():
        return [folder] if folder.name == ROWS else []
    found = []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        wanted = (CONFIG if CONFIG in files else SUMMARY, ROWS)
        found += [Path(root) / name for name in wanted if name in files]
    return found


def _relative(path: Path, folder: Path) -> str:
    """The path from the given folder on, its name included."""
    if path == folder:
        return path.resolve().name
    return str(Path(folder.resolve().name) / path.resolve().relative_to(folder.resolve()))
