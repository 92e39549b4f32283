"""Station 3. M, the good-episode memory: whole episodes in, whole episodes out, transitions drawn in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.core.advantages import discounted_returns
from optimist.core.episode import Episode
from optimist.core.retention import FirstInFirstOut, Retention, Stored
from optimist.errors import ConfigError, NonFiniteLoss


@dataclass(frozen=True)
class GoodRows:
    """B transitions drawn from M."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    rewards: Tensor  # [B]
    logp: Tensor  # [B] recorded at execution: log π_good under the reading `recorded`
    dones: Tensor  # [B]
    bootstraps: Tensor  # [B]
    returns: Tensor  # [B] discounted return that followed
    rows: Tensor  # [B] where they lie in M

    def __len__(self) -> int:
        return len(self.rewards)


class GoodEpisodeMemory:
    """M. Up to N_max transitions of good episodes, on the learner's device, in memory allocated once.

    Steps and frames lie in two pools; an episode owns rows of both, wherever they are free, so that eviction in any
    order leaves no gaps and moves nothing. Image stacks are put together again when drawn.
    """

    def __init__(
        self,
        capacity_transitions: int,
        capacity_episodes: int,
        *,
        retention: Retention | None = None,
        max_age_updates: int | None = None,
        priority_exponent: float = 0.0,
        frame_stack: int = 1,
        gamma: float = 0.99,
    ) -> None:
        self.capacity_transitions, self.capacity_episodes = capacity_transitions, capacity_episodes
        self.retention, self.max_age_updates = retention or FirstInFirstOut(), max_age_updates
        self.priority_exponent, self.frame_stack, self.gamma = priority_exponent, frame_stack, gamma
        self.episodes: list[Stored] = []  # oldest first
        self.pools: dict[str, Tensor] = {}
        self._free_rows = list(range(capacity_transitions - 1, -1, -1))
        self._free_frames = list(range(capacity_transitions + (frame_stack - 1) * capacity_episodes - 1, -1, -1))
        self._table: tuple[Tensor, Tensor] | None = None  # rows [M] and frames [M, stack] of all stored steps

    def add(self, episode: Episode, update: int = 0) -> bool:
        """Whether the episode entered M, after evicting whole episodes to make room.

        An episode longer than N_max keeps its last N_max steps. Under `ranked` an episode enters a full M only if it
        is at least as good as those that would have to leave.
        """
        length = min(len(episode), self.capacity_transitions)
        leaving = self._leaving_for(length, episode)
        if leaving is None:
            return False
        for stored in leaving:
            self._evict(stored)
        self._store(episode, length, update)
        return True

    def expire(self, update: int) -> int:
        """How many episodes left because they are older than `max_age_updates`."""
        if self.max_age_updates is None:
            return 0
        old = [stored for stored in self.episodes if update - stored.born > self.max_age_updates]
        for stored in old:
            self._evict(stored)
        return len(old)

    def sample(self, size: int, generator: torch.Generator) -> GoodRows:
        """`size` transitions with replacement: uniformly, or by priority where an exponent is set."""
        return self.at(*self.pick(size, generator))

    def pick(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Where `size` transitions lie, drawn as by `sample`: rows [B] of steps, and of their frames [B, stack]."""
        rows, frames = self._stored_steps()
        if self.priority_exponent > 0:
            picks = draw(self.pools["priorities"][rows].to(generator.device), size, generator)
        else:
            picks = torch.randint(len(rows), (size,), generator=generator, device=generator.device)
        picks = picks.to(rows.device)
        return rows[picks], frames[picks]

    def at(self, rows: Tensor, frames: Tensor) -> GoodRows:
        """The transitions whose steps lie at `rows` [B] and whose frames lie at `frames` [B, stack]."""
        obs = self.pools["frames"][frames]
        step = {name: pool[rows] for name, pool in self.pools.items() if name not in ("frames", "priorities")}
        return GoodRows(obs=obs if self.frame_stack > 1 else obs[:, 0], **step, rows=rows)

    def sample_episodes(self, min_rows: int, generator: torch.Generator) -> GoodRows:
        """Whole episodes drawn with replacement until at least `min_rows` transitions are together, in order."""
        rows: list[Tensor] = []
        frames: list[Tensor] = []
        while sum(map(len, rows)) < min_rows:
            pick = int(torch.randint(len(self.episodes), (1,), generator=generator, device=generator.device))
            rows.append(self.episodes[pick].rows)
            frames.append(self._stacked(self.episodes[pick].frames))
        return self.at(torch.cat(rows), torch.cat(frames))

    def passes(self, epochs: int, size: int, generator: torch.Generator) -> Iterator[GoodRows]:
        """Every stored transition once per epoch, in random minibatches of at most `size`."""
        rows, frames = self._stored_steps()
        for _ in range(epochs):
            order = torch.randperm(len(rows), generator=generator, device=generator.device).to(rows.device)
            for begin in range(0, len(rows), size):
                picks = order[begin : begin + size]
                yield self.at(rows[picks], frames[picks])

    def set_priorities(self, rows: Tensor, priorities: Tensor) -> None:
        """Remember how far the drawn steps' returns exceed their values, for prioritised sampling."""
        if self.priority_exponent > 0:
            # A network that has diverged gives no usable number; its loss says so, and drawing must not fail before.
            usable = priorities.detach().nan_to_num(0.0).clamp(1e-6, 1e12)
            self.pools["priorities"][rows] = usable**self.priority_exponent  # here, not for all of M at each draw

    @property
    def rows(self) -> Tensor:
        """Where the stored steps lie, episode by episode."""
        return self._stored_steps()[0]

    @property
    def num_transitions(self) -> int:
        """Transitions stored now."""
        return self.capacity_transitions - len(self._free_rows)

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        return sum(pool.nbytes for pool in self.pools.values())

    @property
    def mean_return(self) -> float:
        """Mean return of the stored episodes; nan while M is empty."""
        return sum(e.total_reward for e in self.episodes) / len(self.episodes) if self.episodes else float("nan")

    def state_dict(self) -> dict[str, Any]:
        """The stored episodes, exactly, without the empty rows."""
        none = torch.zeros(0, dtype=torch.int64)
        rows = torch.cat([stored.rows for stored in self.episodes]) if self.episodes else none
        frames = torch.cat([stored.frames for stored in self.episodes]) if self.episodes else none
        return {
            "episodes": [[e.total_reward, e.group, e.born, e.clipped, len(e.rows)] for e in self.episodes],
            "pools": {name: pool[frames if name == "frames" else rows] for name, pool in self.pools.items()},
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Take over the episodes of `state_dict`; raise before anything is changed if they do not fit."""
        self._require_room_for([length for *_, length in state["episodes"]], len(state["pools"].get("frames", ())))
        for stored in list(self.episodes):
            self._evict(stored)
        for name, pool in state["pools"].items():
            self._allocate(name, pool.to(device))
        row = frame = 0
        for total_reward, group, born, clipped, length in state["episodes"]:
            steps = {
                name: pool[row : row + length].to(device) for name, pool in state["pools"].items() if name != "frames"
            }
            num_frames = length + self.frame_stack - 1
            frames = state["pools"]["frames"][frame : frame + num_frames].to(device)
            self._place(Stored(total_reward, group, born, clipped, *self._take(length, frames.device)), steps, frames)
            row, frame = row + length, frame + num_frames

    def _require_room_for(self, lengths: list[int], num_frames: int) -> None:
        if sum(lengths) > self.capacity_transitions or len(lengths) > self.capacity_episodes:
            raise ConfigError(
                f"{sum(lengths):,} transitions of {len(lengths):,} episodes were stored, and there is room for "
                f"{self.capacity_transitions:,} of {self.capacity_episodes:,}: raise capacity_transitions or "
                "capacity_episodes"
            )
        if num_frames != sum(lengths) + (self.frame_stack - 1) * len(lengths):
            raise ConfigError(f"what was stored has another frame_stack than {self.frame_stack}")

    def _leaving_for(self, length: int, newcomer: Episode) -> list[Stored] | None:
        """The episodes that make room, or None if the newcomer ranks below one of them."""
        free, places = len(self._free_rows), self.capacity_episodes - len(self.episodes)
        order, leaving = self.retention.leaving(), list[Stored]()
        while free < length or places < 1:
            weakest = next(order)
            if not self.retention.yields(weakest, newcomer):
                return None
            leaving.append(weakest)
            free, places = free + len(weakest.rows), places + 1
        return leaving

    def _store(self, episode: Episode, length: int, update: int) -> None:
        returns = discounted_returns(episode.rewards, episode.dones.bool(), episode.bootstraps, self.gamma)
        if not returns.isfinite().all():
            raise NonFiniteLoss("a step of a good episode has a reward or a bootstrap that is nan or infinite")
        steps = {name: getattr(episode, name) for name in ("actions", "rewards", "logp", "dones", "bootstraps")}
        steps["returns"] = returns
        steps["priorities"] = torch.full_like(returns, self._largest_priority())
        clipped = episode.clipped or length < len(episode)
        place = self._take(length, episode.rewards.device)
        stored = Stored(episode.total_reward, episode.group, update, clipped, *place)
        frames = episode.frames[-(length + self.frame_stack - 1) :]
        self._place(stored, {name: column[-length:] for name, column in steps.items()}, frames)

    def _take(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Free rows for an episode's steps and frames."""
        num_frames = length + self.frame_stack - 1
        rows, self._free_rows[-length:] = self._free_rows[-length:], []
        frames, self._free_frames[-num_frames:] = self._free_frames[-num_frames:], []
        return torch.tensor(rows, device=device), torch.tensor(frames, device=device)

    def _place(self, stored: Stored, steps: dict[str, Tensor], frames: Tensor) -> None:
        for name, column in (*steps.items(), ("frames", frames)):
            self._allocate(name, column)
            self.pools[name][stored.frames if name == "frames" else stored.rows] = column
        self.episodes.append(stored)
        self.retention.add(stored)
        self._table = None

    def _allocate(self, name: str, like: Tensor) -> None:
        """The pool of this name, if it is not there yet, for rows like these."""
        if name not in self.pools:
            size = self.capacity_transitions
            size += (self.frame_stack - 1) * self.capacity_episodes if name == "frames" else 0
            self.pools[name] = like.new_zeros((size, *like.shape[1:]))

    def _evict(self, stored: Stored) -> None:
        self.episodes.remove(stored)
        self.retention.remove(stored)
        self.pools["priorities"][stored.rows] = 0.0  # a free row has none: see `_largest_priority`
        self._free_rows.extend(stored.rows.tolist())
        self._free_frames.extend(stored.frames.tolist())
        self._table = None

    def _stored_steps(self) -> tuple[Tensor, Tensor]:
        if self._table is None:
            rows = torch.cat([stored.rows for stored in self.episodes])
            if self.frame_stack == 1:
                frames = torch.cat([stored.frames for stored in self.episodes])[:, None]
            else:
                frames = torch.cat([self._stacked(stored.frames) for stored in self.episodes])
            self._table = rows, frames
        return self._table

    def _stacked(self, frames: Tensor) -> Tensor:
        return frames.unfold(0, self.frame_stack, 1)  # [L, stack]

    def _largest_priority(self) -> float:
        if self.priority_exponent == 0 or not self.episodes:
            return 1.0
        return float(self.pools["priorities"].max())


def draw(weights: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """`size` indices with replacement, each by its weight."""
    if not weights.is_cuda:
        return torch.multinomial(weights, size, replacement=True, generator=generator)
    # On a GPU `multinomial` sums all weights within one block; a scan and a search are many times faster.
    sums = weights.double().cumsum(0)
    points = torch.rand(size, dtype=torch.float64, device=weights.device, generator=generator) * sums[-1]
    return torch.searchsorted(sums, points, right=True).clamp_max(len(weights) - 1)
