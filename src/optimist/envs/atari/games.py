"""What is known of each game: ROM, scores of a random policy and a human, and when it waits for FIRE."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.errors import ConfigError, OptimistError, missing_extra, unknown_name

Slots = NDArray[np.intp]
"""Indices of environments in a vector environment."""


class Game(NamedTuple):
    """One game under the name that papers use."""

    name: str
    random_score: float
    human_score: float

    @property
    def rom(self) -> str:
        """The name of its ROM: MsPacman → ms_pacman, UpNDown → up_n_down."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    def human_normalized(self, score: float) -> float:
        """(score − random) / (human − random): 0 for a random policy, 1 for a human."""
        return (score - self.random_score) / (self.human_score - self.random_score)


def _read_games() -> dict[str, Game]:
    rows = (Path(__file__).parent / "scores.csv").read_text().split()[1:]
    games = [Game(name, float(random), float(human)) for name, random, human in (row.split(",") for row in rows)]
    return {game.name: game for game in games}


GAMES = _read_games()
"""Scores of no-op starts and at most 30 minutes: the table of DQN Zoo (dqn_zoo/atari_data.py, Apache-2.0, commit
359945d), which is that of the MuZero and Agent57 papers but for the random score of VideoPinball (0.0 there). The human
scores of the Nature paper are others."""


def get_game(name: str) -> Game:
    """One of the 49; an unknown name gets a suggestion."""
    if name not in GAMES:
        raise unknown_name("Atari game", name, GAMES)
    return GAMES[name]


MULTIPLAYER_GAMES = ("Combat", "Joust", "MazeCraze", "Warlords")
"""ROMs of ale-py that ALE cannot run for one agent: it ends the process when they are loaded."""


def import_ale() -> ModuleType:
    """Import ale-py, or raise an error that names the extra."""
    try:
        import ale_py
        import ale_py.roms
        import ale_py.vector_env
    except ImportError as error:
        raise missing_extra("Atari", "atari", "ale-py") from error
    module: ModuleType = ale_py
    return module


def ale_version() -> str:
    """ale-py and its version, as pip writes it."""
    return f"ale-py=={import_ale().__version__}"


def find_rom(game: str) -> str:
    """The ROM of a game, checked to be present and undamaged; also of games of ale-py beyond the 49.

    ALE ends the whole process if it cannot load a ROM, so every ROM is checked first.
    """
    roms = import_ale().roms
    known: dict[str, str] = {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}
    known |= {game.name: game.rom for game in GAMES.values()}
    if game in MULTIPLAYER_GAMES:
        raise ConfigError(f"{game} is a multiplayer game; expected one for a single agent (see `optimist games`)")
    if game not in known:
        raise unknown_name("Atari game", str(game), [name for name in known if name not in MULTIPLAYER_GAMES])
    try:
        roms.get_rom_path(known[game])
    except OSError as error:  # missing, not readable, or a wrong checksum
        reason = " ".join(str(error).split())
        raise OptimistError(f"cannot load the ROM of {game}: {reason}; reinstall ale-py") from error
    return known[game]


@cache
def action_names(game: str) -> tuple[str, ...]:
    """The names of a game's actions, NOOP first."""
    ale_py = import_ale()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ale_py.ALEInterface()
    emulator.loadROM(ale_py.roms.get_rom_path(find_rom(game)))
    return tuple(action.name for action in emulator.getMinimalActionSet())


FIRE_AFTER_LIFE_LOSS = {
    "Breakout": 0,  # no ball before FIRE
    "Gopher": 36,  # FIRE is ignored for the first 32 or so
    "NameThisGame": 64,  # FIRE is ignored for the first 8 to 60
}
"""Steps after a lost life at which FIRE is needed. Measured by playing all 49 games without FIRE after a lost life.
These three then stand still. The others continue by themselves or with some other action, except VideoPinball, which
waits for the agent's own shot: pull down the plunger, then FIRE."""
FIRE_AT_START = {
    "NameThisGame": 104,  # FIRE is ignored for the first 90 to 97, which includes the FIRE of a reset
}
"""Steps after a reset at which FIRE is needed. Measured by two different action sequences without FIRE in all 49 games:
the other games that respond to actions without FIRE differ within 106 steps. In VideoPinball, Tennis and Bowling the
agent has to choose the moment of FIRE to score."""
FIRE_AT_STICKY_START = {
    "Breakout": 0,  # a reset presses FIRE for a single frame
}
"""The same with sticky actions, which suppress some of the FIRE actions of a reset."""


class FireButton:
    """Replaces an action by FIRE in slots that wait for it, after a lost life or at the start of an episode."""

    def __init__(self, game: str, num_envs: int, fire: int | None, sticky: float = 0.0) -> None:
        """`fire`: the index of the action FIRE; None if the game has none."""
        self.fire = -1 if fire is None else fire
        self.delay = None if fire is None else FIRE_AFTER_LIFE_LOSS.get(game)
        at_start = FIRE_AT_START | (FIRE_AT_STICKY_START if sticky else {})
        self.first_delay = -1 if fire is None else at_start.get(game, -1)
        self.steps_left = np.full(num_envs, -1)  # until FIRE; below 0: FIRE is not needed

    def press(self, slots: Slots, actions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The actions to execute in these slots, and where FIRE replaced one; None if nowhere."""
        if self.delay is None:
            return actions, None
        pressed = self.steps_left[slots] == 0
        self.steps_left[slots] -= 1
        if not pressed.any():
            return actions, None
        return np.where(pressed, self.fire, actions), pressed

    def update(self, slots: Slots, life_lost: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Restart the countdown after lost lives and ended episodes."""
        if self.delay is not None:
            self.steps_left[slots[life_lost]] = self.delay
            self.steps_left[slots[ended]] = self.first_delay
