"""The door to ale-py: its vector environment with our settings, made so that nothing in it can end the process."""

from __future__ import annotations

from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from optimist.cores import at_idle_priority
from optimist.envs.atari.games import GAMES, rom_name
from optimist.errors import ConfigError, OptimistError, missing_extra, unknown_name

FRAME_SKIP = 4
"""Emulator frames of one step: the action is repeated, the last two frames are pooled."""
FOR_TWO = ("Combat", "Joust", "MazeCraze", "Warlords")
"""ROMs of ale-py that ALE does not let a single player play: it ends the process over them."""
SCREEN = (210, 160)
"""Rows and columns of the console's picture."""


def import_ale() -> ModuleType:
    """ale-py, if it is installed."""
    try:
        import ale_py
        import ale_py.roms
        import ale_py.vector_env
    except ImportError as error:
        raise missing_extra("Atari", "atari", "ale-py") from error
    module: ModuleType = ale_py
    return module


def find_rom(game: str) -> str:
    """The ROM of a game, present and undamaged; also of the games beyond the 49 that ale-py brings along.

    ALE ends the whole process over a ROM it cannot load, so it is never handed one that was not checked.
    """
    roms = import_ale().roms
    known: dict[str, str] = {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()} | {
        name: rom_name(name) for name in GAMES
    }
    if game in FOR_TWO:
        raise ConfigError(f"{game} is for two players or more, and cannot be played by one")
    if game not in known:
        raise unknown_name("Atari game", str(game), [name for name in known if name not in FOR_TWO])
    try:
        roms.get_rom_path(known[game])
    except OSError as error:  # not there, not readable, or another file than it should be
        reason = " ".join(str(error).split())
        raise OptimistError(f"cannot load the ROM of {game}: {reason}; reinstall ale-py") from error
    return known[game]


@cache
def action_names(game: str) -> tuple[str, ...]:
    """What the actions of a game are called, NOOP first."""
    ale_py = import_ale()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    console = ale_py.ALEInterface()
    console.loadROM(ale_py.roms.get_rom_path(find_rom(game)))
    return tuple(action.name for action in console.getMinimalActionSet())


def make_emulators(
    game: str,
    num_envs: int,
    *,
    sticky: float,
    no_ops: int,
    max_frames: int,
    stack: int,
    threads: int,
    idle: bool = False,
    in_color: bool = False,
) -> Any:
    """ale-py's vector environment: grey, 84 × 84, stacked; or in colour as on a television, one frame at a time.

    Both kinds play the same game from the same seeds and actions. Rewards stay raw, a lost life ends nothing, and a
    finished game begins anew within the step. `idle`: its threads play where nothing else wants the core.
    """
    rom = find_rom(game)
    height, width = SCREEN if in_color else (84, 84)
    # ALE writes its autoreset mode into Gymnasium's own metadata, which all vector environments share; ours get theirs.
    own = {"metadata": {}, "action_meanings": property(_names_of_actions), "send": _send}
    emulators = type("Emulators", (import_ale().vector_env.AtariVectorEnv,), own)
    make = partial(
        emulators,
        rom,
        num_envs,
        num_threads=threads,
        max_num_frames_per_episode=max_frames,
        repeat_action_probability=sticky,
        autoreset_mode=AutoresetMode.SAME_STEP,
        img_height=height,
        img_width=width,
        grayscale=not in_color,
        stack_num=1 if in_color else stack,
        frameskip=FRAME_SKIP,
        maxpool=True,
        noop_max=no_ops + 1,  # ALE draws from 0 … noop_max − 1, FIRE included where the game has it
        episodic_life=False,  # would restart the whole game at every lost life
        life_loss_info=False,  # would report a lost life as `terminated`, like the end of the game
        reward_clipping=False,  # would lose the raw reward
        use_fire_reset=True,
    )
    return at_idle_priority(make) if idle else make()


def emulator_seeds(seed: int, num_envs: int) -> NDArray[np.int64]:
    """A seed in [0, 2³¹) for each environment; unlike ALE's seed, seed + 1, … those of nearby seeds do not overlap."""
    return (np.random.SeedSequence(seed).generate_state(num_envs) >> 1).astype(np.int64)


def _send(emulators: Any, actions: NDArray[np.int64]) -> None:
    """As ale-py's own, by way of lists: it reads arrays number by number, four times as slowly."""
    emulators.ale.send(actions.tolist(), [1.0] * len(actions))


def _names_of_actions(emulators: Any) -> list[str]:
    return [action.name for action in emulators.ale.get_action_set()]
