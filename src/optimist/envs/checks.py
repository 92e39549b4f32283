"""Checks of what a caller gives to our own vector environments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.errors import ConfigError, ShapeMismatch


def checked_actions(actions: NDArray[Any], num_envs: int, num_actions: int) -> NDArray[np.int64]:
    """The actions [N] as int64; raise unless each is an integer in [0, `num_actions`)."""
    actions = np.asarray(actions)
    if actions.shape != (num_envs,) or actions.dtype.kind not in "iu":
        raise ShapeMismatch(f"actions is {actions.dtype}{list(actions.shape)}, expected int64[{num_envs}]")
    checked = actions.astype(np.int64, copy=False)
    # Viewed as unsigned, a negative number is huge: one comparison finds both kinds of invalid action.
    if checked.view(np.uint64).max() >= num_actions:
        raise ConfigError(f"actions must be in [0, {num_actions}), got {actions.min()} to {actions.max()}")
    return checked


def reset_mask(options: dict[str, Any] | None, num_envs: int) -> NDArray[np.bool_]:
    """The environments to reset, [N]: those in `options["reset_mask"]`, or all."""
    if not options:
        return np.ones(num_envs, np.bool_)
    mask = np.asarray(options.get("reset_mask"))
    if set(options) != {"reset_mask"} or mask.shape != (num_envs,) or mask.dtype != np.bool_:
        raise ShapeMismatch(f"reset takes one option, reset_mask as bool[{num_envs}]; got {options}")
    return mask
