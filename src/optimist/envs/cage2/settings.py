"""The names a game is configured with, checked, and turned into what the kernels take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from optimist.envs.cage2.state import B_LINE, MEANDER, REDS, Settings
from optimist.errors import ConfigError, unknown_name

RED_NAMES: Final = (*REDS, "mixed")
GREEN_NAMES: Final = ("Sleep", "GreenAgent")
RULES: Final = ("final", "competition")
TABLES: Final = ("official", "cardiff")
EVEN_WEIGHTS: Final = (0.5, 0.5, 0.0)
"""Of `mixed` by default: half B_line, half Meander."""


def make_settings(
    red: str,
    green: str = "Sleep",
    rules: str = "final",
    table: str = "official",
    horizon: int = 100,
    red_weights: Mapping[str, float] | Sequence[float] | None = None,
) -> Settings:
    """The settings behind these names; `red_weights` (by name, or in the order of `REDS`) belong to `mixed`."""
    for kind, name, known in (
        ("red agent", red, RED_NAMES),
        ("green agent", green, GREEN_NAMES),
        ("rule set", rules, RULES),
        ("table", table, TABLES),
    ):
        if name not in known:
            raise unknown_name(kind, str(name), known)
    if red_weights is not None and red != "mixed":
        raise ConfigError(f"red_weights belong to red='mixed', but red is '{red}'")
    weights = _weights(red, red_weights)
    return Settings(
        competition=rules == "competition",
        cardiff_table=table == "cardiff",
        green=green == "GreenAgent",
        horizon=check_horizon(horizon),
        b_line_below=weights[B_LINE],
        meander_below=weights[B_LINE] + weights[MEANDER] if weights[-1] > 0 else 1.0,
    )


def check_horizon(horizon: int) -> int:
    """The horizon, if it is a number of steps."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or not 0 < horizon < 2**31:
        raise ConfigError(f"horizon must be a whole number of steps above 0, got {horizon!r}")
    return int(horizon)


def _weights(red: str, given: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    """How likely each of `REDS` plays an episode."""
    if red != "mixed":
        return [float(red == name) for name in REDS]
    if isinstance(given, Mapping):
        for name in given:
            if name not in REDS:
                raise unknown_name("red agent", str(name), REDS)
        given = [given.get(name, 0.0) for name in REDS]
    weights = [float(weight) for weight in (EVEN_WEIGHTS if given is None else given)]
    if len(weights) != len(REDS) or min(weights) < 0 or not 0 < sum(weights) < float("inf"):
        raise ConfigError(
            f"red_weights must be {len(REDS)} numbers (B_line, Meander, Sleep), none below 0, not all 0; got {weights}"
        )
    return [weight / sum(weights) for weight in weights]
