"""Station 4. The cloned reading of π_good: a copy of the policy network, cloned on M.

The other reading, `recorded`, needs no object: π_good is the probability stored with each replayed step.
"""

from __future__ import annotations

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn

from optimist.core.cloning import bc_loss
from optimist.core.memory import GoodEpisodeMemory
from optimist.core.optimizer import load_moments
from optimist.core.policy import Policy
from optimist.errors import ConfigError

REFRESH_INTERVAL = 10
"""Updates between two passes over M."""
LEARNING_RATE = 1e-3
"""Adam's, for cloning the reference."""


class ClonedReference:
    """π_good as a network cloned on M and refreshed every few updates; defined on any state."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.network: nn.Module | None = None
        self.optimizer: torch.optim.Adam | None = None
        self.updates = 0

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor | None:
        """log π_good(a|s); None until M has been cloned once."""
        if self.network is None:
            return None
        with torch.no_grad():
            return cast(Policy, self.network).log_prob(obs, actions)

    def refresh(self, policy: Policy, memory: GoodEpisodeMemory, generator: torch.Generator) -> None:
        """Minimise L_BC over M, every `REFRESH_INTERVAL` updates; called once per update."""
        self.updates += 1
        if not memory.episodes or (self.network is not None and self.updates % REFRESH_INTERVAL):
            return
        if self.network is None:
            self._start_from(policy)
        assert self.network is not None
        assert self.optimizer is not None
        for own, current in zip(self.network.buffers(), cast(nn.Module, policy).buffers(), strict=True):
            own.copy_(current)  # running statistics of observations
        for good in memory.passes(1, self.batch_size, generator):
            self.optimizer.zero_grad()
            torch.autograd.backward(bc_loss(cast(Policy, self.network).log_prob(good.obs, good.actions)))
            self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser and number of updates."""
        if self.network is None or self.optimizer is None:
            return {"updates": self.updates}
        network = self.network.state_dict()
        return {"updates": self.updates, "network": network, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Restore `state_dict`."""
        if "updates" not in state:
            raise ConfigError("the saved state has no cloned reference; keep the `reference` it was saved with")
        self.updates = state["updates"]
        if "network" in state:
            self._start_from(policy)
            assert self.network is not None
            assert self.optimizer is not None
            self.network.load_state_dict(state["network"])
            load_moments(self.optimizer, state["optimizer"])

    def _start_from(self, policy: Policy) -> None:
        self.network = _copy_of(policy)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=LEARNING_RATE)


def _copy_of(policy: Policy) -> nn.Module:
    if not isinstance(policy, nn.Module):
        raise ConfigError(
            f"reference 'cloned' copies the policy and needs a torch.nn.Module, got {type(policy).__name__}; "
            "use reference 'recorded'"
        )
    try:
        return copy.deepcopy(policy).requires_grad_(True)
    except RuntimeError as error:
        reason = str(error).partition(".")[0]
        raise ConfigError(f"reference 'cloned' needs a policy that can be copied: {reason}") from error
