"""PPO; with an OptimisticRegularizer it is PPO+OPR."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.config import PPOConfig
from optimist.core.advantages import gae
from optimist.core.anchor import Anchor, evaluate_together
from optimist.core.memory import GoodRows
from optimist.core.steps import Batch, Rollout
from optimist.losses.actor_critic import (
    approximate_kl,
    clipped_squared_error,
    clipped_surrogate,
    squared_error,
    standardize,
)
from optimist.networks.actor_critic import ActorCritic


class PPO(ActorCriticLearner):
    """Proximal Policy Optimization (Schulman et al., 2017), with an optional anchor such as OPR."""

    config: PPOConfig

    def __init__(self, policy: ActorCritic, config: PPOConfig, anchor: Anchor | None = None, *, seed: int = 0) -> None:
        super().__init__(policy, config, anchor, seed)
        self.entropy_coef = torch.tensor(config.entropy_coef, device=self.flat.device)
        self.optimizer = torch.optim.Adam(
            [self.flat], lr=config.learning_rate, betas=config.adam_betas, eps=config.adam_eps, fused=True
        )

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout: memory → shaping → advantages → loss → step."""
        cfg = self.config
        self.set_schedules(rollout.progress)

        self.anchor.observe(rollout)  # E is admitted to M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        advantages, returns = gae(
            rewards, rollout.values, rollout.next_values, rollout.dones, cfg.gamma, cfg.gae_lambda
        )
        batch = rollout.flatten(advantages, returns, standardized=cfg.normalize_advantages == "batch")  # [T·N]
        replayed = self.anchor.replay(batch, self.policy)  # rows of M to join the minibatches, or None

        means, merge = MetricMeans(), cfg.last_minibatch == "merged"
        sizes = batch.minibatch_sizes(cfg.epochs, cfg.minibatch_size, merge_last=merge)
        minibatches = batch.minibatches(cfg.epochs, cfg.minibatch_size, self.generator, merge_last=merge)
        cloned = self.anchor.sample(sizes, self.policy)  # rows of M to clone, or None, with each minibatch
        for minibatch, good in zip(minibatches, cloned, strict=True):
            if replayed is not None:
                minibatch = self.anchor.join(minibatch, replayed)
            if cfg.target_kl is not None and means.terms and self.kl(minibatch) > 1.5 * cfg.target_kl:
                break
            means.add(self.learn(minibatch, good))
        self.anchor.after_update(self.policy, self.step_alone)  # such as a cloning phase
        return means.result() | self.anchor.metrics()

    def learn(self, minibatch: Batch, good: GoodRows | None) -> LossTerms:
        """Take one gradient step on a minibatch and the rows of M sampled for it."""
        terms = self.losses(minibatch, good)
        self.step(terms.total)
        return terms

    def losses(self, batch: Batch, good: GoodRows | None = None) -> LossTerms:
        """L_total = L_clip + c_v L_V − c_ent H + λ_BC L_BC (paper, eqs. 1 and 7)."""
        cfg = self.config
        rows = evaluate_together(self.policy, batch, good)
        advantages = batch.advantages
        if cfg.normalize_advantages == "minibatch":
            advantages = standardize(advantages, batch.fresh(advantages))
        elif batch.statistics_of is not None:
            advantages = standardize(advantages, batch.statistics_of)
        entropy = batch.fresh(rows.entropy).mean()
        return LossTerms(
            policy=clipped_surrogate(rows.logp, batch.logp_old, advantages, cfg.clip_eps, batch.weights),
            value=cfg.value_coef * self._value_loss(rows.values, batch),
            entropy=-self.entropy_coef * entropy,
            anchor=rows.anchor_loss(self.anchor, good),  # λ_BC included
            kl=approximate_kl(batch.fresh(rows.logp), batch.fresh(batch.logp_old)),
            mean_entropy=entropy,
        )

    def set_schedules(self, progress: float) -> None:
        """Set learning rate and entropy coefficient for this point of the run."""
        cfg = self.config
        self.set_learning_rate(progress)
        if cfg.entropy_coef_final is not None:
            self.entropy_coef.fill_(cfg.entropy_coef + (cfg.entropy_coef_final - cfg.entropy_coef) * progress)

    @torch.no_grad()
    def kl(self, minibatch: Batch) -> float:
        """The approximate KL between old and new policy on a minibatch."""
        logp = self.policy.log_prob(minibatch.obs, minibatch.actions)
        return float(approximate_kl(minibatch.fresh(logp), minibatch.fresh(minibatch.logp_old)))

    def _value_loss(self, values: Tensor, batch: Batch) -> Tensor:
        clip = self.config.value_clip
        if clip is None:
            return squared_error(values, batch.returns, batch.value_weights)
        return clipped_squared_error(values, batch.values_old, batch.returns, clip, batch.value_weights)
