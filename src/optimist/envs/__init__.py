"""Station 1, environments: action → observation, raw reward, ends. Importing this registers ours with Gymnasium."""

from __future__ import annotations

import gymnasium

from optimist.envs.atari import register_atari
from optimist.envs.cage2 import register_cage2
from optimist.envs.make import can_save_state, make_envs

__all__ = ["can_save_state", "make_envs"]


def register_small() -> None:
    """Register DeepSea and Key-Door-Treasure; their code is loaded when one is made."""
    for name, module in (("DeepSea", "deepsea"), ("KeyDoorTreasure", "key_door")):
        if f"optimist/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"optimist/{name}-v0",
                entry_point=f"optimist.envs.{module}:{name}Env",
                vector_entry_point=f"optimist.envs.{module}:{name}VectorEnv",
            )


register_small()
register_cage2()
register_atari()
