"""Station 3. M, the good-episode memory: whole episodes are admitted and evicted, transitions are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from optimist.core.advantages import discounted_returns
from optimist.core.episode import Episode, Episodes, FinishedEpisode
from optimist.core.eviction import EvictionPolicy, FirstInFirstOut, StoredEpisode
from optimist.errors import ConfigError, NonFiniteLoss

PRIORITY_EXPONENT = 0.6
"""Exponent of prioritised sampling (SIL's value)."""
NOT_COUNTED = -(2**62)
"""Draws of a row in a checkpoint of an earlier version."""


@dataclass(frozen=True, kw_only=True)
class GoodRows:
    """B transitions of M, to clone."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    returns: Tensor  # [B] discounted return that followed
    rows: Tensor  # [B] their indices in M
    logp_start: Tensor | None = None  # [B] log π(a|s) at the start of the update; None: not requested
    forced: Tensor | None = None  # [B] actions that the policy did not choose, not cloned; None: it chose all

    def __len__(self) -> int:
        return self.returns.shape[0]


@dataclass(frozen=True, kw_only=True)
class GoodSteps(GoodRows):
    """Consecutive transitions of M, to learn from as from fresh steps."""

    rewards: Tensor  # [B]
    logp: Tensor  # [B] recorded at execution: log π_good under the reading `recorded`
    dones: Tensor  # [B]
    bootstraps: Tensor  # [B]


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
        self._free_frames = self._free_rows  # without stacks a step and its frame have the same row
        if frame_stack > 1:
            self._free_frames = list(range(self._num_frames(capacity_transitions, capacity_episodes) - 1, -1, -1))
        self._room = capacity_transitions
        self._table: tuple[Tensor, Tensor] | None = None  # rows [M] and frames [M, stack] of all stored steps
        self.draws: Tensor | None = None  # [N_max] times each row was drawn since its episode was admitted

    def add(self, episode: Episode, update: int = 0, *, threshold: float = math.nan, step: int = -1) -> bool:
        """Store an episode, evicting whole episodes to make room; False if it ranks below those it would evict.

        An episode longer than N_max keeps its last N_max steps. `threshold` and `step` (τ, and the steps of the run)
        are kept for those who look at M.
        """
        return self.add_all([episode], lambda _: Episodes.of(episode), update, [threshold], step) == 1

    def add_all(
        self,
        candidates: Sequence[Episode | FinishedEpisode],
        build: Callable[[Sequence[Any]], Episodes],
        update: int = 0,
        thresholds: Sequence[float] | None = None,
        step: int = -1,
    ) -> int:
        """Add episodes in turn and return how many were admitted; `build` copies those that stay, all at once.

        `thresholds`: τ of each candidate, `step`: steps of the run, both kept for those who look at M. New steps
        get the largest priority that was stored before this call.
        """
        priority = self._largest_priority()
        added: dict[StoredEpisode, Episode | FinishedEpisode] = {}
        evicted: list[StoredEpisode] = []
        admitted = 0
        for candidate, threshold in zip(candidates, thresholds or repeat(math.nan), strict=thresholds is not None):
            length = min(candidate.length, self.capacity_transitions)
            weakest = self._evictions_for(length, candidate)
            if weakest is None:
                continue
            for stored in weakest:
                self._forget(stored)
                if added.pop(stored, None) is None:
                    evicted.append(stored)
            stored = StoredEpisode(candidate.total_reward, candidate.group, update, False, length)
            stored.threshold, stored.step, stored.start_state = threshold, step, candidate.start_state
            self._remember(stored)
            added[stored] = candidate
            admitted += 1
        self._free(evicted)
        if added:
            try:
                self._store(list(added), build(list(added.values())), priority)
            except NonFiniteLoss:
                for stored in added:
                    self._forget(stored)
                raise
        return admitted

    def evict_older_than(self, update: int) -> None:
        """Evict the episodes that were admitted before an update."""
        self._evict([episode for episode in self.episodes if episode.admitted_at < update])

    def sample(self, size: int, generator: torch.Generator) -> GoodRows:
        """Draw `size` transitions with replacement: uniformly, or by priority."""
        (good,) = self.samples([size], generator)
        return good

    def samples(self, sizes: Sequence[int], generator: torch.Generator) -> Iterator[GoodRows]:
        """Yield as many transitions for each of several minibatches.

        Each minibatch is drawn when it is asked for, by the priorities of that moment: cloning a failure lowers its
        priority, so that a rare success has most of the later draws of an update.
        """
        rows, frames = self._stored_steps()
        for size in sizes:
            if self.prioritized:
                picks = draw(self.pools["priorities"][rows].to(generator.device), size, generator)
            else:
                picks = torch.randint(len(rows), (size,), generator=generator, device=generator.device)
            picks = picks.to(rows.device)
            self._count(rows[picks])
            yield self.at(rows[picks], frames[picks])

    def at(self, rows: Tensor, frames: Tensor) -> GoodRows:
        """The transitions with these rows [B] of the step pool and these [B, stack] of the frame pool."""
        return GoodRows(
            obs=self._observations(frames),
            actions=self.pools["actions"][rows],
            returns=self.pools["returns"][rows],
            rows=rows,
            forced=self.pools["forced"][rows] if "forced" in self.pools else None,
        )

    def sample_episodes(self, min_rows: int, generator: torch.Generator) -> GoodSteps:
        """Draw whole episodes with replacement until they have at least `min_rows` transitions, in order."""
        rows: list[Tensor] = []
        frames: list[Tensor] = []
        count = 0
        while count < min_rows:
            pick = int(torch.randint(len(self.episodes), (1,), generator=generator, device=generator.device))
            rows.append(self.episodes[pick].rows)
            frames.append(self._stacked(self.episodes[pick].frames))
            count += self.episodes[pick].length
        where = torch.cat(rows)
        columns = ("actions", "returns", "rewards", "logp", "dones", "bootstraps", "forced")
        steps = {name: self.pools[name][where] for name in columns if name in self.pools}
        self._count(where)
        return GoodSteps(obs=self._observations(torch.cat(frames)), rows=where, **steps)

    def all_of(self, episodes: Sequence[StoredEpisode], size: int) -> Iterator[GoodRows]:
        """Yield every transition of these stored episodes, in order, at most `size` at a time."""
        rows = torch.cat([stored.rows for stored in episodes])
        frames = torch.cat([self._stacked(stored.frames) for stored in episodes])
        for own, own_frames in zip(torch.split(rows, size), torch.split(frames, size), strict=True):
            yield self.at(own, own_frames)

    def passes(self, epochs: int, size: int, generator: torch.Generator) -> Iterator[GoodRows]:
        """Yield every stored transition once per epoch, in random minibatches of at most `size`."""
        rows, frames = self._stored_steps()
        for _ in range(epochs):
            self._count(rows)
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

    def times_drawn(self, stored: StoredEpisode) -> int | None:
        """Transitions of an episode drawn since its admission; None if an earlier version did not count them."""
        if self.draws is None:
            return None
        drawn = self.draws[stored.rows]
        return None if bool((drawn < 0).any()) else int(drawn.sum())

    @property
    def rows(self) -> Tensor:
        """The rows of the step pool in use, episode by episode."""
        return self._stored_steps()[0]

    @property
    def num_transitions(self) -> int:
        """Transitions stored now."""
        return self.capacity_transitions - self._room

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        return sum(pool.nbytes for pool in self.pools.values())

    @property
    def mean_return(self) -> float:
        """Mean return of the stored episodes; nan while M is empty."""
        count = len(self.episodes)
        return sum(map(attrgetter("total_reward"), self.episodes)) / count if count else float("nan")

    def state_dict(self) -> dict[str, Any]:
        """The stored episodes, exactly, without the free rows."""
        none = torch.zeros(0, dtype=torch.int64)
        rows = torch.cat([stored.rows for stored in self.episodes]) if self.episodes else none
        frames = torch.cat([stored.frames for stored in self.episodes]) if self.episodes else none
        return {
            "episodes": [[e.total_reward, e.group, e.admitted_at, e.clipped, e.length] for e in self.episodes],
            "pools": {name: pool[frames if name == "frames" else rows] for name, pool in self.pools.items()},
            "admissions": [[e.step, e.threshold, _plain(e.start_state)] for e in self.episodes],
            "draws": none if self.draws is None else self.draws[rows],
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore `state_dict`; raise before anything is changed if it does not fit."""
        pools = {name: pool.to(device) for name, pool in state["pools"].items()}
        self._require_room_for([length for *_, length in state["episodes"]], len(pools.get("frames", ())))
        self._evict(list(self.episodes))
        for name, pool in pools.items():
            self._allocate(name, pool)
        episodes = [StoredEpisode(*values) for values in state["episodes"]]
        admissions = state.get("admissions") or [(-1, math.nan, None)] * len(episodes)
        for stored, (step, threshold, start_state) in zip(episodes, admissions, strict=True):
            stored.step, stored.threshold = step, threshold
            stored.start_state = None if start_state is None else torch.tensor(start_state)
            self._remember(stored)
        if episodes:
            frames = pools.pop("frames")
            self._place(episodes, pools, frames)
            assert self.draws is not None
            self.draws[self.rows] = state["draws"].to(device) if "draws" in state else NOT_COUNTED

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

    def _evictions_for(self, length: int, candidate: Episode | FinishedEpisode) -> list[StoredEpisode] | None:
        """The episodes to evict for `candidate`, or None if it ranks below one of them."""
        free, places = self._room, self.capacity_episodes - len(self.episodes)
        evicted: list[StoredEpisode] = []
        if free >= length and places >= 1:
            return evicted
        order = self.eviction.candidates()
        while free < length or places < 1:
            weakest = next(order)
            if not self.eviction.may_evict(weakest, candidate):
                return None
            evicted.append(weakest)
            free, places = free + weakest.length, places + 1
        return evicted

    def _store(self, stored: list[StoredEpisode], episodes: Episodes, priority: float) -> None:
        """Write the steps of episodes that were admitted; of each the last `length` ones."""
        steps, lengths = dict(episodes.steps), episodes.lengths
        dones = steps["dones"].bool().clone()
        dones[torch.tensor(lengths).cumsum(0) - 1] = True
        returns = discounted_returns(steps["rewards"], dones, steps["bootstraps"], self.gamma)
        if not returns.isfinite().all():
            raise NonFiniteLoss("a step of a good episode has a reward or a bootstrap value that is nan or infinite")
        steps |= {"returns": returns, "priorities": torch.full_like(returns, priority)}
        frames, skipped = episodes.frames, [length - own.length for own, length in zip(stored, lengths, strict=True)]
        for own, clipped, older in zip(stored, episodes.clipped, skipped, strict=True):
            own.clipped = clipped or older > 0
        if any(skipped):
            frames = frames[_last_ones([self._num_frames(length, 1) for length in lengths], skipped, frames.device)]
            kept = _last_ones(lengths, skipped, returns.device)
            steps = {name: column[kept] for name, column in steps.items()}
        self._place(stored, steps, frames)

    def _take(self, free: list[int], count: int, device: torch.device) -> Tensor:
        taken, free[-count:] = free[-count:], []
        return torch.tensor(taken, device=device)

    def _place(self, episodes: list[StoredEpisode], steps: dict[str, Tensor], frames: Tensor) -> None:
        """Write rows of these episodes, one after the other, to free rows of the pools."""
        lengths = [stored.length for stored in episodes]
        rows = taken = self._take(self._free_rows, sum(lengths), frames.device)
        if self.frame_stack > 1:
            taken = self._take(self._free_frames, len(frames), frames.device)
        for name, column in steps.items():
            self._allocate(name, column)
            self.pools[name][rows] = column
        self._allocate("frames", frames)
        self.pools["frames"][taken] = frames
        parts = torch.split(taken, [self._num_frames(length, 1) for length in lengths])
        if self.draws is None:
            self.draws = torch.zeros(self.capacity_transitions, dtype=torch.int64, device=rows.device)
        self.draws[rows] = 0
        for stored, own_rows, own_frames in zip(episodes, torch.split(rows, lengths), parts, strict=True):
            stored.rows, stored.frames = own_rows, own_frames

    def _remember(self, stored: StoredEpisode) -> None:
        """Count an episode as stored; its rows are written later."""
        self.episodes.append(stored)
        self.eviction.add(stored)
        self._room -= stored.length
        self._table = None

    def _forget(self, stored: StoredEpisode) -> None:
        self.episodes.remove(stored)
        self.eviction.remove(stored)
        self._room += stored.length
        self._table = None

    def _evict(self, episodes: Sequence[StoredEpisode]) -> None:
        for stored in episodes:
            self._forget(stored)
        self._free(episodes)

    def _free(self, episodes: Sequence[StoredEpisode]) -> None:
        """Return the rows of evicted episodes."""
        if episodes:
            self._free_rows.extend(torch.cat([stored.rows for stored in episodes]).tolist())
            if self.frame_stack > 1:
                self._free_frames.extend(torch.cat([stored.frames for stored in episodes]).tolist())

    def _allocate(self, name: str, like: Tensor) -> None:
        """Create the pool of this name for rows like these, unless it exists."""
        if name not in self.pools:
            episodes = self.capacity_episodes if name == "frames" else 0
            size = self._num_frames(self.capacity_transitions, episodes)
            self.pools[name] = like.new_zeros((size, *like.shape[1:]))

    def _count(self, rows: Tensor) -> None:
        """Count rows [B] that are drawn."""
        if self.draws is not None:
            self.draws.index_add_(0, rows, torch.ones_like(rows))

    def _stored_steps(self) -> tuple[Tensor, Tensor]:
        if self._table is None:
            rows = torch.cat([stored.rows for stored in self.episodes])
            frames = rows[:, None]
            if self.frame_stack > 1:
                frames = torch.cat([self._stacked(stored.frames) for stored in self.episodes])
            self._table = rows, frames
        return self._table

    def _observations(self, frames: Tensor) -> Tensor:
        """The observations of these frames [B, stack]."""
        return self.pools["frames"][frames if self.frame_stack > 1 else frames[:, 0]]

    def _stacked(self, frames: Tensor) -> Tensor:
        return frames.unfold(0, self.frame_stack, 1)  # [L, stack]

    def _largest_priority(self) -> float:
        return float(self.pools["priorities"][self.rows].max()) if self.prioritized and self.episodes else 1.0


def _plain(state: Tensor | None) -> list[int] | None:
    return None if state is None else state.tolist()


def _last_ones(lengths: Sequence[int], skipped: Sequence[int], device: torch.device) -> Tensor:
    """Of parts of these lengths, one after the other, which rows are not among the first `skipped` of their part."""
    parts = [torch.arange(length) >= first for length, first in zip(lengths, skipped, strict=True)]
    return torch.cat(parts).to(device)


def draw(weights: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Draw `size` indices with replacement, in proportion to `weights`."""
    if not weights.is_cuda:
        return torch.multinomial(weights, size, replacement=True, generator=generator)
    # On a GPU `multinomial` sums all weights within one block; a scan and a search are many times faster.
    sums = weights.double().cumsum(0)
    points = torch.rand(size, dtype=torch.float64, device=weights.device, generator=generator) * sums[-1]
    return torch.searchsorted(sums, points, right=True).clamp_max(len(weights) - 1)
