"""What every learner offers the loop, and the small things they share."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from optimist.config import A2CConfig, PPOConfig
from optimist.core.anchor import Anchor, NoAnchor
from optimist.errors import NonFiniteLoss
from optimist.networks.actor_critic import ActorCritic
from optimist.rollout.batch import Rollout


class Algorithm(Protocol):
    """A learner: it improves its policy on one rollout at a time."""

    policy: ActorCritic
    anchor: Anchor

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout; what there is to log."""

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, generators and anchor."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""


@dataclass(frozen=True)
class LossTerms:
    """The terms of one loss, coefficients and signs included, so that they add up."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    anchor: Tensor
    kl: Tensor  # not part of the sum
    mean_entropy: Tensor  # not part of the sum

    @property
    def total(self) -> Tensor:
        """L_total."""
        return self.policy + self.value + self.entropy + self.anchor


class MetricMeans:
    """Means of loss terms over an update's minibatches; reads nothing from the device until the end."""

    def __init__(self) -> None:
        self.sums: list[Tensor] = []
        self.count = 0

    def add(self, terms: LossTerms) -> None:
        """Add one minibatch."""
        values = [getattr(terms, f.name).detach() for f in fields(terms)]
        self.sums = values if not self.sums else [a + b for a, b in zip(self.sums, values, strict=True)]
        self.count += 1

    def result(self) -> dict[str, float]:
        """`loss/…` means, entropy and KL; raises NonFiniteLoss if one is not a number."""
        names = ("loss/policy", "loss/value", "loss/entropy", "loss/anchor", "policy/kl", "policy/entropy")
        means = {name: float(total) / self.count for name, total in zip(names, self.sums, strict=True)}
        for name, value in means.items():
            if not math.isfinite(value):
                raise NonFiniteLoss(f"{name} became {value}; lower the learning rate, or look at the rewards")
        return means


class ActorCriticLearner:
    """What PPO and A2C have in common: a policy, its optimiser, a generator for shuffling, an anchor."""

    def __init__(
        self,
        policy: ActorCritic,
        optimizer: torch.optim.Optimizer,
        config: PPOConfig | A2CConfig,
        anchor: Anchor | None,
        seed: int,
    ) -> None:
        self.policy, self.optimizer, self.anchor = policy, optimizer, anchor or NoAnchor()
        self.parameters = list(policy.parameters())
        self.generator = torch.Generator().manual_seed(seed)
        self._learning_rate, self._schedule = config.learning_rate, config.learning_rate_schedule
        self._max_grad_norm = config.max_grad_norm

    def set_learning_rate(self, progress: float) -> None:
        """The learning rate at this part of the run."""
        if self._schedule == "linear":
            for group in self.optimizer.param_groups:
                group["lr"] = self._learning_rate * (1.0 - progress)

    def step(self, loss: Tensor) -> None:
        """One step down the gradient of `loss`, its global norm clipped."""
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if self._max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self._max_grad_norm)
        self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, generator and anchor."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "anchor": self.anchor.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.anchor.load_state_dict(state["anchor"], self.policy)
