"""ACPER, reconstructed: A2C with prioritised replay and truncated importance weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from optimist.algorithms.a2c import A2C
from optimist.algorithms.base import LossTerms, MetricMeans
from optimist.config import ACPERConfig
from optimist.core.anchor import Anchor, anchor_loss
from optimist.core.steps import Rollout
from optimist.losses.actor_critic import policy_gradient, truncated_traces, weighted_mean
from optimist.networks.actor_critic import ActorCritic
from optimist.replay.segments import SegmentReplay, Segments

MAX_LOG_RATIO = 20.0
"""Log-ratios are capped here: an action that the environment forced may have had probability 0."""
METRICS = {
    "loss/replay": ("–", "ACPER: sum of the loss terms on replayed segments, mean over the update's steps"),
    "acper/replay_steps": ("steps", "steps that ACPER can replay"),
    "acper/kl": ("nats", "KL from the policies that took the replayed steps to the current one, estimated"),
    "acper/truncated": ("share", "of the last replayed steps, those whose importance weight was cut at its cap"),
}
"""Metric → unit and meaning."""


class ACPER(A2C):
    """Actor-critic with prioritised experience replay, the baseline of Oh et al. (2018), with an optional anchor.

    No code of it is public. Each fresh rollout gives one A2C step, then a few steps follow on segments replayed by
    priority, with the parts of ACER (Wang et al., 2017) that a state-value critic allows: importance weights truncated
    in the policy gradient, and truncated traces for the value targets. Without replay it equals A2C bit for bit.
    """

    config: ACPERConfig

    def __init__(
        self, policy: ActorCritic, config: ACPERConfig, anchor: Anchor | None = None, *, seed: int = 0
    ) -> None:
        super().__init__(policy, config, anchor, seed=seed)
        self.replay = SegmentReplay(config.replay_capacity, config.priority_exponent, config.importance_exponent)
        self.steps = 0  # collected so far
        self._truncated = torch.zeros(())

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Take one A2C step on a fresh rollout, and a few on replayed segments."""
        self.set_learning_rate(rollout.progress)

        self.anchor.observe(rollout)
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        fresh = self.on_policy(rollout, rewards)
        replayed = self.off_policy(rollout, rewards)
        self.anchor.after_update(self.policy, self.step_alone)
        return fresh.result() | replayed | self.anchor.metrics()

    def off_policy(self, rollout: Rollout, rewards: Tensor) -> dict[str, float]:
        """Store the rollout; once enough are stored, take steps on segments drawn by priority."""
        cfg = self.config
        if cfg.replay_updates == 0:
            return {}
        self.replay.add(rollout, rewards)
        self.steps += rewards.numel()
        means = MetricMeans()
        for _ in range(cfg.replay_updates if self.steps >= cfg.replay_start else 0):
            terms = self.replay_losses(self.replay.draw(cfg.replay_segments, self.generator))
            self.step(terms.total)
            means.add(terms)
        losses = means.result()
        metrics = {"acper/replay_steps": float(self.replay.num_steps)}
        if losses:
            metrics["loss/replay"] = sum(losses[f"loss/{name}"] for name in ("policy", "value", "entropy", "anchor"))
            metrics["acper/kl"] = losses["policy/kl"]
            metrics["acper/truncated"] = float(self._truncated)
        return metrics

    def replay_losses(self, segments: Segments) -> LossTerms:
        """−E[w min(c, ρ) A log π] + c_v E[w (V − v)²] − c_ent H + λ_BC L_BC, with ρ = π_θ/π_recorded, detached.

        The last state of a segment serves as bootstrap only, so that every target uses the current critic.
        """
        cfg = self.config
        shape = segments.rewards.shape
        flat = self.policy.evaluate(segments.obs.flatten(0, 1), segments.actions.flatten(0, 1))
        logp, entropy, values = (column.view(shape) for column in flat)
        log_ratios = (logp.detach() - segments.logp)[:-1]
        ratios = log_ratios.clamp_max(MAX_LOG_RATIO).exp()
        dones, valid = segments.dones[:-1], segments.valid[:-1].to(values.dtype)
        following = torch.where(dones, segments.bootstraps[:-1], values.detach()[1:])
        logp, entropy, values = logp[:-1], entropy[:-1], values[:-1]
        targets, advantages = truncated_traces(
            segments.rewards[:-1], values.detach(), following, dones, ratios, cfg.gamma, cfg.gae_lambda, cfg.trace_cap
        )
        (good,) = self.anchor.sample([len(segments.obs.flatten(0, 1))], self.policy)  # rows of M to clone, or None
        played = valid.sum(0)
        self.replay.set_priorities(segments.places, (valid * advantages.abs()).sum(0) / played.clamp_min(1.0))
        weights = segments.weights * valid  # [T − 1, B]
        self._truncated = (ratios > cfg.importance_cap).float().mean()
        mean_entropy = weighted_mean(entropy, valid)
        return LossTerms(
            policy=policy_gradient(logp, advantages, weights * ratios.clamp_max(cfg.importance_cap)),
            value=cfg.value_coef * weighted_mean((values - targets).square(), weights),
            entropy=-cfg.entropy_coef * mean_entropy,
            anchor=anchor_loss(self.anchor, self.policy, good),  # as for fresh steps
            kl=weighted_mean(-log_ratios, valid),
            mean_entropy=mean_entropy,
        )

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser, generator, anchor and replay."""
        return super().state_dict() | {"replay": self.replay.state_dict(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        super().load_state_dict(state)
        self.replay.load_state_dict(state["replay"], self.flat.device)
        self.steps = state["steps"]
