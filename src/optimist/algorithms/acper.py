"""ACPER, reconstructed: ACER's objective on segments drawn by priority."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.algorithms.optimizers import make_rmsprop
from optimist.config import ACPERConfig, NetworkConfig
from optimist.core.anchor import Anchor, anchor_loss
from optimist.core.steps import Rollout
from optimist.errors import ConfigError
from optimist.losses.acer import policy_objective, retrace, within_trust_region
from optimist.losses.actor_critic import weighted_mean
from optimist.networks.actor_critic import QActorCritic, make_actor_critic
from optimist.networks.flat import flatten_parameters
from optimist.replay.segments import SegmentReplay, Segments

METRICS = {
    "loss/replay": ("–", "ACPER: sum of the loss terms on replayed segments, mean over the update's steps"),
    "acper/replay_steps": ("steps", "steps that ACPER can replay"),
    "acper/kl": ("nats", "KL from the policies that took the replayed steps to the current one"),
    "acper/truncated": ("share", "of the last replayed steps, those whose importance weight was cut at its cap"),
    "acper/restrained": ("share", "of the last replayed steps, those whose gradient the trust region changed"),
}
"""Metric → unit and meaning."""


class ACPER(ActorCriticLearner):
    """Actor-critic with prioritised experience replay, the baseline of Oh et al. (2018), with an optional anchor.

    No code of it is public. Its objective is that of ACER (Wang et al., 2017) with a critic of actions: one gradient
    step on each fresh rollout, then a few on segments replayed by priority.
    """

    policy: QActorCritic
    config: ACPERConfig

    @staticmethod
    def make_network(
        observation_space: gym.Space[Any], action_space: gym.Space[Any], network: NetworkConfig, settings: Any
    ) -> QActorCritic:
        """Create the network for these spaces."""
        if not isinstance(action_space, gym.spaces.Discrete):
            raise ConfigError(f"acper needs Discrete actions, got {action_space}: use ppo or a2c")
        made = make_actor_critic(observation_space, action_space, network, q_critic=True)
        assert isinstance(made, QActorCritic)
        return made

    def __init__(
        self, policy: QActorCritic, config: ACPERConfig, anchor: Anchor | None = None, *, seed: int = 0
    ) -> None:
        super().__init__(policy, config, anchor, seed)
        self.optimizer = make_rmsprop(self.flat, config)
        self.replay = SegmentReplay(config.replay_capacity, config.priority_exponent, config.importance_exponent)
        self.average = copy.deepcopy(policy).requires_grad_(False)  # around which the trust region is
        self.average_flat = flatten_parameters(self.average).requires_grad_(False)
        self.steps = 0  # collected so far
        self._shares: dict[str, Tensor] = {}

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Take one step on a fresh rollout and a few on replayed segments: memory → shaping → Q_ret → loss → step."""
        cfg = self.config
        self.set_learning_rate(rollout.progress)

        self.anchor.observe(rollout)  # E is admitted to M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        fresh = self.segments_of(rollout, rewards)
        means = MetricMeans()
        if bool(fresh.valid.any()):  # a rollout may consist of reset steps alone
            means.add(self.learn(fresh, rollout.next_values[-1]))
        replayed = MetricMeans()
        if cfg.replay_updates:
            self.replay.add(fresh)
            self.steps += rewards.numel()
            for _ in range(cfg.replay_updates if self.steps >= cfg.replay_start else 0):
                replayed.add(self.learn(self.replay.draw(cfg.replay_segments, self.generator)))
        self.anchor.after_update(self.policy, self.step_alone)
        return means.result() | self.replay_metrics(replayed) | self.anchor.metrics()

    def learn(self, segments: Segments, last_values: Tensor | None = None) -> LossTerms:
        """Take one gradient step on segments; the average policy follows."""
        terms = self.losses_on(segments, last_values)
        self.step(terms.total)
        self.average_flat.data.lerp_(self.flat.data, 1.0 - self.config.average_decay)
        for average, current in zip(self.average.buffers(), self.policy.buffers(), strict=True):
            average.copy_(current)
        return terms

    @torch.no_grad()
    def segments_of(self, rollout: Rollout, rewards: Tensor) -> Segments:
        """A fresh rollout as one segment of each environment, with the probabilities of all actions as they were."""
        logp, _ = self.policy.all_actions(rollout.obs.flatten(0, 1))
        valid = torch.ones_like(rollout.dones) if rollout.valid is None else rollout.valid
        return Segments(
            obs=rollout.obs,
            actions=rollout.actions,
            rewards=rewards,
            behavior=logp.exp().view(*rewards.shape, -1),
            dones=rollout.dones,
            bootstraps=torch.zeros_like(rewards) if rollout.bootstraps is None else rollout.bootstraps,
            valid=valid,
            chosen=valid if rollout.forced is None else valid & ~rollout.forced,
            weights=torch.ones_like(rewards[0]),
        )

    def losses_on(self, segments: Segments, last_values: Tensor | None = None) -> LossTerms:
        """−E[w g*ᵀπ] + c_v E[w (Q − Q_ret)²] + λ_BC L_BC, with g* the gradient of ACER's objective in its trust region.

        `last_values` [B] is V after the last step. Without it the last state of a segment serves as bootstrap only, so
        that every target uses the current critic.
        """
        cfg, shape = self.config, segments.rewards.shape
        log_all, q = (column.view(*shape, -1) for column in self.policy.all_actions(segments.obs.flatten(0, 1)))
        values = (log_all.exp() * q).sum(-1).detach()  # [T, B]
        if last_values is None:
            last_values, segments, log_all, q = values[-1], segments.without_last(), log_all[:-1], q[:-1]
        following = torch.cat([values[1 : len(q)], last_values[None]])
        next_values = torch.where(segments.dones, segments.bootstraps, following)
        index = segments.actions.long().unsqueeze(-1)
        taken, probabilities = q.gather(-1, index).squeeze(-1), log_all.exp()
        ratio = (probabilities.detach() / segments.behavior.clamp_min(1e-6)).gather(-1, index).squeeze(-1)
        q_ret = retrace(segments.rewards, taken.detach(), next_values, segments.dones, ratio, cfg.gamma, cfg.gae_lambda)
        self._set_priorities(segments, q_ret - taken.detach())
        (good,) = self.anchor.sample([taken.numel()], self.policy)  # rows of M to clone, or None
        chosen = segments.chosen.to(taken.dtype)  # the policy did not choose the others
        policy, entropy = self._policy_terms(segments, probabilities, q.detach(), q_ret, segments.weights * chosen)
        self._shares["acper/truncated"] = (ratio > cfg.importance_cap).float().mean()
        divergence = segments.behavior * (segments.behavior.clamp_min(1e-6).log() - log_all.detach())
        return LossTerms(
            policy=policy,
            value=cfg.value_coef * weighted_mean((taken - q_ret).square(), segments.weights * segments.valid),
            entropy=torch.zeros_like(policy),  # its gradient is part of g, within the trust region
            anchor=anchor_loss(self.anchor, self.policy, good),  # λ_BC included
            kl=weighted_mean(divergence.sum(-1), chosen),
            mean_entropy=entropy,
        )

    def _policy_terms(
        self, segments: Segments, probabilities: Tensor, q: Tensor, q_ret: Tensor, weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        """−E[w g*ᵀπ], and the mean entropy; g is the gradient of objective and entropy bonus with respect to π."""
        cfg, leaf = self.config, probabilities.detach().requires_grad_()
        objective = policy_objective(leaf, segments.behavior, segments.actions, q, q_ret, cfg.importance_cap)
        entropy = -(leaf * leaf.clamp_min(1e-6).log()).sum(-1)
        (gradient,) = torch.autograd.grad((objective + cfg.entropy_coef * entropy).sum(), leaf)
        with torch.no_grad():
            average = self.average.all_actions(segments.obs.flatten(0, 1))[0].exp().view_as(gradient)
            allowed = within_trust_region(gradient, leaf, average, cfg.trust_region)
            self._shares["acper/restrained"] = (allowed != gradient).any(-1).float().mean()
        return -weighted_mean((allowed * probabilities).sum(-1), weights), entropy.detach().mean()

    def _set_priorities(self, segments: Segments, errors: Tensor) -> None:
        """A replayed segment's priority is its mean absolute TD error."""
        if segments.places is not None:
            played = segments.valid.sum(0).clamp_min(1)
            self.replay.set_priorities(segments.places, (segments.valid * errors.abs()).sum(0) / played)

    def replay_metrics(self, replayed: MetricMeans) -> dict[str, float]:
        """Metrics of the replayed steps."""
        if not self.config.replay_updates:
            return {}
        metrics = {"acper/replay_steps": float(self.replay.num_steps)}
        if losses := replayed.result():
            metrics["loss/replay"] = sum(losses[f"loss/{name}"] for name in ("policy", "value", "entropy", "anchor"))
            metrics["acper/kl"] = losses["policy/kl"]
            metrics |= {name: float(share) for name, share in self._shares.items()}
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Weights, average policy, optimiser, generator, anchor and replay."""
        own = {"average": self.average.state_dict(), "replay": self.replay.state_dict(), "steps": self.steps}
        return super().state_dict() | own

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        super().load_state_dict(state)
        self.average.load_state_dict(state["average"])
        self.replay.load_state_dict(state["replay"], self.flat.device)
        self.steps = state["steps"]
