"""Optimiser state on resume: moments from the checkpoint, settings from the config."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from torch.optim import Optimizer


def load_moments(optimizer: Optimizer, state: dict[str, Any], *, scheduled: Container[str] = ()) -> None:
    """Restore moments and step counts of a `state_dict`, not its settings: they may have changed since.

    `scheduled`: settings that change during a run; these are restored.
    """
    settings = [
        {name: own for name, own in group.items() if name != "params" and name not in scheduled}
        for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(state)
    for group, own in zip(optimizer.param_groups, settings, strict=True):
        group.update(own)
