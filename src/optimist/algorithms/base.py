"""Learner: the base class of all learners, the terms of their losses, and the means of these terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from optimist.config import NetworkConfig
from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.optimizer import load_moments
from optimist.core.steps import Rollout
from optimist.errors import NonFiniteLoss
from optimist.networks.actor_critic import ActorCritic, make_actor_critic
from optimist.networks.flat import flatten_parameters
from optimist.networks.policy import PolicyNetwork


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
        """The same numbers, detached from the autograd graph."""
        return LossTerms(*(getattr(self, f.name).detach() for f in fields(self)))


@dataclass(frozen=True)
class QTerms:
    """The terms of one loss, coefficients included, so that they add up."""

    td: Tensor
    anchor: Tensor
    mean_q: Tensor  # not part of the sum
    row_losses: Tensor  # [B] not part of the sum

    @property
    def total(self) -> Tensor:
        """L_total."""
        return self.td + self.anchor


METRICS = {
    "loss/policy": ("–", "policy gradient term: the clipped surrogate of PPO, −log π · advantage of A2C"),
    "loss/value": ("–", "c_v times the value error"),
    "loss/entropy": ("–", "−c_ent times the policy's entropy"),
    "loss/anchor": ("–", "the anchor's loss term: λ_BC times L_BC for OPR, 0 without an anchor"),
    "policy/kl": ("nats", "KL from the policy that collected to the updated one, estimated on the update's rows"),
    "policy/entropy": ("nats", "mean entropy of the policy over the update's rows; a fall to 0 is entropy collapse"),
}
"""Metric → unit and meaning, in the order of the fields of LossTerms."""


class MetricMeans:
    """Means of loss terms over an update's minibatches; synchronises with the device once, at the end."""

    def __init__(self) -> None:
        self.terms: list[LossTerms] = []

    def add(self, terms: LossTerms) -> None:
        """Add one minibatch."""
        self.terms.append(terms.detached())

    def result(self) -> dict[str, float]:
        """`loss/…` means, entropy and KL; raise NonFiniteLoss if one is not finite.

        Empty if there was no minibatch: a rollout may consist of reset steps alone.
        """
        if not self.terms:
            return {}
        means = {
            name: float(torch.stack([getattr(terms, f.name) for terms in self.terms]).mean())
            for name, f in zip(METRICS, fields(LossTerms), strict=True)
        }
        require_finite(means)
        return means


def require_finite(metrics: dict[str, float]) -> None:
    """Raise NonFiniteLoss, with its name, if a metric is nan or infinite."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise NonFiniteLoss(f"{name} became {value}; lower the learning rate or check the rewards")


class Learner:
    """A policy, its optimiser, a generator for shuffling and an anchor; `update` improves the policy."""

    stores_frames = False
    """Whether the constructor takes `frame_stack`, to store each frame of stacked images once."""
    optimizer: torch.optim.Optimizer

    def __init__(self, policy: PolicyNetwork, config: Any, anchor: Anchor | None, seed: int) -> None:
        self.policy, self.config, self.anchor = policy, config, anchor or NoAnchor()
        self.flat = flatten_parameters(policy)
        self.generator = torch.Generator(self.flat.device).manual_seed(seed)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout and return metrics."""
        raise NotImplementedError

    def set_learning_rate(self, progress: float) -> None:
        """Set the learning rate for this point of the run."""
        if self.config.learning_rate_schedule == "constant":
            return
        rate = self.config.learning_rate * (1.0 - progress)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)  # updated in place: captured CUDA graphs hold its address
            else:
                group["lr"] = rate

    def step(self, loss: Tensor) -> None:
        """Take one step down the gradient of `loss`, its global norm clipped."""
        assert self.flat.grad is not None
        self.flat.grad.zero_()
        torch.autograd.backward(loss)
        self.descend()

    def descend(self) -> None:
        """Take one step down the gradient already computed, its global norm clipped."""
        assert self.flat.grad is not None
        max_norm = self.config.max_grad_norm
        if max_norm is not None:
            norm = torch.linalg.vector_norm(self.flat.grad)
            # On a CPU, where reading the norm is free, skip the multiplication by 1.
            if norm.is_cuda or not norm.item() + 1e-6 <= max_norm:
                self.flat.grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1.0))
        self.optimizer.step()

    def step_alone(self, loss: Tensor) -> None:
        """Take one step on a loss of some parameters; the others and their moments stay unchanged.

        Within the flat vector a parameter without a gradient would otherwise move by its momentum: cloning the policy
        would move the critic.
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
        """Restore `state_dict`."""
        self.policy.load_state_dict(state["policy"])
        self.load_optimizer(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.anchor.load_state_dict(state["anchor"], self.policy)

    def load_optimizer(self, state: dict[str, Any]) -> None:
        """Restore the optimiser's moments; rates and constants are the config's."""
        scheduled = self.config.learning_rate_schedule != "constant"
        load_moments(self.optimizer, state, scheduled={"lr"} if scheduled else ())

    @property
    def keeps_unfinished(self) -> bool:
        """Whether unfinished episodes can continue after `load_state_dict`."""
        return True

    def forget_unfinished(self) -> None:
        """Drop unfinished episodes: their environments have been reset."""
        self.anchor.forget_unfinished()


class ActorCriticLearner(Learner):
    """A learner whose policy has an actor and a critic."""

    policy: ActorCritic

    @staticmethod
    def make_network(
        observation_space: gym.Space[Any], action_space: gym.Space[Any], network: NetworkConfig, settings: Any
    ) -> ActorCritic:
        """Create the network for these spaces."""
        return make_actor_critic(observation_space, action_space, network)
