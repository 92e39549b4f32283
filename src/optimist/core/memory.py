"""Station 3. M, the good-episode memory: whole episodes are admitted and evicted, transitions are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.core.advantages import discounted_returns
from optimist.core.episode import Episode
from optimist.core.eviction import EvictionPolicy, FirstInFirstOut, StoredEpisode
from optimist.errors import ConfigError, NonFiniteLoss

PRIORITY_EXPONENT = 0.6
"""Exponent of prioritised sampling (SIL's value)."""


@dataclass(frozen=True)
class GoodRows:
    """B transitions of M."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    rewards: Tensor  # [B]
    logp: Tensor  # [B] recorded at execution: log π_good under the reading `recorded`
    dones: Tensor  # [B]
    bootstraps: Tensor  # [B]
    returns: Tensor  # [B] discounted return that followed
    rows: Tensor  # [B] their indices in M

    def __len__(self) -> int:
        return len(self.rewards)


class GoodEpisodeMemory:
    """M. Up to N_max transitions of good episodes, in tensors on the learner's device, allocated once.

    Steps and frames are stored in two pools; an episode owns free rows of both, in any order, so eviction leaves no
    gaps and moves nothing. Image stacks are assembled when they are drawn.
    """

    def __init__(
        self,
        capacity_transitions: int,
        capacity_episodes: int,
        *,
        eviction: EvictionPolicy | None = None,
        prioritized: bool = False,
        frame_stack: int = 1,
        gamma: float = 0.99,
    ) -> None:
        self.capacity_transitions, self.capacity_episodes = capacity_transitions, capacity_episodes
        self.eviction = eviction or FirstInFirstOut()
        self.prioritized, self.frame_stack, self.gamma = prioritized, frame_stack, gamma
        self.episodes: list[StoredEpisode] = []  # oldest first
        self.pools: dict[str, Tensor] = {}
        self._free_rows = list(range(capacity_transitions - 1, -1, -1))
        self._free_frames = list(range(self._num_frames(capacity_transitions, capacity_episodes) - 1, -1, -1))
        self._table: tuple[Tensor, Tensor] | None = None  # rows [M] and frames [M, stack] of all stored steps

    def add(self, episode: Episode, update: int = 0) -> bool:
        """Store an episode, evicting whole episodes to make room; False if it ranks below those it would evict.

        An episode longer than N_max keeps its last N_max steps.
        """
        length = min(len(episode.rewards), self.capacity_transitions)
        if len(self._free_rows) < length or len(self.episodes) >= self.capacity_episodes:
            evicted = self._evictions_for(length, episode)
            if evicted is None:
                return False
            for stored in evicted:
                self._evict(stored)
        self._store(episode, length, update)
        return True

    def evict_older_than(self, update: int) -> None:
        """Evict the episodes that were admitted before an update."""
        for stored in [episode for episode in self.episodes if episode.admitted_at < update]:
            self._evict(stored)

    def sample(self, size: int, generator: torch.Generator) -> GoodRows:
        """Draw `size` transitions with replacement: uniformly, or by priority."""
        rows, frames = self._stored_steps()
        if self.prioritized:
            picks = draw(self.pools["priorities"][rows].to(generator.device), size, generator)
        else:
            picks = torch.randint(len(rows), (size,), generator=generator, device=generator.device)
        picks = picks.to(rows.device)
        return self.at(rows[picks], frames[picks])

    def at(self, rows: Tensor, frames: Tensor) -> GoodRows:
        """The transitions with these rows [B] of the step pool and these [B, stack] of the frame pool."""
        obs = self.pools["frames"][frames]
        step = {name: pool[rows] for name, pool in self.pools.items() if name not in ("frames", "priorities")}
        return GoodRows(obs=obs if self.frame_stack > 1 else obs[:, 0], **step, rows=rows)

    def sample_episodes(self, min_rows: int, generator: torch.Generator) -> GoodRows:
        """Draw whole episodes with replacement until they have at least `min_rows` transitions, in order."""
        rows: list[Tensor] = []
        frames: list[Tensor] = []
        while sum(map(len, rows)) < min_rows:
            pick = int(torch.randint(len(self.episodes), (1,), generator=generator, device=generator.device))
            rows.append(self.episodes[pick].rows)
            frames.append(self._stacked(self.episodes[pick].frames))
        return self.at(torch.cat(rows), torch.cat(frames))

    def passes(self, epochs: int, size: int, generator: torch.Generator) -> Iterator[GoodRows]:
        """Yield every stored transition once per epoch, in random minibatches of at most `size`."""
        rows, frames = self._stored_steps()
        for _ in range(epochs):
            order = torch.randperm(len(rows), generator=generator, device=generator.device).to(rows.device)
            for start in range(0, len(rows), size):
                picks = order[start : start + size]
                yield self.at(rows[picks], frames[picks])

    def set_priorities(self, rows: Tensor, advantages: Tensor) -> None:
        """Set the priority of drawn rows to (R − V)₊ to the power of the exponent."""
        if self.prioritized:
            # A diverged network gives nan; its loss reports that, and drawing must not fail first.
            usable = advantages.detach().nan_to_num(0.0).clamp(1e-6, 1e12)
            self.pools["priorities"][rows] = usable**PRIORITY_EXPONENT

    @property
    def rows(self) -> Tensor:
        """The rows of the step pool in use, episode by episode."""
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
        """The stored episodes, exactly, without the free rows."""
        none = torch.zeros(0, dtype=torch.int64)
        rows = torch.cat([stored.rows for stored in self.episodes]) if self.episodes else none
        frames = torch.cat([stored.frames for stored in self.episodes]) if self.episodes else none
        return {
            "episodes": [[e.total_reward, e.group, e.admitted_at, e.clipped, len(e.rows)] for e in self.episodes],
            "pools": {name: pool[frames if name == "frames" else rows] for name, pool in self.pools.items()},
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore `state_dict`; raise before anything is changed if it does not fit."""
        pools = {name: pool.to(device) for name, pool in state["pools"].items()}
        self._require_room_for([length for *_, length in state["episodes"]], len(pools.get("frames", ())))
        for stored in list(self.episodes):
            self._evict(stored)
        for name, pool in pools.items():
            self._allocate(name, pool)
        row = frame = 0
        for total_reward, group, admitted_at, clipped, length in state["episodes"]:
            num_frames = self._num_frames(length, 1)
            steps = {name: pool[row : row + length] for name, pool in pools.items() if name != "frames"}
            frames = pools["frames"][frame : frame + num_frames]
            own = self._take(length, frames.device)
            self._place(StoredEpisode(total_reward, group, admitted_at, clipped, *own), steps, frames)
            row, frame = row + length, frame + num_frames

    def _num_frames(self, transitions: int, episodes: int) -> int:
        """Frames of so many episodes: one a transition, and the older frames of each first observation."""
        return transitions + (self.frame_stack - 1) * episodes

    def _require_room_for(self, lengths: list[int], num_frames: int) -> None:
        if sum(lengths) > self.capacity_transitions or len(lengths) > self.capacity_episodes:
            raise ConfigError(
                f"the saved memory has {sum(lengths):,} transitions of {len(lengths):,} episodes, and there is room "
                f"for {self.capacity_transitions:,} of {self.capacity_episodes:,}; raise capacity_transitions or "
                "capacity_episodes"
            )
        if num_frames != self._num_frames(sum(lengths), len(lengths)):
            raise ConfigError(f"the saved memory has a frame_stack other than {self.frame_stack}; keep the one it has")

    def _evictions_for(self, length: int, candidate: Episode) -> list[StoredEpisode] | None:
        """The episodes to evict for `candidate`, or None if it ranks below one of them."""
        free, places = len(self._free_rows), self.capacity_episodes - len(self.episodes)
        order, evicted = self.eviction.candidates(), list[StoredEpisode]()
        while free < length or places < 1:
            weakest = next(order)
            if not self.eviction.may_evict(weakest, candidate):
                return None
            evicted.append(weakest)
            free, places = free + len(weakest.rows), places + 1
        return evicted

    def _store(self, episode: Episode, length: int, update: int) -> None:
        returns = discounted_returns(episode.rewards, episode.dones.bool(), episode.bootstraps, self.gamma)
        if not returns.isfinite().all():
            raise NonFiniteLoss("a step of a good episode has a reward or a bootstrap value that is nan or infinite")
        steps = {name: getattr(episode, name) for name in ("actions", "rewards", "logp", "dones", "bootstraps")}
        steps |= {"returns": returns, "priorities": torch.full_like(returns, self._largest_priority())}
        clipped = episode.clipped or length < len(episode.rewards)
        rows, frames = self._take(length, returns.device)
        stored = StoredEpisode(episode.total_reward, episode.group, update, clipped, rows, frames)
        columns = {name: column[-length:] for name, column in steps.items()}
        self._place(stored, columns, episode.frames[-len(frames) :])

    def _take(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Free rows for an episode's steps and frames."""
        num_frames = self._num_frames(length, 1)
        rows, self._free_rows[-length:] = self._free_rows[-length:], []
        frames, self._free_frames[-num_frames:] = self._free_frames[-num_frames:], []
        return torch.tensor(rows, device=device), torch.tensor(frames, device=device)

    def _place(self, stored: StoredEpisode, steps: dict[str, Tensor], frames: Tensor) -> None:
        for name, column in (*steps.items(), ("frames", frames)):
            self._allocate(name, column)
            self.pools[name][stored.frames if name == "frames" else stored.rows] = column
        self.episodes.append(stored)
        self.eviction.add(stored)
        self._table = None

    def _allocate(self, name: str, like: Tensor) -> None:
        """Create the pool of this name for rows like these, unless it exists."""
        if name not in self.pools:
            episodes = self.capacity_episodes if name == "frames" else 0
            size = self._num_frames(self.capacity_transitions, episodes)
            self.pools[name] = like.new_zeros((size, *like.shape[1:]))

    def _evict(self, stored: StoredEpisode) -> None:
        self.episodes.remove(stored)
        self.eviction.remove(stored)
        self.pools["priorities"][stored.rows] = 0.0  # so that `_largest_priority` skips free rows
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
        return float(self.pools["priorities"].max()) if self.prioritized and self.episodes else 1.0


def draw(weights: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Draw `size` indices with replacement, in proportion to `weights`."""
    if not weights.is_cuda:
        return torch.multinomial(weights, size, replacement=True, generator=generator)
    # On a GPU `multinomial` sums all weights within one block; a scan and a search are many times faster.
    sums = weights.double().cumsum(0)
    points = torch.rand(size, dtype=torch.float64, device=weights.device, generator=generator) * sums[-1]
    return torch.searchsorted(sums, points, right=True).clamp_max(len(weights) - 1)
