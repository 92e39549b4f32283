"""An actor that sees less than its critic, and never takes an action that the observation says is of no use.

The observation is a vector [what the actor sees | mask, one entry an action | what only the critic sees]. The mask and
the critic's part are inside it, so that rollouts, the memory M and cloning carry them along without knowing.
"""

from __future__ import annotations

from torch import Tensor, nn

from optimist.config import NetworkConfig
from optimist.errors import ConfigError

FORBIDDEN = -1e8
"""Logit of a masked action: its probability is exactly 0, and log-probabilities stay finite."""


class PartialActor(nn.Module):
    """An actor on the first `visible` inputs, of which the last `masked` say which actions are allowed."""

    def __init__(self, actor: nn.Module, visible: int, masked: int) -> None:
        super().__init__()
        self.actor, self.visible, self.masked = actor, visible, masked

    def forward(self, features: Tensor) -> Tensor:
        """[B, visible or more] → action parameters [B, A]."""
        seen = features[..., : self.visible]
        params: Tensor = self.actor(seen)
        return params.masked_fill(seen[..., self.visible - self.masked :] == 0, FORBIDDEN) if self.masked else params


def visible_inputs(config: NetworkConfig, width: int, num_actions: int | None) -> tuple[int, int]:
    """How many of the `width` inputs the actor sees, and how many of these are a mask.

    `num_actions` is None where actions are not one choice among several.
    """
    if config.action_mask and num_actions is None:
        raise ConfigError("network.action_mask needs one choice among several actions (a Discrete action space)")
    masked = num_actions or 0 if config.action_mask else 0
    visible = width - config.privileged
    if visible - masked < 1:
        raise ConfigError(
            f"an observation of {width} cannot hold {config.privileged} entries for the critic alone "
            f"(network.privileged), a mask of {masked} and something to see"
        )
    return visible, masked
