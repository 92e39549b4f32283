"""OptimisticRegularizer: the pieces of the method as one anchor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import torch
from torch import Tensor

from optimist.core.admission import GroupWindows
from optimist.core.anchor import Anchor, OptimizerStep, anchor_loss
from optimist.core.augmentation import replayed_batch
from optimist.core.cloning import (
    advantage_weights,
    bc_loss,
    chosen_weights,
    luck_weights,
    tail_weights,
    trust_weights,
)
from optimist.core.config import OPRConfig, require_config
from optimist.core.end_check import EndCheck
from optimist.core.episode import EpisodeBuilder, FinishedEpisode
from optimist.core.eviction import FirstInFirstOut, LowestReturnFirst
from optimist.core.memory import GoodEpisodeMemory, GoodRows
from optimist.core.policy import Policy, require_policy
from optimist.core.reference import ClonedReference
from optimist.core.shaping import bound_log_ratio, log_ratio, shape_rewards
from optimist.core.steps import Batch, Rollout, Steps, require_same_shape
from optimist.errors import ConfigError, NonFiniteLoss

STATE_PARTS = ("counters", "windows", "memory", "builder", "reference", "generator")
METRICS = {
    "opr/threshold": ("reward", "τ of the last finished episode: percentile P of the last K returns"),
    "opr/admitted": ("episodes", "episodes admitted to the memory M in this update"),
    "opr/memory_transitions": ("steps", "transitions in M"),
    "opr/memory_episodes": ("episodes", "episodes in M"),
    "opr/memory_fill": ("share", "transitions in M over N_max"),
    "opr/memory_return": ("reward", "mean return of the episodes in M"),
    "opr/memory_bytes": ("bytes", "memory used by M and by the unfinished episodes"),
    "opr/shaping_saturated": ("share", "of the Δ̃ of fresh steps, those at the bound ± δ (a π_good network)"),
    "opr/bc_coef": ("–", "λ_BC of this update"),
    "opr/beyond_luck": ("–", "mean over M of the part of an episode beyond luck (`opr.bc_luck`), 0 to 1"),
    "opr/bc_weight": ("–", "mean weight of a cloned step in the last minibatch; near 0 if V expects as much"),
    "loss/bc": ("nats", "L_BC of the last minibatch, weighted per step but before λ_BC"),
}
"""Metric → unit and meaning."""


class OptimisticRegularizer(Anchor):
    """Optimistic Policy Regularization (arXiv 2603.06793) for any policy-gradient host.

    A host calls `observe` after a rollout, `shape` for the rewards, `loss` in each minibatch and `after_update` at the
    end; a learner that replays rows also calls `replay` and `join`. OPR draws from its own random generator.
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
        """`device`: where random numbers are drawn; the learner's, to avoid synchronisation."""
        config = require_config(config)
        if not (0.0 <= gamma <= 1.0 and 0.0 <= gae_lambda <= 1.0 and frame_stack >= 1):
            raise ConfigError(
                "gamma and gae_lambda must be between 0 and 1, and frame_stack at least 1, "
                f"got {gamma}, {gae_lambda} and {frame_stack}"
            )
        if not config.enabled:
            config = replace(config, bc_coef=0.0, shaping_scale=0.0, augment_share=0.0, bc_phase_interval=0)
        self.config, self.gamma, self.gae_lambda = config, gamma, gae_lambda
        self.generator = torch.Generator(device).manual_seed(seed)
        self.builder = EpisodeBuilder(config.max_episode_steps, frame_stack=frame_stack)
        self.windows = GroupWindows(config.return_window, config.percentile, config.admission)
        self.memory = GoodEpisodeMemory(
            config.capacity_transitions,
            config.capacity_episodes,
            eviction=FirstInFirstOut() if config.retention == "fifo" else LowestReturnFirst(),
            prioritized=config.sampling != "uniform",
            frame_stack=frame_stack,
            gamma=gamma,
        )
        clones = config.reference == "cloned" and config.shaping_scale > 0
        self.reference = ClonedReference(config.phase_batch_size) if clones else None
        self.updates = self.finished = self.steps = self.last_phase = 0
        self.admitted = 0  # in this update
        self.end_check = EndCheck()
        self._luck_weights = torch.zeros(0 if config.bc_luck is None else config.capacity_transitions, device=device)
        self._metrics: dict[str, Tensor | float] = {}
        self._cloning_metrics: dict[str, Tensor] = {}  # updated in place: captured CUDA graphs hold their addresses

    def observe(self, steps: Steps) -> None:
        """Compare finished episodes with τ and admit the good ones to M."""
        self.updates, self.steps = self.updates + 1, self.steps + steps.rewards.numel()
        self.admitted, self._metrics = 0, {}
        if self.config.max_age_updates is not None:
            self.memory.evict_older_than(self.updates - self.config.max_age_updates)
        if not isinstance(steps, Rollout):  # our own collectors mark ends as they should
            self.end_check.look(steps)
        good: list[FinishedEpisode] = []
        thresholds: list[float] = []
        for episode in self.builder.add(steps):
            if not math.isfinite(episode.total_reward):
                raise NonFiniteLoss(f"an episode has a return of {episode.total_reward}: a reward is nan or infinite")
            self.finished += 1
            admitted, threshold = self.windows.admits(episode.total_reward, episode.group)
            self._metrics["opr/threshold"] = threshold
            if admitted:
                good.append(episode)
                thresholds.append(threshold)
        if good:
            self.admitted = self.memory.add_all(good, self.builder.build, self.updates, thresholds, self.steps)
        if self.config.bc_luck is not None and "opr/threshold" in self._metrics:
            self._update_luck_weights()

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """r^OPR, [T, N]; the rewards unchanged where π_good is not defined."""
        if not isinstance(steps, Rollout):
            require_policy(policy)
        if self.config.sampling == "advantage" and self.admitted:
            self._set_own_priorities(policy)
        return steps.rewards if self.reference is None else self._shape(steps, policy, self.reference)

    def replay(self, batch: Batch, policy: Policy) -> Batch | None:
        """Draw the episodes of which rows join this batch's minibatches."""
        if self.config.augment_share == 0 or not self.memory.episodes:
            return None
        good = self.memory.sample_episodes(round(self.config.augment_share * len(batch)) or 1, self.generator)
        return replayed_batch(policy, good, self.reference, self.config, self.gamma, self.gae_lambda)

    def join(self, minibatch: Batch, replayed: Batch) -> Batch:
        """Add `augment_share` replayed rows for each fresh one."""
        size = round(self.config.augment_share * len(minibatch))
        if size == 0:
            return minibatch
        picks = torch.randint(len(replayed), (size,), generator=self.generator, device=self.generator.device)
        return minibatch.joined(replayed.rows(picks.to(replayed.logp_old.device)))

    def sample(self, sizes: Sequence[int | None], policy: Policy) -> Iterator[GoodRows | None]:
        """Yield the rows of M to clone with each minibatch; None while M is empty or λ_BC is 0."""
        if self.config.bc_coef == 0 or not self.memory.episodes:
            return repeat(None, len(sizes))
        drawn = self.memory.samples([self.config.rows_to_clone(size) for size in sizes], self.generator)
        if self.config.bc_trust is None:
            return drawn
        with torch.no_grad():
            return iter([replace(good, logp_start=policy.log_prob(good.obs, good.actions)) for good in drawn])

    def loss(self, policy: Policy, *, minibatch_size: int | None = None) -> Tensor:
        """λ_BC L_BC on rows of M drawn now; zero while M is empty. For hosts that do not draw the rows themselves."""
        require_policy(policy)
        if self.config.bc_trust is not None:
            raise ConfigError("opr.bc_trust works with this package's learners only; set it to none")
        (good,) = self.sample([minibatch_size], policy)
        return anchor_loss(self, policy, good)

    def loss_on(self, good: GoodRows, logp: Tensor, values: Tensor) -> Tensor:
        """λ_BC L_BC on sampled rows."""
        loss, metrics = self._bc_loss(good, logp, values)
        for name, value in metrics.items():
            if name in self._cloning_metrics:
                self._cloning_metrics[name].copy_(value)
            else:
                self._cloning_metrics[name] = value.clone()
        return self.config.bc_coef * loss

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """Run a cloning phase, if one is due: `bc_phase_epochs` passes over M."""
        clock = {"updates": self.updates, "episodes": self.finished, "steps": self.steps}[self.config.bc_phase_unit]
        interval = self.config.bc_phase_interval
        if interval and clock - self.last_phase >= interval and self.memory.episodes:
            self.last_phase = clock
            self._run_phase(policy, step)

    def forget_unfinished(self) -> None:
        """Drop unfinished episodes: their environments have been reset."""
        self.builder.forget_unfinished()

    def in_place_tensors(self) -> Sequence[Tensor]:
        """The priorities of M, which `loss_on` updates in place."""
        return [self.memory.pools["priorities"]] if "priorities" in self.memory.pools else []

    def metrics(self) -> dict[str, float]:
        """Metrics of the last update."""
        content = {
            "opr/admitted": self.admitted,
            "opr/memory_transitions": self.memory.num_transitions,
            "opr/memory_episodes": len(self.memory.episodes),
            "opr/memory_fill": self.memory.num_transitions / self.config.capacity_transitions,
            "opr/memory_return": self.memory.mean_return,
            "opr/memory_bytes": self.memory.num_bytes + self.builder.num_bytes,
            "opr/bc_coef": self.config.bc_coef,
        }
        return {name: float(value) for name, value in (content | self._metrics | self._cloning_metrics).items()}

    def state_dict(self) -> dict[str, Any]:
        """Memory, windows, unfinished episodes, reference, counters and generator."""
        return {
            "counters": [self.updates, self.finished, self.steps, self.last_phase],
            "windows": self.windows.state_dict(),
            "memory": self.memory.state_dict(),
            "builder": self.builder.state_dict(),
            "reference": {} if self.reference is None else self.reference.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any], policy: Policy, device: torch.device | str | None = None) -> None:
        """Restore `state_dict` on the policy's device, or on `device`."""
        if missing := [part for part in STATE_PARTS if part not in state]:
            raise ConfigError(f"the state is not one of OptimisticRegularizer: it lacks {', '.join(missing)}")
        if device is None:
            device = next(policy.parameters()).device if isinstance(policy, torch.nn.Module) else "cpu"
        self.memory.load_state_dict(state["memory"], device)  # first: it may not fit
        self.updates, self.finished, self.steps, self.last_phase = state["counters"]
        self.windows.load_state_dict(state["windows"])
        self.builder.load_state_dict(state["builder"], device)
        if self.reference is not None:
            self.reference.load_state_dict(state["reference"], policy)
        self.generator.set_state(state["generator"])
        if self.config.bc_luck is not None:
            self._update_luck_weights()

    def _shape(self, steps: Steps, policy: Policy, reference: ClonedReference) -> Tensor:
        """r^OPR of fresh steps, once M has been cloned."""
        reference.refresh(policy, self.memory, self.generator)
        logp_good = reference.log_prob(steps.obs.flatten(0, 1), steps.actions.flatten(0, 1))
        if logp_good is None:
            return steps.rewards
        bounded = bound_log_ratio(log_ratio(logp_good.view_as(steps.logp), steps.logp), self.config.shaping_bound)
        self._metrics["opr/shaping_saturated"] = (bounded.abs() >= self.config.shaping_bound).float().mean()
        return shape_rewards(steps.rewards, bounded, self.config.shaping_scale)

    def _run_phase(self, policy: Policy, step: OptimizerStep) -> None:
        """Minimise L_BC over M, without λ_BC."""
        for good in self.memory.passes(self.config.bc_phase_epochs, self.config.phase_batch_size, self.generator):
            logp = policy.log_prob(good.obs, good.actions)
            with torch.no_grad():
                values = policy.value(good.obs)
            loss, metrics = self._bc_loss(good, logp, values)
            self._metrics |= metrics
            step(loss)

    def _bc_loss(self, good: GoodRows, logp: Tensor, values: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """L_BC with the config's weights, and its metrics; updates the priorities of the rows."""
        require_same_shape(returns=good.returns, log_prob=logp, value=values)
        self._set_priorities(good, values.detach())
        weights = advantage_weights(good.returns, values) if self.config.bc_weights == "advantage" else None
        if self.config.bc_luck is not None:
            luck = self._luck_weights[good.rows]
            weights = luck if weights is None else weights * luck
        if good.logp_start is not None and self.config.bc_trust is not None:
            trusted = trust_weights(logp, good.logp_start, self.config.bc_trust)
            weights = trusted if weights is None else weights * trusted
        if good.forced is not None:
            chosen = chosen_weights(good.forced).to(logp.dtype)
            weights = chosen if weights is None else weights * chosen
        loss = bc_loss(logp, weights)
        mean_weight = torch.ones_like(loss) if weights is None else weights.mean()
        return loss, {"loss/bc": loss.detach(), "opr/bc_weight": mean_weight}

    def _set_own_priorities(self, policy: Policy) -> None:
        """Set the priorities of the steps that this update admitted to those of their own advantages."""
        new = [stored for stored in self.memory.episodes if stored.admitted_at == self.updates]
        for good in self.memory.all_of(new, self.config.phase_batch_size):
            with torch.no_grad():
                self._set_priorities(good, policy.value(good.obs))

    def _set_priorities(self, good: GoodRows, values: Tensor) -> None:
        """Set the priorities of these steps by their advantages; forced ones are never cloned, and hardly drawn."""
        advantages = good.returns - values
        if good.forced is not None:
            advantages = advantages.masked_fill(good.forced, 0.0)
        self.memory.set_priorities(good.rows, advantages)

    def _update_luck_weights(self) -> None:
        """Weight each stored step by how far its episode exceeds what luck explains of recent returns."""
        stored, luck = self.memory.episodes, self.config.bc_luck
        if not stored:
            return
        if isinstance(luck, float):
            weights = torch.tensor(luck_weights(stored, self.windows, luck))
        else:
            weights = torch.tensor(tail_weights(stored, self.windows, self.finished))
        lengths = torch.tensor([episode.length for episode in stored])
        self._luck_weights[self.memory.rows] = weights.repeat_interleave(lengths).to(self._luck_weights)
        self._metrics["opr/beyond_luck"] = float(weights.mean())


def max_bytes(
    config: OPRConfig,
    *,
    observation: Tensor,
    action: Tensor,
    num_envs: int,
    rollout_steps: int,
    frame_stack: int = 1,
) -> int:
    """The most bytes that M and the unfinished episodes will hold; `observation` and `action` are samples of one.

    M is allocated whole at the first admission. Unfinished episodes take as much as the longest of them needs, at most
    `max_episode_steps` steps of every environment.
    """
    frame, step = observation.nbytes // frame_stack, action.nbytes + 13  # reward, log-probability, done, bootstrap
    older_frames = frame_stack - 1  # of each episode's first observation
    frames = config.capacity_transitions + older_frames * config.capacity_episodes
    memory = config.capacity_transitions * (step + 8) + frames * frame  # a row of M has a return and a priority too
    rows = config.max_episode_steps + older_frames + rollout_steps
    return memory + num_envs * (rows * (step + frame) + older_frames * frame)
