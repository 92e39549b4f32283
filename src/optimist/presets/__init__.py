"""Complete typed configs under short names, each value with its origin; imports no torch."""

from optimist.presets import (  # noqa: F401  importing a family registers its presets
    atari,
    cage2,
    cage2_best,
    deepsea,
    gym,
    keydoor,
    mujoco,
    value_based,
)
from optimist.presets.registry import Parameter, Preset, all_presets, get_preset, preset

__all__ = ["Parameter", "Preset", "all_presets", "get_preset", "preset"]
