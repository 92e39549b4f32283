"""A2C; with an OptimisticRegularizer it is A2C+OPR, with SelfImitation A2C+SIL."""

from __future__ import annotations

from torch import Tensor

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.algorithms.optimizers import make_rmsprop
from optimist.config import A2CConfig
from optimist.core.advantages import gae
from optimist.core.anchor import Anchor, evaluate_together
from optimist.core.memory import GoodRows
from optimist.core.steps import Batch, Rollout
from optimist.losses.actor_critic import approximate_kl, policy_gradient, squared_error, standardize
from optimist.networks.actor_critic import ActorCritic


class A2C(ActorCriticLearner):
    """Advantage actor-critic (Mnih et al., 2016, synchronous), with an optional anchor such as OPR."""

    config: A2CConfig

    def __init__(self, policy: ActorCritic, config: A2CConfig, anchor: Anchor | None = None, *, seed: int = 0) -> None:
        super().__init__(policy, config, anchor, seed)
        self.optimizer = make_rmsprop(self.flat, config)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One gradient step on one rollout: memory → shaping → advantages → loss → step."""
        self.set_learning_rate(rollout.progress)

        self.anchor.observe(rollout)  # E is admitted to M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        means = self.on_policy(rollout, rewards)
        self.anchor.after_update(self.policy, self.step_alone)  # such as a cloning phase, or self-imitation
        return means.result() | self.anchor.metrics()

    def on_policy(self, rollout: Rollout, rewards: Tensor) -> MetricMeans:
        """The gradient step on fresh steps: advantages → loss → step."""
        cfg = self.config
        advantages, returns = gae(
            rewards, rollout.values, rollout.next_values, rollout.dones, cfg.gamma, cfg.gae_lambda
        )
        batch = rollout.flatten(advantages, returns, standardized=cfg.normalize_advantages == "batch")  # [T·N]
        replayed = self.anchor.replay(batch, self.policy)  # rows of M to join the batch, or None

        means = MetricMeans()
        if len(batch):  # a rollout may consist of reset steps alone
            (good,) = self.anchor.sample([len(batch)], self.policy)  # rows of M to clone, or None
            terms = self.losses(batch if replayed is None else self.anchor.join(batch, replayed), good)
            self.step(terms.total)
            means.add(terms)
        return means

    def losses(self, batch: Batch, good: GoodRows | None = None) -> LossTerms:
        """L_total = −A log π + c_v L_V − c_ent H + λ_BC L_BC; replayed rows carry truncated importance weights."""
        cfg = self.config
        rows = evaluate_together(self.policy, batch, good)
        advantages = batch.advantages
        if batch.statistics_of is not None:
            advantages = standardize(advantages, batch.statistics_of)
        mean_entropy = batch.fresh(rows.entropy).mean()
        return LossTerms(
            policy=policy_gradient(rows.logp, advantages, batch.weights),
            value=cfg.value_coef * squared_error(rows.values, batch.returns, batch.value_weights),
            entropy=-cfg.entropy_coef * mean_entropy,
            anchor=rows.anchor_loss(self.anchor, good),  # λ_BC included
            kl=approximate_kl(batch.fresh(rows.logp), batch.fresh(batch.logp_old)),
            mean_entropy=mean_entropy,
        )
