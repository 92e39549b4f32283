"""What the method asks of a policy, and the little more that a learner asks."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from optimist.errors import ConfigError


class Policy(Protocol):
    """What an anchor asks of a policy; the cloned reference also copies it, as a `torch.nn.Module`."""

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π_θ(a|s), [B]."""

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""


class Evaluator(Policy, Protocol):
    """A policy that evaluates given rows in one forward pass."""

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s), each [B]."""


def require_policy(policy: object) -> None:
    """Raise unless the policy has the two methods of `Policy`."""
    missing = [name for name in ("log_prob", "value") if not callable(getattr(policy, name, None))]
    if missing:
        raise ConfigError(
            f"{type(policy).__name__} has no method {' and no method '.join(missing)}; OPR needs "
            "log_prob(obs, actions) -> log π(a|s) and value(obs) -> V(s), [B] each: add them to the policy"
        )
