"""SelfImitation: SIL as an anchor; with it A2C is A2C+SIL and PPO is PPO+SIL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.config.sil import SILConfig
from optimist.core.advantages import discounted_returns
from optimist.core.anchor import Anchor, OptimizerStep
from optimist.core.episode import Episode, EpisodeBuilder
from optimist.core.policy import Policy
from optimist.core.steps import Steps, require_same_shape
from optimist.errors import ConfigError
from optimist.replay.past_steps import PastSteps

METRICS = {
    "loss/sil": ("–", "loss of the last self-imitation step, all coefficients included"),
    "sil/stored": ("episodes", "finished episodes stored for self-imitation in this update"),
    "sil/transitions": ("steps", "past steps that self-imitation can draw"),
    "sil/advantage": ("reward", "sum of (R − V)₊ of the last drawn batch, clipped, over its normaliser"),
    "sil/better": ("share", "of the last drawn batch, the steps with R > V: those that are imitated"),
    "sil/bytes": ("bytes", "memory used by past steps and by the unfinished episodes"),
}
"""Metric → unit and meaning."""


class SelfImitation(Anchor):
    """Self-Imitation Learning (Oh et al., 2018, arXiv 1806.05635) for any actor-critic host.

    The host's own update is unchanged; after it come `updates` gradient steps, by the host's optimiser, on past steps
    whose return exceeds the value. SIL draws from its own random generator.
    """

    capturable = False  # its steps are taken after the update

    def __init__(
        self,
        config: SILConfig,
        *,
        gamma: float = 0.99,
        seed: int = 0,
        frame_stack: int = 1,
        device: torch.device | str = "cpu",
        gae_lambda: float = 1.0,
    ) -> None:
        """`device`: where random numbers are drawn; the learner's, to avoid synchronisation.

        `gae_lambda` is for other anchors: all are made with the same keywords.
        """
        self.config, self.gamma = config, gamma
        self.generator = torch.Generator(device).manual_seed(seed)
        self.builder = EpisodeBuilder(config.max_episode_steps, frame_stack=frame_stack)
        self.past = PastSteps(
            config.capacity_transitions,
            exponent=config.priority_exponent,
            importance_exponent=config.importance_exponent,
            frame_stack=frame_stack,
            device=device,
        )
        self.stored = 0  # episodes, in this update
        self._logged: dict[str, Tensor] = {}

    def observe(self, steps: Steps) -> None:
        """Finished episodes that the rule admits are stored, each step with the return that followed it."""
        self.stored, self._logged = 0, {}
        for finished in self.builder.add(steps):
            episode = finished.build()
            if self.config.admission == "any" or bool((episode.rewards > 0).any()):
                self.past.add(episode, self._returns(episode))
                self.stored += 1

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """M gradient steps on past steps, once enough are stored."""
        if self.config.coef == 0 or self.past.num_transitions < self.config.start_transitions:
            return
        for _ in range(self.config.updates):
            terms = self._draw(policy)
            loss = terms.total(self.config)
            step(loss)
            self._logged = {
                "loss/sil": loss.detach(),
                "sil/advantage": terms.advantage.detach(),
                "sil/better": terms.valid.detach(),
            }

    def forget_unfinished(self) -> None:
        """Drop unfinished episodes: their environments have been reset."""
        self.builder.forget_unfinished()

    def metrics(self) -> dict[str, float]:
        """Metrics of the last update."""
        content = {
            "sil/stored": self.stored,
            "sil/transitions": self.past.num_transitions,
            "sil/bytes": self.past.num_bytes + self.builder.num_bytes,
        }
        return {name: float(value) for name, value in (content | self._logged).items()}

    def state_dict(self) -> dict[str, Any]:
        """Past steps, unfinished episodes and generator."""
        return {
            "past": self.past.state_dict(),
            "builder": self.builder.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Restore `state_dict` on the policy's device."""
        device = next(policy.parameters()).device if isinstance(policy, torch.nn.Module) else "cpu"
        self.past.load_state_dict(state["past"])
        self.builder.load_state_dict(state["builder"], device)
        self.generator.set_state(state["generator"])

    def _draw(self, policy: Policy) -> SelfImitationTerms:
        """The losses on one batch of past steps, whose priorities are updated."""
        if not hasattr(policy, "evaluate"):
            raise ConfigError(
                "SIL needs a policy with evaluate(obs, actions) → log π, entropy, V; got none, use an actor-critic"
            )
        size = min(self.config.batch_size, self.past.num_transitions)  # as the authors do
        rows = self.past.draw(size, self.generator)
        logp, entropy, values = policy.evaluate(rows.obs, rows.actions)
        self.past.set_priorities(rows.rows, (rows.returns - values).clamp(0.0, self.config.advantage_clip))
        return self_imitation(logp, entropy, values, rows.returns, rows.weights, self.config)

    def _returns(self, episode: Episode) -> Tensor:
        """R of each step, as the learner counts: its rewards, its ends."""
        bootstraps = episode.bootstraps
        if self.config.time_limit == "end":
            bootstraps = torch.zeros_like(bootstraps)
        return discounted_returns(episode.rewards, episode.dones.bool(), bootstraps, self.gamma)


@dataclass(frozen=True)
class SelfImitationTerms:
    """The terms of one self-imitation loss; coefficients are not in them yet."""

    policy: Tensor  # Σ w min(−log π, cap) (R − V)₊ / n
    value: Tensor  # gradient of ½ Σ w ((R − V)₊)² / n, errors clipped
    entropy: Tensor  # Σ w H over the steps with R > V, / n
    advantage: Tensor  # Σ (R − V)₊ / n, to log
    valid: Tensor  # share of steps with R > V, to log

    def total(self, config: SILConfig) -> Tensor:
        """L_policy + β_value L_value − c_ent H, times the weight of self-imitation."""
        bonus = (config.entropy_coef or 0.0) * self.entropy
        return config.coef * (self.policy + config.value_coef * self.value - bonus)


def self_imitation(
    logp: Tensor, entropy: Tensor, values: Tensor, returns: Tensor, weights: Tensor, config: SILConfig
) -> SelfImitationTerms:
    """L_policy = −log π (R − V)₊ and L_value = ½ ((R − V)₊)² as the authors' code has them, on B drawn steps.

    The advantage is clipped and no gradient passes through it. Every sum is divided by n, the number of steps with
    R > V or `min_normalizer` if that is larger: a batch with few of them makes a small step. The value term's number is
    ½ V · clip(V − R, −clip, 0), whose gradient is that of the squared error with its error clipped.
    """
    require_same_shape(logp=logp, entropy=entropy, values=values, returns=returns, weights=weights)
    clip = config.advantage_clip
    shortfall = returns - values.detach()
    better = (shortfall > 0).to(logp.dtype)
    count = better.sum().clamp_min(config.min_normalizer)
    advantages = shortfall.clamp(0.0, clip)
    return SelfImitationTerms(
        policy=(weights * advantages * capped_negative_logp(logp, config.max_negative_logp)).sum() / count,
        value=0.5 * (weights * values * -advantages).sum() / count,
        entropy=(weights * better * entropy).sum() / count,
        advantage=advantages.sum() / count,
        valid=better.mean(),
    )


def capped_negative_logp(logp: Tensor, cap: float) -> Tensor:
    """min(−log π, cap) in value, with the gradient of −log π everywhere (straight-through)."""
    negative = -logp
    with torch.no_grad():
        excess = negative.clamp_max(cap) - negative
    return negative + excess
