"""Atari 2600 games on ale-py or a2600: observations 84 × 84 × 4 uint8, raw rewards, whole episodes.

Importing this package does not load ale-py (extra `atari`, GPL-2.0); making an environment does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from optimist.envs.atari.games import find_rom, get_game
from optimist.envs.family import Family
from optimist.errors import install_command


def _check(kwargs: Mapping[str, Any]) -> None:
    """Raise if the game's ROM is missing, where ale-py is installed."""
    if importlib.util.find_spec("ale_py") is not None:
        find_rom(kwargs.get("game", ""))


def _choose_emulator(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords with the emulator that "auto" means here, where ale-py is installed."""
    if importlib.util.find_spec("ale_py") is None:
        return dict(kwargs)
    from optimist.envs.atari.console_emulators import choose_emulator

    return {**kwargs, "emulator": choose_emulator(kwargs.get("emulator", "auto"), kwargs.get("game", ""))}


def _human_normalized(game: str, score: Any) -> Any:
    return get_game(game).human_normalized(score)


FAMILIES = (
    Family(
        name="Atari",
        envs={"optimist/Atari-v0": {"vector_entry_point": f"{__name__}.vector:AtariVectorEnv"}},
        label=lambda _, kwargs: str(kwargs.get("game", "?")),
        label_kwargs=("game", "sticky"),
        # The last two are former names, in published configs.
        performance_kwargs=("emulator", "num_workers", "worker_type", "threads", "priority", "lanes", "workers"),
        check=_check,
        resolve=_choose_emulator,
        normalized_score=_human_normalized,
        install=install_command("atari"),
    ),
)
