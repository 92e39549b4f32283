"""Replay of recorded episodes with their recorded outcomes, and comparison of every field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.errors import ConfigError, TraceError
from cage2.rules.compile import announce_compilation
from cage2.rules.dynamics import replay_game, reset_games
from cage2.rules.scenario import ACTION_NAMES
from cage2.rules.state import REDS, VIEW, make_settings, members, new_games
from cage2.text import text_table
from cage2.traces import Trace, read_traces

FIELDS: Final = (
    *("first observation", "observation bits", "reward", "return", "blue action", "blue success"),
    *("red action", "red exploit", "red success", "red access", "user sessions", "privileged sessions"),
    *("flagged sessions", "file bit", "decoy list", "OTService"),
)


@dataclass
class Verification:
    """Counts of replayed episodes and of disagreements with the record."""

    files: int = 0
    episodes: int = 0
    steps: int = 0
    disagreements: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FIELDS, 0))
    first: str | None = None
    """The first disagreement: file, episode, step, field."""

    @property
    def total(self) -> int:
        """Number of disagreements in all fields."""
        return sum(self.disagreements.values())

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "files": self.files,
            "episodes": self.episodes,
            "steps": self.steps,
            "disagreements": self.total,
            "per_field": self.disagreements,
            "first": self.first,
        }

    def __str__(self) -> str:
        rows = [(name, f"{count:,}") for name, count in self.disagreements.items()]
        title = f"{self.files} files · {self.episodes:,} episodes · {self.steps:,} steps"
        table = text_table(("field", "disagreements"), [*rows, ("total", f"{self.total:,}")])
        return "\n".join((title, table, *([f"first: {self.first}"] if self.first is not None else [])))

    def add(self, trace: Trace, found: dict[str, NDArray[np.bool_]], where: str) -> None:
        """Add one replayed episode with its disagreements, booleans over steps for each field."""
        self.episodes += 1
        self.steps += len(trace)
        for name, wrong in found.items():
            self.disagreements[name] += int(wrong.sum())
            if self.first is None and wrong.any():
                self.first = f"{where}, step {int(np.argwhere(wrong)[0, 0])}: {name}"


def verify_files(paths: Iterable[str | Path]) -> Verification:
    """Replay every episode of these files."""
    result = Verification()
    with announce_compilation("the CAGE-2 rules for replay"):
        for path in paths:
            result.files += 1
            before = result.episodes
            for number, trace in enumerate(read_traces(path), 1):
                try:
                    found = compare(trace)
                except ConfigError as error:
                    raise TraceError(f"{path}, line {number}: {error}") from None
                result.add(trace, found, f"{Path(path).name}, episode {number}")
            if result.episodes == before:
                raise TraceError(f"{path} has no episodes; expected recorded episodes (*.jsonl.gz)")
    return result


def replay(trace: Trace) -> tuple[NDArray[np.void], NDArray[np.int8], NDArray[np.float64]]:
    """Replay an episode: states [T + 1], observations [T + 1, 52] and rewards [T]."""
    if trace.red not in REDS:
        raise TraceError(f"red is '{trace.red}'; expected {', '.join(REDS)}")
    settings = make_settings(trace.red, trace.green, trace.rules, trace.table, horizon=len(trace))
    games = new_games(len(trace) + 1)
    seen = np.zeros(len(trace) + 1, VIEW)
    rewards = np.zeros(len(trace))
    reset_games(games[:1], np.ones(1, np.bool_), settings, seen[:1])
    replay_game(games, trace.actions, settings, trace.outcomes, seen[1:], rewards)
    return games, seen["bits"], rewards


def compare(trace: Trace) -> dict[str, NDArray[np.bool_]]:
    """Disagreements of a replay with its record: field → booleans over steps (and hosts or bits)."""
    states, observations, rewards = replay(trace)
    games, recorded = states[1:], trace.digits
    user = np.minimum(games["plain"].astype(np.int16) + games["flagged"], 9)
    verb, target, exploit, success = trace.red_actions.T
    return {
        "first observation": observations[:1] != trace.first_observation,
        "observation bits": observations[1:] != recorded["obs"],
        "reward": np.rint(rewards * 10) != np.rint(trace.rewards * 10),
        "return": np.array([not abs(rewards.sum() - trace.total) <= 1e-6]),
        "blue action": np.array([ACTION_NAMES[action] for action in trace.actions]) != np.array(trace.blue_names),
        "blue success": games["blue_success"] != trace.blue_success,
        "red action": (games["red_verb"] != verb) | (games["red_target"] != target),
        "red exploit": games["red_exploit"] != exploit,
        "red success": games["red_success"] != success,
        "red access": members(games["held"]).astype(np.int8) + members(games["owned"]) != recorded["lvl"],
        "user sessions": user != recorded["nu"],
        "privileged sessions": np.minimum(games["privileged"], 9) != recorded["np"],
        "flagged sessions": np.minimum(games["flagged"], 9) != recorded["nr"],
        "file bit": members(games["malware"]) != recorded["mal"].astype(np.bool_),
        "decoy list": games["decoy_list"] != trace.decoys,
        "OTService": games["ot_running"] != trace.ot_running,
    }
