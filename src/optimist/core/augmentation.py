"""Station 5. Replayed good steps as rows of a policy-gradient minibatch, coherently."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from optimist.core.advantages import gae
from optimist.core.batch import Batch
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodEpisodeMemory, GoodRows
from optimist.core.policy import Policy
from optimist.core.reference import Reference
from optimist.core.shaping import bound_log_ratio, log_ratio, shape_rewards


@dataclass(frozen=True)
class GoodJoiner:
    """Adds rows of M to minibatches: `replayed` ones to the policy loss, fresh draws to the cloning loss."""

    memory: GoodEpisodeMemory
    config: OPRConfig
    generator: torch.Generator
    replayed: Batch | None

    def join(self, minibatch: Batch) -> Batch:
        """The minibatch with its share of replayed rows behind the fresh ones, and with rows to clone."""
        good = self.memory.sample(self.config.bc_batch_size, self.generator) if self.config.bc_coef > 0 else None
        size = round(self.config.augment_share * len(minibatch))
        if self.replayed is None or size == 0:
            return replace(minibatch, good=good)
        picks = torch.randint(len(self.replayed), (size,), generator=self.generator, device=self.generator.device)
        return replace(_stack(minibatch, self.replayed, picks.to(minibatch.logp_old.device)), good=good)


def replayed_batch(
    policy: Policy, good: GoodRows, reference: Reference, config: OPRConfig, gamma: float, gae_lambda: float
) -> Batch:
    """Whole episodes of M as rows to train on; values and GAE under the current V, frozen for this update.

    `recorded` clips the ratio around the recorded probability, as the paper's wording suggests. `decoupled` clips
    around the policy at the start of the update and weighs a row by min(c, π_start/π_recorded): a forgotten action
    then still gets a gradient, and a large ratio stays bounded.
    """
    with torch.no_grad():
        values, logp_start = policy.value(good.obs), policy.log_prob(good.obs, good.actions)
    rewards = shaped_replay(good, logp_start, reference, config)
    next_values = torch.where(good.dones, good.bootstraps, values.roll(-1))
    advantages, returns = gae(rewards, values, next_values, good.dones, gamma, gae_lambda)
    decoupled = config.augment_ratio == "decoupled"
    weights = (logp_start - good.logp).exp().clamp_max(config.augment_weight_cap)
    upward = (good.returns > values) if config.augment_value == "upward" else torch.zeros_like(good.dones)
    return Batch(
        obs=good.obs,
        actions=good.actions,
        logp_old=logp_start if decoupled else good.logp,
        advantages=advantages,
        returns=good.returns if config.augment_value == "upward" else returns,
        values_old=values,
        weights=weights if decoupled else torch.ones_like(weights),
        value_weights=upward.to(values.dtype),
    )


def shaped_replay(good: GoodRows, logp: Tensor, reference: Reference, config: OPRConfig) -> Tensor:
    """r^OPR of replayed steps: here Δ exists under every reading of π_good, the recorded one included."""
    if config.shaping_scale == 0:
        return good.rewards
    logp_good = reference.log_prob(good.obs, good.actions)
    delta = log_ratio(good.logp if logp_good is None else logp_good, logp)
    return shape_rewards(
        good.rewards, bound_log_ratio(delta, config.shaping_bound), config.shaping_scale, config.shaping
    )


def _stack(fresh: Batch, replayed: Batch, picks: Tensor) -> Batch:
    """Fresh rows first, then the picked replayed ones."""
    assert replayed.weights is not None
    assert replayed.value_weights is not None
    ones = torch.ones_like(fresh.advantages)
    weights = ones if fresh.weights is None else fresh.weights
    value_weights = ones if fresh.value_weights is None else fresh.value_weights
    return replace(
        fresh,
        obs=torch.cat([fresh.obs, replayed.obs[picks]]),
        actions=torch.cat([fresh.actions, replayed.actions[picks]]),
        logp_old=torch.cat([fresh.logp_old, replayed.logp_old[picks]]),
        advantages=torch.cat([fresh.advantages, replayed.advantages[picks]]),
        returns=torch.cat([fresh.returns, replayed.returns[picks]]),
        values_old=torch.cat([fresh.values_old, replayed.values_old[picks]]),
        weights=torch.cat([weights, replayed.weights[picks]]),
        value_weights=torch.cat([value_weights, replayed.value_weights[picks]]),
        num_fresh=len(fresh),
    )
