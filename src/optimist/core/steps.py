"""Records that check their shapes: Steps [T, N] of a host, Rollout [T, N] of a learner, Batch [B] of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from optimist.errors import ConfigError, ShapeMismatch

COLUMNS = ("rewards", "logp", "dones", "raw_rewards", "episode_ends", "bootstraps", "valid", "groups", "forced")
"""Fields of `Steps` with one number a step."""
REQUIRED = ("obs", "actions", "rewards", "logp", "dones")
"""Fields of `Steps` that every host gives."""


ROW_FIELDS = ("obs", "actions", "logp_old", "advantages", "returns", "values_old", "weights", "value_weights")
"""Fields of `Batch` with one entry a row."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """T steps of N environments, as executed: what a host gives its anchor after a rollout.

    `raw_rewards` and `episode_ends` are the environment's, `rewards` and `dones` the learner's (clipped, one life). An
    end is marked at the last step of its episode, not at the first of the next: `from_cleanrl` converts those.
    `bootstraps` is V of the state after a time limit, 0 elsewhere. Ends may be numbers, and rewards integers; they are
    converted.
    """

    obs: Tensor  # [T, N, ...]
    actions: Tensor  # [T, N, ...]
    rewards: Tensor  # [T, N]
    logp: Tensor  # [T, N] log π_old(a|s), recorded at execution
    dones: Tensor  # [T, N]
    raw_rewards: Tensor | None = None  # [T, N]; None: the same as `rewards`
    episode_ends: Tensor | None = None  # [T, N]; None: the same as `dones`
    bootstraps: Tensor | None = None  # [T, N]; None: no time limits
    valid: Tensor | None = None  # [T, N]; false on the reset step of a next-step autoreset; None: all valid
    groups: Tensor | None = None  # [T, N] opponent or level of the episode; None: one group
    forced: Tensor | None = None  # [T, N] actions that the policy did not choose: neither policy loss nor cloning
    starts: Tensor | None = None  # [E, ...] what restores the start of each episode that ends, in order of time

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("obs", "actions", *COLUMNS)}
        for name, value in given.items():
            if not isinstance(value, Tensor) and (value is not None or name in REQUIRED):
                raise ShapeMismatch(f"{name} is a {type(value).__name__}; expected a torch tensor [T, N, ...]")
        for name in ("dones", "episode_ends", "valid", "forced"):
            if given[name] is not None:
                object.__setattr__(self, name, given[name].bool())  # integers would be used as indices
        for name in ("rewards", "raw_rewards"):
            if given[name] is not None:
                object.__setattr__(self, name, _floating(given[name].detach()))
        require_same_shape(**{name: given[name] for name in COLUMNS if given[name] is not None})
        shape = self.rewards.shape
        if self.obs.shape[:2] != shape or self.actions.shape[:2] != shape:
            raise ShapeMismatch(
                f"obs is {list(self.obs.shape)} and actions {list(self.actions.shape)} but rewards is {list(shape)}; "
                "all are expected as [T, N, ...]"
            )
        if self.rewards.numel() == 0:
            raise ShapeMismatch(f"rewards is {list(shape)}; a rollout has at least one step")

    @classmethod
    def from_cleanrl(
        cls,
        *,
        obs: Tensor,
        actions: Tensor,
        rewards: Tensor,
        logprobs: Tensor,
        dones: Tensor,
        next_done: Tensor,
        autoreset: object,
        **columns: Tensor | None,
    ) -> Steps:
        """Make Steps of the tensors of a CleanRL loop.

        `dones[t]` says that an episode ended before step t, and `next_done` [N] that one ended with the last step.
        `autoreset` is `envs.metadata["autoreset_mode"]`, or its value "SameStep" or "NextStep". With NextStep, the step
        after an end only resets, and is not valid. `columns`: other fields of `Steps`, marked at their own step.
        """
        for name, value in (("dones", dones), ("next_done", next_done)):
            if not isinstance(value, Tensor):
                raise ShapeMismatch(f"{name} is a {type(value).__name__}; expected a torch tensor")
        if dones.dim() != 2 or next_done.shape != dones.shape[1:]:
            raise ShapeMismatch(
                f"next_done is {list(next_done.shape)} and dones {list(dones.shape)}; expected [N] and [T, N]"
            )
        mode = getattr(autoreset, "value", autoreset)  # of Gymnasium's enumeration
        if mode not in ("SameStep", "NextStep"):
            raise ConfigError(
                f"autoreset is {mode!r}; expected 'SameStep' or 'NextStep': pass envs.metadata[\"autoreset_mode\"]"
            )
        starts, ends = dones.bool(), torch.cat([dones[1:], next_done[None]]).bool()
        if mode == "NextStep":
            raw_rewards = columns.get("raw_rewards")
            if (starts & ends).any() or (rewards if raw_rewards is None else raw_rewards)[starts].any():
                raise ConfigError(
                    "a step after an end has a reward or ends an episode, so it does not only reset: pass autoreset "
                    "'SameStep', or raw_rewards where a wrapper changes rewards"
                )
            columns = {"valid": ~starts, **columns}
        return cls(obs=obs, actions=actions, rewards=rewards, logp=logprobs, dones=ends, **columns)


@dataclass(frozen=True, kw_only=True)
class Rollout(Steps):
    """T steps of N environments, with V of each state and of its successor."""

    values: Tensor  # [T, N]
    next_values: Tensor  # [T, N]; 0 after a real end, the bootstrap value after a time limit
    truncated: Tensor | None = None  # [T, N]; steps whose `bootstraps` is a value; None: none
    final_obs: Tensor | None = None  # [M, ...]; the observations after them, in order of time, then environment
    progress: float = 0.0  # share of the run that is done, in [0, 1], for schedules

    def __post_init__(self) -> None:
        super().__post_init__()
        require_same_shape(rewards=self.rewards, values=self.values, next_values=self.next_values)
        if not 0.0 <= self.progress <= 1.0:
            raise ConfigError(f"progress must be between 0 and 1, got {self.progress}")

    def flatten(self, advantages: Tensor, returns: Tensor, *, standardized: bool = False) -> Batch:
        """Make a Batch [T·N] of the valid rows; `standardized`: its advantages are standardised over all of them.

        Rows whose action was forced have no weight in the policy loss, which is the mean over the others.
        """
        chosen = torch.ones_like(self.logp) if self.forced is None else (~self.forced).to(self.logp.dtype)
        columns = (self.obs, self.actions, self.logp, advantages, returns, self.values, chosen)
        rows = [column.flatten(0, 1) for column in columns]
        if self.valid is not None and not bool(self.valid.all()):
            kept = self.valid.flatten().nonzero().squeeze(-1)
            rows = [column[kept] for column in rows]
        obs, actions, logp, advantages, returns, values, chosen = rows
        if len(chosen) and not chosen.any():
            raise ConfigError(
                "the environment forced every action of a rollout, so the policy has no row to learn from: collect "
                "longer rollouts, or set env.forced_actions = 'executed'"
            )
        return Batch(
            obs=obs,
            actions=actions,
            logp_old=logp,
            advantages=advantages,
            returns=returns,
            values_old=values,
            weights=None if self.forced is None else chosen / chosen.mean(),
            statistics_of=advantages if standardized else None,
        )


@dataclass(frozen=True, kw_only=True)
class Batch:
    """B rows to learn from: fresh ones first, then rows replayed from M."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    logp_old: Tensor  # [B] log-probability around which the ratio is clipped
    advantages: Tensor  # [B]
    returns: Tensor  # [B] value targets
    values_old: Tensor  # [B]
    weights: Tensor | None = None  # [B] weight in the policy loss; None: all 1
    value_weights: Tensor | None = None  # [B] weight in the value loss; None: all 1
    statistics_of: Tensor | None = None  # advantages whose mean and spread standardise these; None: not requested
    num_fresh: int = -1  # rows that count in statistics, entropy and KL; −1: all

    def __post_init__(self) -> None:
        require_same_shape(
            logp_old=self.logp_old, advantages=self.advantages, returns=self.returns, values_old=self.values_old
        )

    def __len__(self) -> int:
        return len(self.logp_old)

    def fresh(self, values: Tensor) -> Tensor:
        """The entries of fresh rows: the only ones in advantage statistics, entropy and KL."""
        return values if self.num_fresh < 0 else values[: self.num_fresh]

    def joined(self, replayed: Batch) -> Batch:
        """This batch with replayed rows after its own."""
        ones = torch.ones_like(self.advantages)
        own = replace(
            self,
            weights=ones if self.weights is None else self.weights,
            value_weights=ones if self.value_weights is None else self.value_weights,
        )
        columns = {name: torch.cat([getattr(own, name), getattr(replayed, name)]) for name in ROW_FIELDS}
        return replace(own, **columns, num_fresh=len(self) if replayed.num_fresh == 0 else -1)

    def rows(self, index: Tensor | slice) -> Batch:
        """The rows at these positions."""
        columns = {name: getattr(self, name) for name in ROW_FIELDS}
        return replace(self, **{name: column[index] for name, column in columns.items() if column is not None})

    def minibatches(
        self, epochs: int, size: int, generator: torch.Generator, *, merge_last: bool = False
    ) -> Iterator[Batch]:
        """Every row once per epoch, in random minibatches of `size`; what remains comes last, or joins the last."""
        sizes = self.minibatch_sizes(1, size, merge_last=merge_last)
        ends = [0, *accumulate(sizes)]
        for _ in range(epochs if sizes else 0):
            if size >= len(self):
                yield self  # a full-batch step needs no order
                continue
            order = torch.randperm(len(self), generator=generator, device=generator.device)
            shuffled = self.rows(order.to(self.logp_old.device))
            for begin, end in pairwise(ends):
                yield shuffled.rows(slice(begin, end))

    def minibatch_sizes(self, epochs: int, size: int, *, merge_last: bool = False) -> list[int]:
        """The rows of each minibatch of `minibatches`; none for a rollout of reset steps alone."""
        count, rest = divmod(len(self), size)
        sizes = [size] * count + [rest] * (rest > 0)
        if merge_last and rest and count:
            sizes[-2:] = [size + rest]
        return sizes * epochs


def require_same_shape(**tensors: Tensor) -> None:
    """Raise ShapeMismatch, naming both, if two of the given tensors differ in shape."""
    (first, expected), *others = tensors.items()
    for name, tensor in others:
        if tensor.shape != expected.shape:
            raise ShapeMismatch(
                f"{name} is {list(tensor.shape)} but {first} is {list(expected.shape)}; both must match"
            )


def _floating(values: Tensor) -> Tensor:
    return values if values.is_floating_point() else values.float()
