"""An optimiser taken up again: its moments from what was saved, its rates and constants as they are configured now."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from torch.optim import Optimizer


def load_moments(optimizer: Optimizer, state: dict[str, Any], *, scheduled: Container[str] = ()) -> None:
    """Take over moments and clocks of a `state_dict`, not the settings: those saved may have been changed since.

    `scheduled`: settings that move in the course of a run; these are where they were.
    """
    settings = [
        {name: own for name, own in group.items() if name != "params" and name not in scheduled}
        for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(state)
    for group, own in zip(optimizer.param_groups, settings, strict=True):
        group.update(own)
