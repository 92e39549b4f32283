"""Station 4. π_good: what the current policy is compared with."""

from __future__ import annotations

import copy
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from optimist.core.cloning import bc_loss
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodEpisodeMemory
from optimist.core.optimizer import load_moments
from optimist.core.policy import Policy
from optimist.errors import ConfigError


class Reference(Protocol):
    """A reading of π_good."""

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor | None:
        """log π_good(a|s) on any state; None where this reading does not define it."""

    def refresh(self, policy: Policy, memory: GoodEpisodeMemory, admitted: int, generator: torch.Generator) -> None:
        """Called once per update, with the number of episodes admitted since the last."""

    def state_dict(self) -> dict[str, Any]:
        """What must survive a resume."""

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Take over `state_dict`."""


class Recorded:
    """π_good is the probability stored with each step: defined on replayed steps only, so fresh ones have Δ = 0."""

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor | None:
        """Undefined away from M."""
        return None

    def refresh(self, policy: Policy, memory: GoodEpisodeMemory, admitted: int, generator: torch.Generator) -> None:
        """Nothing to refresh."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Nothing to take over."""


class Cloned:
    """π_good is a copy of the policy network cloned on M, refreshed every few updates; defined on any state."""

    def __init__(self, config: OPRConfig) -> None:
        self.config = config
        self.network: nn.Module | None = None
        self.optimizer: torch.optim.Adam | None = None
        self.updates = 0

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor | None:
        """log π_clone(a|s); undefined until M has been cloned once."""
        if self.network is None:
            return None
        with torch.no_grad():
            return cast(Policy, self.network).log_prob(obs, actions)

    def refresh(self, policy: Policy, memory: GoodEpisodeMemory, admitted: int, generator: torch.Generator) -> None:
        """Every `reference_interval` updates: minimise L_BC over M."""
        self.updates += 1
        if not memory.episodes or (self.network is not None and self.updates % self.config.reference_interval):
            return
        if self.network is None:
            self._start_from(policy)
        assert self.network is not None
        assert self.optimizer is not None
        _copy_buffers(policy, self.network)
        for good in memory.passes(self.config.reference_epochs, self.config.bc_batch_size, generator):
            self.optimizer.zero_grad()
            torch.autograd.backward(bc_loss(cast(Policy, self.network).log_prob(good.obs, good.actions)))
            self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser and clock."""
        if self.network is None or self.optimizer is None:
            return {"updates": self.updates}
        network = self.network.state_dict()
        return {"updates": self.updates, "network": network, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Take over network, optimiser and clock."""
        if "updates" not in state:
            raise ConfigError("what was stored has no cloned reference: keep the reading of π_good it was made with")
        self.updates = state["updates"]
        if "network" in state:
            self._start_from(policy)
            assert self.network is not None
            assert self.optimizer is not None
            self.network.load_state_dict(state["network"])
            load_moments(self.optimizer, state["optimizer"])

    def _start_from(self, policy: Policy) -> None:
        self.network = _copy_of(policy)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=self.config.reference_learning_rate)


class Snapshot:
    """π_good is the running average of the policies that were current when episodes were admitted."""

    def __init__(self, config: OPRConfig) -> None:
        self.config = config
        self.network: nn.Module | None = None

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor | None:
        """log π_average(a|s); undefined until something has been admitted."""
        if self.network is None:
            return None
        with torch.no_grad():
            return cast(Policy, self.network).log_prob(obs, actions)

    def refresh(self, policy: Policy, memory: GoodEpisodeMemory, admitted: int, generator: torch.Generator) -> None:
        """After an admission: average ← decay · average + (1 − decay) · policy."""
        if not admitted:
            return
        if self.network is None:
            self.network = _copy_of(policy)
            return
        with torch.no_grad():
            current = cast(nn.Module, policy).parameters()
            for average, parameter in zip(self.network.parameters(), current, strict=True):
                average.lerp_(parameter, 1.0 - self.config.snapshot_decay)
        _copy_buffers(policy, self.network)

    def state_dict(self) -> dict[str, Any]:
        """The averaged network."""
        return {} if self.network is None else {"network": self.network.state_dict()}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Take over the averaged network."""
        if "network" in state:
            self.network = _copy_of(policy)
            self.network.load_state_dict(state["network"])


def make_reference(config: OPRConfig) -> Reference:
    """The reading of π_good that the config names."""
    if config.reference == "recorded":
        return Recorded()
    return Cloned(config) if config.reference == "cloned" else Snapshot(config)


def _copy_buffers(policy: Policy, network: nn.Module) -> None:
    """What the policy knows and does not learn by gradients: running statistics of observations."""
    for kept, buffer in zip(network.buffers(), cast(nn.Module, policy).buffers(), strict=True):
        kept.copy_(buffer)


def _copy_of(policy: Policy) -> nn.Module:
    if not isinstance(policy, nn.Module):
        raise ConfigError("reference 'cloned' and 'snapshot' copy the policy, which must be a torch.nn.Module")
    try:
        return copy.deepcopy(policy).requires_grad_(True)
    except RuntimeError as error:
        reason = str(error).partition(".")[0]
        raise ConfigError(f"reference 'cloned' and 'snapshot' need a policy that can be copied: {reason}") from error
