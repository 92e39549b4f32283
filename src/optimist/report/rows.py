"""Rows of results files (runs.jsonl of the benchmarks) → Run records, and the search for both below folders."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.errors import OptimistError, RunFolderError
from optimist.presets import get_preset
from optimist.report import identify
from optimist.report.identify import Identity, name_cage2, name_env, name_method, split_changes
from optimist.report.repeats import without_repeats
from optimist.report.runs import CONFIG, RETURN, SUMMARY, Curve, Problem, Run, make_curve, read_run, scores_of
from optimist.report.scores import Score, Statistic, counted
from optimist.tracking.config_io import merge, to_dict

ROWS = "runs.jsonl"
NOT_ENTERED = ("checkpoints", ".git", "__pycache__")


def collect(folders: Sequence[Path]) -> tuple[list[Run], list[Problem]]:
    """Every run below the folders, each seed of a method once, and what could not be used."""
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
                found = [Problem(_shown(path.parent, folder), f"a {SUMMARY} without a {CONFIG}; left out")]
            elif path.name == CONFIG:
                run, found = read_run(path.parent, _shown(path.parent, folder))
                runs += [run] if run is not None else []
            else:
                rows, found = read_rows(path, _shown(path, folder))
                runs += rows
            problems += found
    runs, repeated = without_repeats(runs)
    return runs, problems + repeated


def read_rows(path: Path, name: str) -> tuple[list[Run], list[Problem]]:
    """The runs of a results file; rows of a form nobody knows are counted."""
    runs, bad, unknown, failed = [], 0, 0, list[Problem]()
    try:
        lines = path.read_bytes().decode(errors="replace").splitlines()
    except OSError as error:
        return [], [Problem(name, f"cannot be read: {error.strerror}")]
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if "folder" in row and (path.parent / row["folder"] / CONFIG).exists():
                continue  # a sweep's row; its run folder says more
            if "run" in row and row.get("state", "finished") != "finished":
                reason = row.get("error") or "not finished"
                failed.append(Problem(f"{name}: {row['run']}", f"{row['state']} ({reason})", "unfinished"))
                continue
            run = _from_row(row, f"{name}:{number}")
        except (ValueError, TypeError, KeyError, AttributeError, OptimistError):
            bad += 1
            continue
        if run is None:
            unknown += 1
        else:
            runs.append(run)
    problems = [*failed, *([Problem(name, f"{bad} of {counted(len(lines), 'row')} left out: damaged")] if bad else [])]
    if unknown:
        problems.append(
            Problem(name, f"{unknown} of {counted(len(lines), 'row')} left out: a form the report does not read")
        )
    return runs, problems


def _from_row(row: Mapping[str, Any], name: str) -> Run | None:
    """A row of conversion.py, cage2_claim.py, classic.py or a sweep, or a run's summary; None if it is none."""
    if "run" in row and "state" in row:
        return _from_sweep(row, name)
    if "preset" in row and "env" in row:
        config = {
            "preset": row["preset"],
            "env": {"id": row["env"], "kwargs": row.get("env_kwargs") or {}},
            "evaluate_episodes": row.get("evaluate_episodes"),
        }
        identity = identify.identify(config)
        sticky = (row.get("env_kwargs") or {}).get("sticky")
        return _run(name, replace(identity, changes=tuple(row.get("changes") or ())), row, row, sticky=sticky)
    if "task" in row and "goal_seen" in row:
        env = {"deepsea": "optimist/DeepSea-v0", "keydoor": "optimist/KeyDoorTreasure-v0"}[row["task"]]
        kwargs = {"size": row["size"]} if row["task"] == "deepsea" else {}
        return _run(name, _identity(name_env(env, kwargs), row["task"], row["method"]), row, row)
    if "red" in row and "rules" in row:
        env_name = identify.CAGE2, name_cage2(row["red"], row["rules"])
        run = _run(name, _identity(env_name, "cage2", row["method"]), row, row)
        return replace(run, scores={**run.scores, **_played(run, row, name)})
    if "side" in row and "env" in row:
        preset = f"gym/{row.get('algorithm', 'ppo')}"
        label = name_method(preset) + ("" if row["side"] == "optimist" else f" of {row['side']}")
        changes = () if row["setting"] == "preset" else (f"setting {row['setting']}",)
        identity = Identity(*name_env(row["env"], {}), label, changes, preset)
        return _run(name, identity, row, row)
    return None


def _from_sweep(row: Mapping[str, Any], name: str) -> Run:
    """A finished run of a sweep's runs.jsonl whose folder is elsewhere."""
    config = merge(get_preset(row["preset"])(**row.get("flags", {})), row.get("settings", {}))
    run = _run(name, identify.identify(to_dict(config)), row, {}, sticky=config.env.kwargs.get("sticky"))
    words = str(row["statistic"])
    statistic: Statistic = "last-100"
    if words.startswith("highest"):
        statistic = "best-epoch"
    elif "final policy" in words:
        statistic = "final-greedy" if "greedy" in words else "final"
    score = Score(
        value=float(row["value"]), method=run.method, env=run.env, statistic=statistic, budget=run.budget,
        sticky=run.sticky, seed=run.seed, source=name,
    )  # fmt: skip
    return replace(run, scores={statistic: score})


def _identity(env: tuple[str, str], family: str, method: str) -> Identity:
    base, changes = split_changes(method)
    return Identity(*env, name_method(f"{family}/{base}"), changes, f"{family}/{base}")


def _run(
    name: str, identity: Identity, row: Mapping[str, Any], summary: Mapping[str, Any], sticky: float | None = None
) -> Run:
    budget = int(row.get("total_steps") or row["steps"])
    curves: dict[str, Curve] = {}
    if row.get("curve"):
        curves[RETURN] = make_curve([(float(step), float(value)) for step, value in row["curve"]])
    seed = None if row.get("seed") is None else int(row["seed"])
    run = Run(
        name, identity, seed, budget, sticky, True, int(row.get("steps", budget)), {}, curves, {}, summary,
        source="results file",
    )  # fmt: skip
    return replace(run, scores=scores_of(run, summary, name))


def _played(run: Run, row: Mapping[str, Any], name: str) -> dict[Statistic, Score]:
    """The final policy on fresh games, as cage2_claim.py scores it."""
    found: dict[Statistic, Score] = {}
    forms: tuple[tuple[Statistic, str], ...] = (("final", "sampled"), ("final-greedy", "argmax"))
    for statistic, key in forms:
        if key in row:
            found[statistic] = Score(
                value=float(row[key]["mean"]), method=run.method, env=run.env, statistic=statistic, budget=run.budget,
                seed=run.seed, episodes=row.get("episodes"), source=name,
            )  # fmt: skip
    return found


def _files(folder: Path) -> list[Path]:
    """config.toml of run folders, a summary where that is missing, and results files; no links to folders."""
    if folder.is_file():
        return [folder] if folder.name == ROWS else []
    found = []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in NOT_ENTERED)
        marks = (CONFIG if CONFIG in files else SUMMARY, ROWS)
        found += [Path(root) / name for name in marks if name in files]
    return found


def _shown(path: Path, folder: Path) -> str:
    """The path as the reader knows it: the given folder's name and what is below."""
    return (
        str(Path(folder.resolve().name) / path.resolve().relative_to(folder.resolve()))
        if path != folder
        else (path.resolve().name)
    )
