"""Replay: stores rollouts and draws n-step transitions uniformly; memory is allocated once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.core.steps import Rollout
from optimist.errors import ConfigError
from optimist.replay.observations import ObservationRing

CONTINUES, TERMINAL, TRUNCATED, CUT, DEAD = range(5)
"""What follows a step: the next step; nothing; a state after a time limit; the next state but no next step (the
environment was reset there). A DEAD row is no step; its observation may be the next one of another step."""


@dataclass(frozen=True)
class Transitions:
    """B transitions of n steps, or fewer where an episode ends."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B]
    returns: Tensor  # [B] r₁ + γ r₂ + … up to the state to bootstrap from
    next_obs: Tensor  # [B, ...] that state
    discounts: Tensor  # [B] factor of its value: γᵐ after m steps, 0 after a real end
    positions: Tensor  # [B] their positions in the replay buffer
    weights: Tensor | None = None  # [B] of the rows in the loss; None: all 1

    def split(self, size: int) -> Iterator[Transitions]:
        """Minibatches of `size` rows, in order."""
        if len(self.returns) == size:
            yield self
            return
        columns: dict[str, Any] = {name: column for name, column in vars(self).items() if column is not None}
        for begin in range(0, len(self.returns), size):
            yield Transitions(**{name: column[begin : begin + size] for name, column in columns.items()})


class Replay:
    """A ring buffer of the last `capacity` steps of N environments, in order of time.

    A step can be drawn once the state n steps later is stored. With stacked images the oldest stack − 1 rows cannot be
    drawn: their older frames are overwritten.
    """

    def __init__(
        self,
        capacity: int,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
        frame_stack: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        self.capacity, self.n_step, self.gamma, self.frame_stack = capacity, n_step, gamma, frame_stack
        self.device = torch.device(device)
        self.num_envs = self.num_rows = self.size = 0  # known with the first rollout
        self.time = 0  # rows ever written
        self.has_dead = False
        self._restarted = True  # every environment begins an episode with the next row

    def add(self, rollout: Rollout, rewards: Tensor) -> None:
        """Append T rows with the given training rewards."""
        num_steps, num_envs = rewards.shape
        if not self.size:
            self._allocate(num_envs, rollout.obs[0, 0], rollout.actions[0, 0])
            self._check_room(num_steps)
        spans = self._spans(self.time * num_envs, num_steps * num_envs)
        starts = self._starts(rollout) if self.frame_stack > 1 else None
        self.observations.add(spans, rollout.obs, starts, fresh=self._restarted)
        for column, values in (
            (self.actions, rollout.actions),
            (self.rewards, rewards),
            (self.ends, self._ends(rollout)),
        ):
            flat = values.flatten(0, 1)
            for positions, rows in spans:
                column[positions] = flat[rows]
        if rollout.truncated is not None and rollout.final_obs is not None:
            self._add_finals(rollout.truncated, rollout.final_obs)
        self.time += num_steps
        self._restarted = False
        self._note_extent()

    def forget_unfinished(self) -> None:
        """Mark the newest unfinished steps: their environments have been reset, so their next states are unknown.

        Such a row is no step any more, only the next state of the step before it.
        """
        if self.time == 0 or self._restarted:
            return
        newest = (torch.arange(self.num_envs, device=self.device) + (self.time - 1) * self.num_envs) % self.size
        before = (newest - self.num_envs) % self.size
        unfinished = self.ends[newest] == CONTINUES
        if self.time > 1:
            self.ends[before] = self.ends[before].masked_fill(unfinished & (self.ends[before] == CONTINUES), CUT)
        self.ends[newest] = self.ends[newest].masked_fill(unfinished, DEAD)
        self.has_dead = self._restarted = True

    def sample(self, size: int, generator: torch.Generator) -> Transitions:
        """Draw `size` transitions uniformly, with replacement."""
        if self.device.type == "cpu" or generator.device.type == "cpu":
            draws = torch.randint(self.num_ready, (size,), generator=generator, device=generator.device).to(self.device)
            first = self._first
            return self.transitions((draws + first * self.num_envs) % self.size if first else draws)
        shares = torch.rand(size, generator=generator, device=self.device, dtype=torch.float64)
        return self.transitions(self.positions_of(shares))

    def positions_of(self, shares: Tensor) -> Tensor:
        """Return the positions [B] of the steps at these shares in [0, 1) of all drawable steps, oldest first.

        The number of steps is read on the device, so that a captured graph sees later steps. The largest share below 1
        in float64, times a whole number, stays below that number.
        """
        return ((shares * self.ready).long() + self.oldest) % self.size

    def transitions(self, positions: Tensor) -> Transitions:
        """Return the n-step transitions from `positions` [B]; rows that are no steps get weight 0."""
        ends, returns, last = self.ends.index_select(0, positions), self.rewards.index_select(0, positions), positions
        weights = None
        if self.has_dead:
            weights = (ends != DEAD).float()
            weights = weights / weights.mean().clamp_min(1.0 / len(weights))
        discounts: Tensor | float = self.gamma
        for k in range(1, self.n_step):
            continues = ends == CONTINUES
            here = (positions + k * self.num_envs) % self.size
            returns = returns + continues * (self.gamma**k * self.rewards[here])
            discounts = torch.where(continues, self.gamma ** (k + 1), discounts)
            last, ends = torch.where(continues, here, last), torch.where(continues, self.ends[here], ends)
        return Transitions(
            obs=self.observations.at(positions),
            actions=self.actions.index_select(0, positions),
            returns=returns,
            next_obs=self.observations.after(last, ends == TRUNCATED if self.observations.num_finals else None),
            discounts=(ends != TERMINAL) * discounts,
            positions=positions,
            weights=weights,
        )

    @property
    def layout(self) -> tuple[object, ...]:
        """Changes when the operations or the memory addresses of a draw change."""
        ring = self.observations
        return self.has_dead, ring.repeats, ring.num_finals > 0, len(ring.finals)

    @property
    def written(self) -> list[Tensor]:
        """The tensors that a gradient step changes: none."""
        return []

    @property
    def num_ready(self) -> int:
        """Steps that can be drawn."""
        return max(0, self.time - self.n_step - self._first) * self.num_envs

    @property
    def num_written(self) -> int:
        """Steps ever stored, overwritten ones included."""
        return self.time * self.num_envs

    @property
    def num_transitions(self) -> int:
        """Steps stored."""
        return min(self.time, self.num_rows) * self.num_envs

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        if not self.size:
            return 0
        return self.observations.num_bytes + sum(t.nbytes for t in (self.actions, self.rewards, self.ends))

    def state_dict(self) -> dict[str, Any]:
        """Return the stored rows."""
        if not self.size:
            return {"time": 0}
        filled = self.num_transitions
        return {
            "time": self.time,
            "num_envs": self.num_envs,
            "has_dead": self.has_dead,
            "restarted": self._restarted,
            "over": self._over,
            "observation": self.observations.at(torch.zeros(1, dtype=torch.int64, device=self.device))[0],
            "observations": self.observations.state_dict(filled),
            "actions": self.actions[:filled],
            "rewards": self.rewards[:filled],
            "ends": self.ends[:filled],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.time = state["time"]
        if self.time == 0:
            return
        self._allocate(state["num_envs"], state["observation"], state["actions"][0])
        rows = len(state["actions"]) // self.num_envs
        if self.time > rows != self.num_rows:  # the ring has wrapped, so its size fixes the positions
            raise ValueError(f"the saved replay has {rows} rows, this one {self.num_rows}")
        self.has_dead, self._restarted = state["has_dead"], state["restarted"]
        self._over = state["over"].to(self.device)
        self.observations.load_state_dict(state["observations"])
        for name in ("actions", "rewards", "ends"):
            getattr(self, name)[: len(state[name])] = state[name].to(self.device)
        self._note_extent()

    @property
    def _first(self) -> int:
        """The first row that can be drawn."""
        return max(0, self.time - self.num_rows + self.frame_stack - 1) if self.time > self.num_rows else 0

    def _allocate(self, num_envs: int, obs: Tensor, action: Tensor) -> None:
        self.num_envs, self.num_rows = num_envs, max(1, self.capacity // num_envs)
        self.size = self.num_rows * num_envs
        self.observations = ObservationRing(self.size, num_envs, self.frame_stack, obs, self.device)
        self.actions = torch.zeros((self.size, *action.shape), dtype=action.dtype, device=self.device)
        self.rewards = torch.zeros(self.size, device=self.device)
        self.ends = torch.zeros(self.size, dtype=torch.uint8, device=self.device)
        self._over = torch.ones(num_envs, dtype=torch.bool, device=self.device)  # the next row begins an episode
        self.ready = torch.zeros((), dtype=torch.int64, device=self.device)  # `num_ready`, for draws on the device
        self.oldest = torch.zeros((), dtype=torch.int64, device=self.device)  # position of the first of them

    def _note_extent(self) -> None:
        self.ready.fill_(self.num_ready)
        self.oldest.fill_(self._first * self.num_envs % self.size)

    def _check_room(self, num_steps: int) -> None:
        needed = num_steps + self.n_step + self.frame_stack
        if self.num_rows < needed:
            raise ConfigError(
                f"replay_capacity {self.capacity} holds {self.num_rows} steps of {self.num_envs} environments; "
                f"at least {needed * self.num_envs} are needed for one update"
            )

    def _spans(self, begin: int, length: int) -> list[tuple[slice, slice]]:
        """Return slices of positions and rows to write; two where the ring wraps."""
        begin %= self.size
        here = min(length, self.size - begin)
        spans = [(slice(begin, begin + here), slice(0, here))]
        return spans if here == length else [*spans, (slice(0, length - here), slice(here, length))]

    def _ends(self, rollout: Rollout) -> Tensor:
        ends = rollout.dones.to(torch.uint8)
        if rollout.truncated is not None:
            ends = ends.masked_fill(rollout.truncated, TRUNCATED)
        if rollout.valid is not None:
            ends = ends.masked_fill(~rollout.valid, DEAD)
            self.has_dead = True
        return ends

    def _starts(self, rollout: Rollout) -> Tensor:
        """Return where episodes begin, [T, N]: after an end, or after the reset step that follows it."""
        assert rollout.episode_ends is not None
        ended = rollout.episode_ends.to(self.device)
        valid = torch.ones_like(ended) if rollout.valid is None else rollout.valid.to(self.device)
        over = torch.cat([(self._over | self._restarted)[None], ended | ~valid])
        self._over = over[-1]
        return valid & over[:-1]

    def _add_finals(self, truncated: Tensor, final_obs: Tensor) -> None:
        rows = truncated.flatten().nonzero().squeeze(-1).to(self.device)
        positions = (rows + self.time * self.num_envs) % self.size
        oldest = self.time + len(truncated) - self.num_rows
        self.observations.add_finals(self.time, oldest, positions, truncated.sum(1).tolist(), final_obs)
