"""Proof of exactness: the same play in ale-py and here, compared on every frame."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from a2600.core import Console
from a2600.env import AtariVectorEnv
from a2600.errors import A2600Error
from a2600.games import Game

ALE_VERSION = "0.12.1"
"""The reference."""


@dataclass
class Report:
    """Frames that were compared, and how many differ in what; `first` describes the first difference."""

    game: str
    seed: int
    asked: int
    """Frames that were asked for."""
    all_actions: bool = False
    ale: str = ALE_VERSION
    """Version of ale-py."""
    frames: int = 0
    resets: int = 0
    episodes: int = 0
    score: int = 0
    observations: int = 0
    wrong: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("ram", "screen", "signals", "observation"), 0))
    first: str = ""

    @property
    def exact(self) -> bool:
        """Whether nothing differs."""
        return not any(self.wrong.values())

    def count(self, what: str, frame: int, detail: str) -> None:
        """Record a difference."""
        self.wrong[what] += 1
        self.first = self.first or f"{what} at frame {frame}: {detail}"

    def line(self) -> str:
        """One line of text."""
        outcome = "exact" if self.exact else f"differs {self.wrong}; first {self.first}"
        return (
            f"{self.game} seed {self.seed}: {self.frames} frames, {self.resets} resets, {self.episodes} ends, "
            f"{self.observations} observations: {outcome}"
        )


def play(actions: list[int], seed: int) -> Iterator[int]:
    """Random actions held for 1 to 30 frames; the favourite actions change every few hundred frames."""
    rng = random.Random(seed)
    while True:
        size = rng.choice([2, 3, 5, len(actions), len(actions)])
        pool = [rng.choice(actions) for _ in range(size)] if size < len(actions) else actions
        shortest, longest = rng.choice([(1, 4), (2, 12), (1, 30), (4, 30)])
        for _ in range(rng.randint(5, 40)):
            action = rng.choice(pool)
            for _ in range(rng.randint(shortest, longest)):
                yield action


def import_ale() -> Any:
    """ale-py, with its messages off."""
    try:
        import ale_py
    except ImportError:
        raise A2600Error("comparing needs ale-py; pip install 'a2600[roms]'") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def verify(
    game: Game, frames: int, seed: int, *, all_actions: bool = False, rom_folder: str | os.PathLike[str] | None = None
) -> Report:
    """Compare RAM, screen, reward, lives and end of every frame from power-on, with resets; then observations."""
    report = Report(game.name, seed, frames, all_actions, import_ale().__version__)
    _verify_frames(report, game, frames, list(range(18)) if all_actions else game.actions, rom_folder)
    _verify_observations(report, game, max(1, frames // 40), rom_folder)
    return report


def _verify_frames(report: Report, game: Game, frames: int, actions: list[int], rom_folder: Any) -> None:
    """Frame by frame. A reset follows each end, and about one in 3,000 other frames."""
    ale_py = import_ale()
    ale, console = ale_py.ALEInterface(), Console(game, rom_folder)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", report.seed)
    ale.loadROM(ale_py.roms.get_rom_path(game.name))
    rng, screen = random.Random(report.seed + 1), np.zeros((210, 160), np.uint8)

    def compare(frame: int) -> None:
        ram, mine = ale.getRAM(), console.ram
        if not np.array_equal(ram, mine):
            at = int(np.flatnonzero(ram != mine)[0])
            report.count("ram", frame, f"byte {at} is {mine[at]}, expected {ram[at]}")
        ale.getScreen(screen)
        picture = console.screen
        if not np.array_equal(screen, picture):
            y, x = (int(i) for i in np.argwhere(screen != picture)[0])
            report.count("screen", frame, f"pixel {x} of line {y} is {picture[y, x]}, expected {screen[y, x]}")

    def reset(frame: int) -> None:
        ale.reset_game()
        console.reset()
        report.resets += 1
        compare(frame)

    reset(0)
    for frame, action in zip(range(1, frames + 1), play(actions, report.seed), strict=False):
        reward = ale.act(action)
        expected, signals = (reward, ale.lives(), ale.game_over(with_truncation=False)), console.act(action)
        report.frames, report.score = frame, report.score + reward
        if signals != expected:
            report.count("signals", frame, f"reward, lives, end are {signals}, expected {expected}")
        compare(frame)
        report.episodes += expected[2]
        if report.wrong["ram"] > 100:
            return
        if expected[2] or rng.random() < 1 / 3000:
            reset(frame)


def _verify_observations(report: Report, game: Game, steps: int, rom_folder: Any) -> None:
    """84×84 observations, rewards and ends of two environments against ale-py's vector environment."""
    vector_env = import_ale().vector_env.AtariVectorEnv
    # ale-py writes its autoreset mode into the metadata of the class it is given
    theirs = type("AleVectorEnv", (vector_env,), {"metadata": {}})(game.name, 2, num_threads=1, reward_clipping=False)
    mine = AtariVectorEnv(game.name, 2, num_threads=1, reward_clipping=False, rom_folder=rom_folder, allow_inexact=True)
    expected: tuple[Any, ...] = theirs.reset(seed=report.seed)
    found: tuple[Any, ...] = mine.reset(seed=report.seed)
    rng = np.random.default_rng(report.seed)
    for step in range(steps + 1):
        report.observations += 2
        for name, ours, ale in zip(("observation", "reward", "terminated", "truncated"), found, expected, strict=False):
            if not isinstance(ale, dict) and not np.array_equal(ours, ale):
                report.count("observation", step, f"{name} of a step differs in {np.sum(ours != ale)} values")
        if step % 4 == 0:
            actions = rng.integers(0, len(game.actions), 2)
        expected, found = theirs.step(actions), mine.step(actions)
    mine.close()
    theirs.close()


def append_row(path: Path | None, report: Report) -> None:
    """Add a report to a JSONL file, if one is given."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(report)) + "\n")


def read_rows(path: Path | None) -> dict[tuple[str, int, int, bool], Report]:
    """The reports of a JSONL file by game, seed, frames and kind of actions; none if there is no file."""
    if path is None or not path.is_file():
        return {}
    try:
        reports = [Report(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise A2600Error(f"{path} is not a file of `a2600 verify --out` ({error}); name another file") from None
    return {(report.game, report.seed, report.asked, report.all_actions): report for report in reports}


def table(reports: list[Report]) -> str:
    """Markdown: one row for each game, the sums over its seeds, and how many games are exact."""
    games = list(dict.fromkeys(report.game for report in reports))
    seeds = [str(seed) for seed in sorted({report.seed for report in reports})]
    lines = [
        f"Against ale-py {reports[0].ale}, {reports[0].asked:,} frames for each of the seeds {', '.join(seeds)}.",
        "",
        "| game | frames | resets | ends | score | observations | differences |",
        "|---|---|---|---|---|---|---|",
    ]
    exact = 0
    for game in games:
        rows = [report for report in reports if report.game == game]
        names = ("frames", "resets", "episodes", "score", "observations")
        sums = [f"{sum(getattr(row, name) for row in rows):,}" for name in names]
        wrong = [f"seed {row.seed}: {row.first}" for row in rows if not row.exact]
        exact += not wrong
        lines.append(f"| {' | '.join([game, *sums, wrong[0] if wrong else 'none'])} |")
    return "\n".join([*lines, "", f"{exact} of {len(games)} games are exact."])
