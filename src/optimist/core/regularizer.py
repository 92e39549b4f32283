"""OptimisticRegularizer: the pieces of the method behind the anchor protocol."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from optimist.core.admission import is_good
from optimist.core.anchor import OptimizerStep
from optimist.core.augmentation import GoodJoiner, replayed_batch
from optimist.core.batch import Batch
from optimist.core.cloning import advantage_weights, bc_loss
from optimist.core.config import OPRConfig, require_config
from optimist.core.episode import EpisodeBuilder, Steps
from optimist.core.luck import beyond_luck
from optimist.core.memory import GoodEpisodeMemory, GoodRows
from optimist.core.policy import Policy
from optimist.core.reference import make_reference
from optimist.core.retention import make_retention
from optimist.core.shapes import require_same_shape
from optimist.core.shaping import bound_log_ratio, log_ratio, shape_rewards
from optimist.core.threshold import Thresholds
from optimist.errors import ConfigError, NonFiniteLoss

PARTS = ("clocks", "thresholds", "memory", "builder", "reference", "generator")
"""Of the state."""
SMALL = 1e-6
"""Least standard deviation of fresh advantages that cloned ones are measured in."""


class OptimisticRegularizer:
    """Optimistic Policy Regularization (arXiv 2603.06793) for any policy-gradient host.

    A host calls, in this order: `observe` after a rollout, `shape` for the rewards, `augment` for the batch, `loss`
    with each minibatch, `after_update` at the end. Nothing here draws from the host's random numbers.
    """

    def __init__(
        self,
        config: OPRConfig,
        *,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        seed: int = 0,
        frame_stack: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        """`device`: where random numbers are drawn; the learner's, so that no draw waits for it."""
        config = require_config(config)
        if not (0.0 <= gamma <= 1.0 and 0.0 <= gae_lambda <= 1.0 and frame_stack >= 1):
            raise ConfigError(
                "gamma and gae_lambda must lie between 0 and 1, and frame_stack be 1 or more, "
                f"got {gamma}, {gae_lambda} and {frame_stack}"
            )
        if not config.enabled:
            config = replace(config, bc_coef=0.0, shaping_scale=0.0, augment_share=0.0, bc_phase_interval=0)
        self.config, self.gamma, self.gae_lambda = config, gamma, gae_lambda
        self.generator = torch.Generator(device).manual_seed(seed)
        self.builder = EpisodeBuilder(
            config.max_episode_steps, frame_stack=frame_stack, learner_episodes=config.deciding_return == "learner"
        )
        shared = config.thresholds == "shared"
        self.thresholds = Thresholds(config.return_window, config.percentile, shared=shared)
        self.memory = GoodEpisodeMemory(
            config.capacity_transitions,
            config.capacity_episodes,
            retention=make_retention(config),
            max_age_updates=config.max_age_updates,
            priority_exponent=config.priority_exponent if config.sampling == "prioritized" else 0.0,
            frame_stack=frame_stack,
            gamma=gamma,
        )
        self.reference = make_reference(config)
        self.updates = self.finished = self.steps = 0  # clocks
        self.admitted = 0  # since the last update
        self.progress = 0.0
        self.last_phase = 0
        self._logged: dict[str, Tensor | float] = {}
        self._cloned: dict[str, Tensor | float] = {}  # of the last minibatch; a recorded step writes where they lie
        # A recorded step reads these where they lie: λ_BC, and the advantage of a step that is cloned with full weight.
        self._bc_coef = torch.tensor(self.bc_coef, device=device)
        self._full_weight_at = torch.tensor(config.bc_advantage_scale, device=device)
        self._beyond_luck = torch.zeros(0 if config.bc_luck is None else config.capacity_transitions, device=device)

    def observe(self, steps: Steps) -> None:
        """Finished episodes meet τ, and the good ones enter M."""
        self.updates, self.progress = self.updates + 1, steps.progress
        self.steps += steps.rewards.numel()
        self._bc_coef.fill_(self.bc_coef)
        self.memory.expire(self.updates)
        self.admitted, self._logged, before = 0, {}, self.finished
        for finished in self.builder.add(steps):
            if not math.isfinite(finished.total_reward):
                raise NonFiniteLoss(f"an episode has a return of {finished.total_reward}: a reward is nan or infinite")
            self.finished += 1
            threshold = self.thresholds.add(finished.total_reward, finished.group)
            if is_good(finished.total_reward, threshold, self.config):
                self.admitted += self.memory.add(finished.build(), self.updates)
            self._logged["opr/threshold"] = threshold
        if self.finished > before:
            self._weigh_by_luck()

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """r^OPR, [T, N]; the rewards as they are where π_good is not defined."""
        self.reference.refresh(policy, self.memory, self.admitted, self.generator)
        if self.config.shaping_scale == 0:
            return steps.rewards
        logp_good = self.reference.log_prob(steps.obs.flatten(0, 1), steps.actions.flatten(0, 1))
        if logp_good is None:
            return steps.rewards
        bounded = bound_log_ratio(log_ratio(logp_good.view_as(steps.logp), steps.logp), self.config.shaping_bound)
        self._logged["opr/shaping_saturated"] = (bounded.abs() >= self.config.shaping_bound).float().mean()
        return shape_rewards(steps.rewards, bounded, self.config.shaping_scale, self.config.shaping)

    def augment(self, batch: Batch, policy: Policy) -> Batch:
        """The batch, with good rows joining each of its minibatches."""
        if self.config.bc_advantage_unit == "deviation" and len(batch) > 1:  # for phases too, where no rows join
            self._full_weight_at.copy_(self.config.bc_advantage_scale * batch.advantages.std().clamp_min(SMALL))
        if not self.memory.episodes or self.config.bc_coef == self.config.augment_share == 0:
            return batch
        replayed = None
        if self.config.augment_share > 0:
            good = self.memory.sample_episodes(round(self.config.augment_share * len(batch)) or 1, self.generator)
            replayed = replayed_batch(policy, good, self.reference, self.config, self.gamma, self.gae_lambda)
        return replace(batch, joiner=GoodJoiner(self.memory, self.config, self.generator, replayed))

    def loss(self, policy: Policy, good: GoodRows | None = None) -> Tensor:
        """λ_BC L_BC on the given rows of M, or on rows drawn now; zero while M is empty."""
        if not self.has_rows_to_clone:
            return torch.zeros(())
        rows = self.memory.sample(self.config.bc_batch_size, self.generator) if good is None else good
        loss, self._cloned = self._cloning(policy, rows)
        return self._bc_coef * loss

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """A phase of cloning alone, if one is due: `bc_phase_epochs` passes over M."""
        clock = {"updates": self.updates, "episodes": self.finished, "steps": self.steps}[self.config.bc_phase_unit]
        interval = self.config.bc_phase_interval
        if interval == 0 or clock - self.last_phase < interval or not self.memory.episodes:
            return
        self.last_phase = clock
        for good in self.memory.passes(self.config.bc_phase_epochs, self.config.bc_batch_size, self.generator):
            loss, cloned = self._cloning(policy, good)
            self._logged |= cloned  # not among `_cloned`: a recorded step goes on writing to what lies there
            step(loss)

    @property
    def has_rows_to_clone(self) -> bool:
        """Whether `loss` has something to say."""
        return self.bc_coef != 0 and bool(self.memory.episodes)

    @property
    def bc_coef(self) -> float:
        """λ_BC at this point of the run."""
        return self.config.bc_coef * (1.0 - self.progress if self.config.bc_schedule == "linear" else 1.0)

    def forget_unfinished(self) -> None:
        """Episodes in play were cut off: their environments have been restarted."""
        self.builder.forget_unfinished()

    def metrics(self) -> dict[str, float]:
        """What there is to log about the last update."""
        content = {
            "opr/admitted": self.admitted,
            "opr/memory_transitions": self.memory.num_transitions,
            "opr/memory_episodes": len(self.memory.episodes),
            "opr/memory_fill": self.memory.num_transitions / self.config.capacity_transitions,
            "opr/memory_return": self.memory.mean_return,
            "opr/memory_bytes": self.memory.num_bytes + self.builder.num_bytes,
            "opr/bc_coef": self.bc_coef,
        }
        return {name: float(value) for name, value in (content | self._logged | self._cloned).items()}

    def state_dict(self) -> dict[str, Any]:
        """Memory, windows, unfinished episodes, reference, clocks and generator."""
        return {
            "clocks": [self.updates, self.finished, self.steps, self.last_phase],
            "thresholds": self.thresholds.state_dict(),
            "memory": self.memory.state_dict(),
            "builder": self.builder.state_dict(),
            "reference": self.reference.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any], policy: Policy, device: torch.device | str | None = None) -> None:
        """Take over the state of `state_dict`, on the policy's device unless another is named."""
        if missing := [part for part in PARTS if part not in state]:
            raise ConfigError(f"this is no state of OptimisticRegularizer: it lacks {', '.join(missing)}")
        if device is None:
            device = next(policy.parameters()).device if isinstance(policy, torch.nn.Module) else "cpu"
        self.memory.load_state_dict(state["memory"], device)  # first: it may not fit
        self.updates, self.finished, self.steps, self.last_phase = state["clocks"]
        self.thresholds.load_state_dict(state["thresholds"])
        self.builder.load_state_dict(state["builder"], device)
        self.reference.load_state_dict(state["reference"], policy)
        self.generator.set_state(state["generator"])
        self._weigh_by_luck()

    def _weigh_by_luck(self) -> None:
        """Each stored step's weight: its episode's part beyond luck, as the recent returns now stand."""
        if self.config.bc_luck is None or not self.memory.episodes:
            return
        beyond = torch.tensor(beyond_luck(self.memory.episodes, self.thresholds, self.config.bc_luck))
        lengths = torch.tensor([len(stored.rows) for stored in self.memory.episodes])
        self._beyond_luck[self.memory.rows] = beyond.repeat_interleave(lengths).to(self._beyond_luck)
        self._logged["opr/beyond_luck"] = float(beyond.mean())

    def _cloning(self, policy: Policy, good: GoodRows) -> tuple[Tensor, dict[str, Tensor | float]]:
        """L_BC with the config's weights, filter and priorities; and what there is to log about it."""
        logp, weights = policy.log_prob(good.obs, good.actions), None
        require_same_shape(returns=good.returns, log_prob=logp)
        if self.config.bc_weights == "advantage" or self.config.bc_filter or self.config.sampling == "prioritized":
            with torch.no_grad():
                values = policy.value(good.obs).detach()
            require_same_shape(returns=good.returns, value=values)
            self.memory.set_priorities(good.rows, good.returns - values)
            if self.config.bc_weights == "advantage":
                weights = advantage_weights(good.returns, values, self._full_weight_at)
            elif self.config.bc_filter:
                weights = (good.returns > values).to(logp.dtype)
        if self.config.bc_luck is not None:
            beyond = self._beyond_luck[good.rows]
            weights = beyond if weights is None else weights * beyond
        loss = bc_loss(logp, weights)
        return loss, {"loss/bc": loss.detach(), "opr/bc_weight": 1.0 if weights is None else weights.mean()}
