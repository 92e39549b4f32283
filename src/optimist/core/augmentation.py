"""Station 5. Replayed good steps as rows of a policy-gradient minibatch."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.core.advantages import gae
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodSteps
from optimist.core.policy import Policy
from optimist.core.reference import ClonedReference
from optimist.core.shaping import bound_log_ratio, log_ratio, shape_rewards
from optimist.core.steps import Batch

WEIGHT_CAP = 1.0
"""c. Largest importance weight π_start/π_recorded of a replayed row."""


def replayed_batch(
    policy: Policy,
    good: GoodSteps,
    reference: ClonedReference | None,
    config: OPRConfig,
    gamma: float,
    gae_lambda: float,
) -> Batch:
    """Turn whole episodes of M into rows to train on; values and GAE under the current V, fixed for this update.

    `recorded` clips the ratio around the recorded probability, as the paper's wording suggests. `decoupled` clips
    around the policy at the start of the update and weights a row by min(c, π_start/π_recorded): a forgotten action
    then still gets a gradient, and a large ratio stays bounded.
    """
    with torch.no_grad():
        values, logp_start = policy.value(good.obs), policy.log_prob(good.obs, good.actions)
    rewards = shape_replayed(good, logp_start, reference, config)
    next_values = torch.where(good.dones, good.bootstraps, values.roll(-1))
    advantages, returns = gae(rewards, values, next_values, good.dones, gamma, gae_lambda)
    weights = torch.ones_like(values)
    if config.augment_rows == "decoupled":
        weights = (logp_start - good.logp).exp().clamp_max(WEIGHT_CAP)
    if good.forced is not None:
        weights = weights * (~good.forced).to(weights.dtype)
    return Batch(
        obs=good.obs,
        actions=good.actions,
        logp_old=logp_start if config.augment_rows == "decoupled" else good.logp,
        advantages=advantages,
        returns=returns,
        values_old=values,
        weights=weights,
        value_weights=torch.full_like(values, float(config.augment_rows == "full")),
        num_fresh=-1 if config.augment_rows == "full" else 0,
    )


def shape_replayed(good: GoodSteps, logp: Tensor, reference: ClonedReference | None, config: OPRConfig) -> Tensor:
    """r^OPR of replayed steps: here Δ exists under both readings of π_good."""
    if config.shaping_scale == 0:
        return good.rewards
    logp_good = None if reference is None else reference.log_prob(good.obs, good.actions)
    delta = log_ratio(good.logp if logp_good is None else logp_good, logp)
    return shape_rewards(good.rewards, bound_log_ratio(delta, config.shaping_bound), config.shaping_scale)
