"""Complete settings under short names, each value with its origin; imports no torch."""

from optimist.presets import atari, cage2, grids, gym  # noqa: F401  importing a family registers its presets
from optimist.presets.registry import Method, Parameter, Preset, all_presets, get_preset, register

__all__ = ["Method", "Parameter", "Preset", "all_presets", "get_preset", "register"]
