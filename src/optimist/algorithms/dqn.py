"""DQN; with an OptimisticRegularizer it is DQN+OPR."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import gymnasium as gym
import torch
from torch import Tensor

from optimist.algorithms.base import Learner, QTerms, require_finite
from optimist.algorithms.optimizers import CenteredRMSprop, FlatAdam
from optimist.config import NetworkConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.anchor import Anchor, anchor_loss
from optimist.core.memory import GoodRows
from optimist.core.policy import Policy
from optimist.core.steps import Rollout
from optimist.losses.actor_critic import weighted_mean
from optimist.losses.q_learning import large_margin, td_gradients, td_losses, td_target
from optimist.networks.flat import flatten_parameters
from optimist.networks.q_network import MLPGradient, QNetwork, make_q_network
from optimist.replay.transitions import Replay, Transitions

MINIBATCHES_PER_DRAW = 8
"""Minibatches drawn at once from a replay in host memory."""
Result = TypeVar("Result")
METRICS = {
    "loss/td": ("–", "error of Q: Huber's or squared TD error of DQN, cross-entropy of Rainbow's distributions"),
    "policy/epsilon": ("share", "ε: actions taken at random, of a value-based learner"),
    "q/mean": ("reward", "mean Q(s, a) of the replayed steps of this update"),
    "replay/transitions": ("steps", "steps stored for replay"),
    "replay/bytes": ("bytes", "memory allocated for replay"),
}
"""Metric → unit and meaning."""


class DQN(Learner):
    """Deep Q-network (Mnih et al., 2015), with an optional anchor such as OPR."""

    policy: QNetwork
    config: DQNConfig | RainbowConfig
    stores_frames = True

    @staticmethod
    def make_network(
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        network: NetworkConfig,
        settings: DQNConfig | RainbowConfig,
    ) -> QNetwork:
        """Create the network for these spaces."""
        return make_q_network(observation_space, action_space, network, settings)

    def __init__(
        self,
        policy: QNetwork,
        config: DQNConfig | RainbowConfig,
        anchor: Anchor | None = None,
        *,
        seed: int = 0,
        frame_stack: int = 1,
    ) -> None:
        super().__init__(policy, config, anchor, seed)
        device = self.flat.device
        self.target = copy.deepcopy(policy).requires_grad_(False)
        self.target_flat = flatten_parameters(self.target).requires_grad_(False)
        self.replay = self.make_replay(frame_stack, device if config.replay_device == "learner" else "cpu")
        self.optimizer = self.make_optimizer()
        self.gradient = MLPGradient(policy) if MLPGradient.fits(policy) else None
        self.steps = self.gradient_steps = 0
        self.cloned: Policy = MarginPolicy(policy, config.cloning_margin) if config.cloning == "margin" else policy
        policy.epsilon = config.epsilon(0)

    def make_replay(self, frame_stack: int, device: torch.device | str) -> Replay:
        """Create the replay."""
        cfg = self.config
        return Replay(cfg.replay_capacity, gamma=cfg.gamma, frame_stack=frame_stack, device=device)

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Create the optimiser."""
        cfg = self.config
        if cfg.optimizer == "rmsprop":
            return CenteredRMSprop([self.flat], lr=cfg.learning_rate, alpha=cfg.rmsprop_alpha, eps=cfg.rmsprop_eps)
        return FlatAdam([self.flat], lr=cfg.learning_rate, betas=cfg.adam_betas, eps=cfg.adam_eps)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from replayed steps: memory → shaping → replay → targets → loss → step."""
        cfg = self.config
        self.set_schedules(rollout.progress)

        self.anchor.observe(without_optimistic_bootstraps(rollout))  # E is admitted to M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        self.replay.add(rollout, rewards)
        self.count_steps(rewards.numel())

        terms: list[QTerms] = []
        if self.replay.num_written >= cfg.learning_starts and self.replay.num_ready:
            cloned = self.anchor.sample([cfg.minibatch_size] * cfg.gradient_steps, self.cloned)  # rows of M, or None
            for batch, good in zip(self.minibatches(), cloned, strict=True):
                terms.append(self.learn(batch, good))
                self.count_gradient_step()
            self.anchor.after_update(self.cloned, self.step_alone)  # such as a cloning phase
        return self.metrics(terms) | self.anchor.metrics()

    def set_schedules(self, progress: float) -> None:
        """Set what changes over the run."""
        self.set_learning_rate(progress)

    def count_steps(self, number: int) -> None:
        """Count environment steps: ε falls, and the target network is copied when due."""
        cfg, before = self.config, self.steps
        self.steps += number
        self.policy.epsilon = cfg.epsilon(self.steps)
        if cfg.target_unit == "steps" and self.steps // cfg.target_interval > before // cfg.target_interval:
            self.target_flat.data.copy_(self.flat.data)

    def count_gradient_step(self) -> None:
        """Count a gradient step: the target network is copied when due."""
        self.gradient_steps += 1
        if self.config.target_unit == "gradient_steps" and self.gradient_steps % self.config.target_interval == 0:
            self.target_flat.data.copy_(self.flat.data)

    def draw(self) -> Transitions:
        """Draw one minibatch uniformly."""
        return self.replay.sample(self.config.minibatch_size, self.generator)

    def minibatches(self) -> Iterator[Transitions]:
        """Yield one minibatch for each gradient step; several are drawn at once where that is cheaper."""
        size, left = self.config.minibatch_size, self.config.gradient_steps
        while left:
            together = min(left, MINIBATCHES_PER_DRAW) if self.replay.device.type == "cpu" else 1
            yield from self.replay.sample(together * size, self.generator).split(size)
            left -= together

    def learn(self, batch: Transitions, good: GoodRows | None) -> QTerms:
        """Take one gradient step on a minibatch and the rows of M sampled for it."""
        batch = to_device(batch, self.flat.device)
        if self.gradient is not None:
            terms = self.differentiate(batch, self.gradient, good)
            self.descend()
        else:
            terms = self.losses(batch, good)
            self.step(terms.total)
        return terms

    def losses(self, batch: Transitions, good: GoodRows | None = None) -> QTerms:
        """L_total = E[w L(y − Q(s, a))] + λ_BC L_BC, with y = R + γᵐ max Q_target(s′, ·)."""
        noise = self.policy.draw_noise(self.generator)
        targets = self.start("targets", lambda: self.targets(batch))
        q = self.policy.forward(batch.obs, noise)
        values = q.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
        row_losses = td_losses(values, targets(), self.config.loss)
        return QTerms(
            td=weighted_mean(row_losses, batch.weights),
            anchor=anchor_loss(self.anchor, self.cloned, good),  # λ_BC included
            mean_q=values.detach().mean(),
            row_losses=row_losses.detach(),
        )

    def differentiate(self, batch: Transitions, gradient: MLPGradient, good: GoodRows | None = None) -> QTerms:
        """Compute the same terms and the gradient of their sum, without an autograd graph for the TD error."""
        cfg, index = self.config, batch.actions.unsqueeze(-1)
        with torch.no_grad():
            q = gradient.forward(batch.obs)
            values, targets = q.gather(-1, index).squeeze(-1), self.targets(batch)
            row_losses = td_losses(values, targets, cfg.loss)
            slopes = td_gradients(values, targets, cfg.loss).mul_(1.0 / len(values))
            if batch.weights is not None:
                slopes = slopes * batch.weights
            gradient.backward(torch.zeros_like(q).scatter_(-1, index, slopes.unsqueeze(-1)))
        anchor = anchor_loss(self.anchor, self.cloned, good)
        if anchor.requires_grad:
            torch.autograd.backward(anchor)  # adds to the gradient of the TD error
        td = weighted_mean(row_losses, batch.weights)
        return QTerms(td=td, anchor=anchor, mean_q=values.mean(), row_losses=row_losses)

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """y, [B]."""
        next_q = self.start(
            "next values", lambda: self.target.q_values(batch.next_obs, self.target.draw_noise(self.generator))
        )
        next_actions = self.double_actions(batch.next_obs)
        return td_target(batch.returns, batch.discounts, next_q(), next_actions)

    def double_actions(self, next_obs: Tensor) -> Tensor | None:
        """The online network's next actions [B] under double learning; else None: the target network's own."""
        if not self.config.double:
            return None
        return self.policy.q_values(next_obs, self.policy.draw_noise(self.generator)).argmax(-1)

    def start(self, name: str, work: Callable[[], Result]) -> Callable[[], Result]:
        """Run `work` and return a function that gives its result; on a GPU it may run concurrently."""
        result = work()
        return lambda: result

    def metrics(self, terms: list[QTerms]) -> dict[str, float]:
        """Means over the gradient steps of an update, ε and the replay; one read from the device."""
        known = {
            "policy/epsilon": self.policy.epsilon,
            "replay/transitions": float(self.replay.num_transitions),
            "replay/bytes": float(self.replay.num_bytes),
        }
        if not terms:
            return known
        columns = {
            "loss/td": [term.td.detach() for term in terms],
            "loss/anchor": [term.anchor.detach() for term in terms],
            "q/mean": [term.mean_q for term in terms],
        }
        known |= means_of(columns, self.flat.device)
        require_finite(known)
        return known

    @property
    def keeps_unfinished(self) -> bool:
        """Whether the replay is saved, or needs no earlier frames of an episode."""
        return self.config.save_replay or self.replay.frame_stack == 1

    def forget_unfinished(self) -> None:
        """Drop unfinished episodes: their environments have been reset."""
        super().forget_unfinished()
        self.replay.forget_unfinished()

    def state_dict(self) -> dict[str, Any]:
        """Weights, target, optimiser, generator, anchor, counters and, if the config asks for it, the replay."""
        return super().state_dict() | {
            "target": self.target_flat.detach().clone(),
            "clocks": [self.steps, self.gradient_steps],
            "replay": self.replay.state_dict() if self.config.save_replay else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        super().load_state_dict(state)
        self.target_flat.data.copy_(state["target"])
        self.steps, self.gradient_steps = state["clocks"]
        self.policy.epsilon = self.config.epsilon(self.steps)
        if state["replay"] is not None:
            self.replay.load_state_dict(state["replay"])


def without_optimistic_bootstraps(rollout: Rollout) -> Rollout:
    """The rollout with bootstrap values of at most 0.

    Values learnt by a maximum are too high at first. In the return of a good episode they would make it look better
    than V, cloning it would raise the values further, and so on.
    """
    values = rollout.bootstraps
    return rollout if values is None else replace(rollout, bootstraps=values.clamp_max(0.0))


def means_of(columns: dict[str, list[Tensor]], device: torch.device) -> dict[str, float]:
    """The mean of each column of scalars, read from the device at once."""
    scalars = [scalar.to(device) for column in columns.values() for scalar in column]
    numbers = iter(torch.stack(scalars).tolist())
    return {name: sum(next(numbers) for _ in column) / len(column) for name, column in columns.items()}


class MarginPolicy:
    """The Q-network as an anchor sees it when cloning is a large margin: its loss replaces −log π."""

    def __init__(self, policy: QNetwork, margin: float) -> None:
        self.policy, self.margin = policy, margin

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """Minus the large-margin loss, [B]."""
        return -large_margin(self.policy.q_values(obs), actions, self.margin)

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        return self.policy.value(obs)


def to_device(batch: Transitions, device: torch.device) -> Transitions:
    """The batch on the learner's device."""
    if batch.returns.device == device:
        return batch
    columns = {name: getattr(batch, name) for name in ("obs", "actions", "returns", "next_obs", "discounts", "weights")}
    moved = {name: column.to(device) for name, column in columns.items() if column is not None}
    return replace(batch, **moved)
