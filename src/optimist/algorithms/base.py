"""What every learner offers the loop, and the small things they share."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Protocol

import torch
from torch import Tensor

from optimist.config import ActorCriticConfig, AlgorithmConfig
from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.optimizer import load_moments
from optimist.errors import NonFiniteLoss
from optimist.networks.actor_critic import ActorCritic
from optimist.networks.flat import flatten_parameters
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout


class Algorithm(Protocol):
    """A learner: it improves its policy on one rollout at a time."""

    anchor: Anchor

    @property
    def policy(self) -> PolicyNetwork:
        """What it improves."""

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout; what there is to log."""

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, generators and anchor."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""

    def forget_unfinished(self) -> None:
        """Episodes in play were cut off: their environments have been restarted."""


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

    def detached(self) -> LossTerms:
        """The same numbers, without the graph behind them."""
        return LossTerms(*(getattr(self, f.name).detach() for f in fields(self)))


METRIC_NAMES = {
    "policy": "loss/policy",
    "value": "loss/value",
    "entropy": "loss/entropy",
    "anchor": "loss/anchor",
    "kl": "policy/kl",
    "mean_entropy": "policy/entropy",
}


class MetricMeans:
    """Means of loss terms over an update's minibatches; reads nothing from the device until the end."""

    def __init__(self) -> None:
        self.terms: list[LossTerms] = []

    def add(self, terms: LossTerms) -> None:
        """Add one minibatch."""
        self.terms.append(terms.detached())

    def result(self) -> dict[str, float]:
        """`loss/…` means, entropy and KL; raises NonFiniteLoss if one is not a number.

        Empty if there was no minibatch: a rollout may consist of dead steps alone.
        """
        if not self.terms:
            return {}
        means = {
            METRIC_NAMES[f.name]: float(torch.stack([getattr(terms, f.name) for terms in self.terms]).mean())
            for f in fields(LossTerms)
        }
        for name, value in means.items():
            if not math.isfinite(value):
                raise NonFiniteLoss(f"{name} became {value}; lower the learning rate, or look at the rewards")
        return means


class Learner:
    """What all learners have in common: a policy, its optimiser, a generator for shuffling, an anchor."""

    optimizer: torch.optim.Optimizer

    def __init__(self, policy: PolicyNetwork, config: AlgorithmConfig, anchor: Anchor | None, seed: int) -> None:
        self.policy, self.anchor = policy, anchor or NoAnchor()
        self.flat = flatten_parameters(policy)
        self.generator = torch.Generator(self.flat.device).manual_seed(seed)
        self._learning_rate, self._schedule = config.learning_rate, config.learning_rate_schedule
        self._max_grad_norm = config.max_grad_norm

    def set_learning_rate(self, progress: float) -> None:
        """The learning rate at this part of the run."""
        if self._schedule == "linear":
            self._set_rate(self._learning_rate * (1.0 - progress))

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)  # a recorded step reads it where it lies
            else:
                group["lr"] = rate

    def step(self, loss: Tensor) -> None:
        """One step down the gradient of `loss`, its global norm clipped."""
        assert self.flat.grad is not None
        self.flat.grad.zero_()
        torch.autograd.backward(loss)
        self.descend()

    def descend(self) -> None:
        """One step down the gradient there is, its global norm clipped."""
        assert self.flat.grad is not None
        if self._max_grad_norm is not None:
            norm = torch.linalg.vector_norm(self.flat.grad)
            # Where reading the norm costs nothing, a small one saves the rest: the factor would be 1.
            if norm.is_cuda or not norm.item() + 1e-6 <= self._max_grad_norm:
                self.flat.grad.mul_((self._max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        self.optimizer.step()

    def step_alone(self, loss: Tensor) -> None:
        """One step on a loss in which some parameters have no part: these, and their moments, stay as they are.

        Within the flat vector a parameter without a gradient would otherwise go on along its momentum: cloning the
        policy would move the critic.
        """
        moments = self.optimizer.state.get(self.flat, {}).values()
        kept = [t for t in (self.flat.data, *moments) if isinstance(t, Tensor) and t.shape == self.flat.shape]
        before = [tensor.clone() for tensor in kept]
        self.step(loss)
        gradients = [parameter.grad for parameter in self.policy.parameters() if parameter.grad is not None]
        untouched = torch.cat([(~gradient.any()).expand(gradient.numel()) for gradient in gradients])
        for tensor, old in zip(kept, before, strict=True):
            tensor.copy_(torch.where(untouched, old, tensor))

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
        self.load_optimizer(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.anchor.load_state_dict(state["anchor"], self.policy)

    def load_optimizer(self, state: dict[str, Any]) -> None:
        """Take over the optimiser's part of it; rates and constants are the config's."""
        load_moments(self.optimizer, state, scheduled={"lr"} if self._schedule == "linear" else ())

    def forget_unfinished(self) -> None:
        """Episodes in play were cut off: their environments have been restarted."""
        self.anchor.forget_unfinished()


class ActorCriticLearner(Learner):
    """A learner whose policy has an actor and a critic."""

    policy: ActorCritic

    def __init__(self, policy: ActorCritic, config: ActorCriticConfig, anchor: Anchor | None, seed: int) -> None:
        super().__init__(policy, config, anchor, seed)
