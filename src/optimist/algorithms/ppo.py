"""PPO; with an OptimisticRegularizer it is OPR."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.algorithms.graphed import GraphedSteps, take_rate_along
from optimist.config import PPOConfig
from optimist.core.advantages import gae
from optimist.core.anchor import Anchor
from optimist.core.batch import Batch, Evaluated
from optimist.losses.policy import approximate_kl, clipped_surrogate, standardize
from optimist.losses.value import clipped_squared_error, squared_error
from optimist.networks.actor_critic import ActorCritic
from optimist.rollout.batch import Rollout


class PPO(ActorCriticLearner):
    """Proximal Policy Optimization (Schulman et al., 2017), with an optional anchor such as OPR."""

    def __init__(
        self,
        policy: ActorCritic,
        config: PPOConfig,
        anchor: Anchor | None = None,
        *,
        seed: int = 0,
        graphs: bool = False,
    ) -> None:
        """`graphs`: take gradient steps as CUDA graphs."""
        super().__init__(policy, config, anchor, seed)
        self.config = config
        self.entropy_coef = torch.tensor(config.entropy_coef, device=self.flat.device)
        self.optimizer = torch.optim.Adam(
            [self.flat],
            lr=torch.tensor(config.learning_rate, device=self.flat.device) if graphs else config.learning_rate,
            betas=config.adam_betas,
            eps=config.adam_eps,
            fused=True,
            capturable=graphs,
        )
        self.graphed = GraphedSteps(self) if graphs else None

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout: memory → shaping → advantages → loss → step."""
        cfg = self.config
        self.set_learning_rate(rollout.progress)
        if cfg.entropy_coef_final is not None:
            self.entropy_coef.fill_(cfg.entropy_coef + (cfg.entropy_coef_final - cfg.entropy_coef) * rollout.progress)

        self.anchor.observe(rollout)  # E enters M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]

        advantages, returns = gae(
            rewards, rollout.values, rollout.next_values, rollout.dones, cfg.gamma, cfg.gae_lambda
        )
        batch = rollout.flatten(advantages, returns, standardized=cfg.normalize_advantages == "batch")  # [T·N]
        batch = self.anchor.augment(batch, self.policy)  # good transitions join the minibatches

        means = MetricMeans()
        merge = cfg.last_minibatch == "merged"
        for minibatch in batch.minibatches(cfg.epochs, cfg.minibatch_size, self.generator, merge_last=merge):
            if self.graphed is not None:
                means.add(self.graphed.take(minibatch))
                continue
            terms = self.losses(minibatch)
            if cfg.target_kl is not None and means.terms and terms.kl > 1.5 * cfg.target_kl:
                break
            self.step(terms.total)
            means.add(terms)
        self.anchor.after_update(self.policy, self.step_alone)  # e.g. a BC phase now and then
        return means.result() | self.anchor.metrics()

    def losses(self, batch: Batch) -> LossTerms:
        """L_total = L_clip + c_v L_V − c_ent H + λ_BC L_BC (paper, eqs. 1 and 7)."""
        cfg = self.config
        evaluated = Evaluated.of(self.policy, batch)
        logp, entropy, values = evaluated.logp, evaluated.entropy, evaluated.values
        advantages = batch.advantages
        if cfg.normalize_advantages == "minibatch":
            advantages = standardize(advantages, batch.of_fresh(advantages))
        elif batch.statistics_of is not None:
            advantages = standardize(advantages, batch.statistics_of)
        mean_entropy = batch.of_fresh(entropy).mean()
        return LossTerms(
            policy=clipped_surrogate(logp, batch.logp_old, advantages, cfg.clip_eps, batch.weights),
            value=cfg.value_coef * self._value_loss(values, batch),
            entropy=-self.entropy_coef * mean_entropy,
            anchor=self.anchor.loss(evaluated, batch.good),  # λ_BC included; rows drawn outside
            kl=approximate_kl(batch.of_fresh(logp), batch.of_fresh(batch.logp_old)),
            mean_entropy=mean_entropy,
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        if self.graphed is not None:
            take_rate_along(self)
            self.graphed.forget()

    def _value_loss(self, values: Tensor, batch: Batch) -> Tensor:
        clip = self.config.value_clip
        if clip is None:
            return squared_error(values, batch.returns, batch.value_weights)
        return clipped_squared_error(values, batch.values_old, batch.returns, clip, batch.value_weights)
