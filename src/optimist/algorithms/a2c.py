"""A2C; with an OptimisticRegularizer it is A2C+OPR, with SelfImitation A2C+SIL."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.algorithms.rmsprop import TensorFlowRMSprop
from optimist.config import A2CConfig, ACPERConfig
from optimist.core.advantages import gae
from optimist.core.anchor import Anchor
from optimist.core.batch import Batch
from optimist.losses.policy import approximate_kl, policy_gradient, standardize
from optimist.losses.value import squared_error
from optimist.networks.actor_critic import ActorCritic
from optimist.rollout.batch import Rollout


class A2C(ActorCriticLearner):
    """Advantage actor-critic (Mnih et al., 2016, synchronous), with an optional anchor such as OPR."""

    config: A2CConfig | ACPERConfig

    def __init__(
        self, policy: ActorCritic, config: A2CConfig | ACPERConfig, anchor: Anchor | None = None, *, seed: int = 0
    ) -> None:
        super().__init__(policy, config, anchor, seed)
        self.config = config
        form = TensorFlowRMSprop if config.rmsprop_form == "tensorflow" else torch.optim.RMSprop
        self.optimizer = form(
            [self.flat], lr=config.learning_rate, alpha=config.rmsprop_alpha, eps=config.rmsprop_eps
        )  # fmt: skip

    def update(self, rollout: Rollout) -> dict[str, float]:
        """One gradient step on one rollout: memory → shaping → advantages → loss → step."""
        self.set_learning_rate(rollout.progress)

        self.anchor.observe(rollout)  # E enters M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        means = self.on_policy(rollout, rewards)
        self.anchor.after_update(self.policy, self.step_alone)  # e.g. a BC phase now and then, or self-imitation
        return means.result() | self.anchor.metrics()

    def on_policy(self, rollout: Rollout, rewards: Tensor) -> MetricMeans:
        """The gradient step on fresh steps: advantages → loss → step."""
        cfg = self.config
        advantages, returns = gae(
            rewards, rollout.values, rollout.next_values, rollout.dones, cfg.gamma, cfg.gae_lambda
        )
        batch = rollout.flatten(advantages, returns, standardized=cfg.normalize_advantages == "batch")  # [T·N]
        batch = self.anchor.augment(batch, self.policy)  # good transitions join the batch

        means = MetricMeans()
        for whole in batch.minibatches(1, max(1, len(batch)), self.generator):
            terms = self.losses(whole)
            self.step(terms.total)
            means.add(terms)
        return means

    def losses(self, batch: Batch) -> LossTerms:
        """L_total = −A log π + c_v L_V − c_ent H + λ_BC L_BC; replayed rows carry truncated importance weights."""
        cfg = self.config
        logp, entropy, values = self.policy.evaluate(batch.obs, batch.actions)
        advantages = batch.advantages
        if batch.statistics_of is not None:
            advantages = standardize(advantages, batch.statistics_of)
        mean_entropy = batch.of_fresh(entropy).mean()
        return LossTerms(
            policy=policy_gradient(logp, advantages, batch.weights),
            value=cfg.value_coef * squared_error(values, batch.returns, batch.value_weights),
            entropy=-cfg.entropy_coef * mean_entropy,
            anchor=self.anchor.loss(self.policy, batch.good),  # λ_BC included; rows drawn outside
            kl=approximate_kl(batch.of_fresh(logp), batch.of_fresh(batch.logp_old)),
            mean_entropy=mean_entropy,
        )
