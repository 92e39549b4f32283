"""Station 1, environments: action → observation, raw reward, ends. Importing this registers ours with Gymnasium."""

from optimist.envs.family import Family, own_families
from optimist.envs.make import make_envs
from optimist.envs.wrappers import can_save_state

__all__ = ["Family", "can_save_state", "make_envs"]

for _family in own_families():
    _family.register()
