"""Station 3. Episode, what M stores, and EpisodeBuilder, which cuts N streams of steps into episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from optimist.core.steps import Steps
from optimist.errors import ConfigError, ShapeMismatch

STEP_COLUMNS = ("actions", "rewards", "logp", "dones", "bootstraps")
"""What is stored of each step, next to its frame."""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """E. One finished episode, or the most recent part of one that is longer than the limit (`clipped`)."""

    frames: Tensor  # [L + stack − 1, ...]: the first observation's older frames, then each step's newest
    actions: Tensor  # [L, ...]
    rewards: Tensor  # [L]
    logp: Tensor  # [L]
    dones: Tensor  # [L]
    bootstraps: Tensor  # [L]
    total_reward: float
    forced: Tensor | None = None  # [L] actions that the policy did not choose; None: it chose all
    group: int = 0
    clipped: bool = False
    start_state: Tensor | None = None  # what restores its start, where the environment offers it

    @property
    def length(self) -> int:
        """Steps in it."""
        return self.rewards.shape[0]

    def __len__(self) -> int:
        return self.length


@dataclass(frozen=True)
class Episodes:
    """The steps of several episodes, one after the other."""

    frames: Tensor  # [ΣL + (stack − 1) n, ...]
    steps: dict[str, Tensor]  # name → [ΣL, ...]
    lengths: list[int]  # [n]
    clipped: list[bool]  # [n]

    @classmethod
    def of(cls, episode: Episode) -> Episodes:
        """One episode."""
        steps = {name: getattr(episode, name) for name in STEP_COLUMNS}
        if episode.forced is not None:
            steps["forced"] = episode.forced
        return cls(episode.frames, steps, [episode.length], [episode.clipped])


@dataclass(frozen=True, eq=False, slots=True)
class FinishedEpisode:
    """A finished episode's return and group, and where its builder has its steps until more are added."""

    total_reward: float
    group: int
    builder: EpisodeBuilder
    stream: int
    start: int  # time of the first step
    end: int  # time of the last step
    opening: Tensor | None  # [stack − 1, ...] the older frames of the first observation
    start_state: Tensor | None = None  # what restores its start, where the environment offers it

    @property
    def length(self) -> int:
        """Steps that can be copied."""
        return min(self.end + 1 - self.start, self.builder.max_steps)

    @property
    def skipped(self) -> int:
        """Steps before those."""
        return self.end + 1 - self.start - self.length

    def build(self) -> Episode:
        """Copy its steps, which costs memory traffic."""
        built = self.builder.build([self])
        columns: dict[str, Any] = {"frames": built.frames, **built.steps}
        about: dict[str, Any] = {"group": self.group, "clipped": built.clipped[0], "start_state": self.start_state}
        return Episode(**columns, total_reward=self.total_reward, **about)


class EpisodeBuilder:
    """Cuts N streams of steps into finished episodes.

    All streams advance together, so unfinished episodes share one circular history [C, N, ...] that grows up to
    `max_steps` + T rows: memory is bounded however long an episode gets. Of stacked images the newest frame of each
    step is kept.
    """

    def __init__(self, max_steps: int, *, frame_stack: int = 1) -> None:
        self.max_steps, self.frame_stack = max_steps, frame_stack
        self.time = 0  # of the next step
        self.starts: list[int] = []  # [N] time of the first step of the unfinished episode
        self.returns = torch.zeros(0, dtype=torch.float64)  # [N] its return so far
        self.history: dict[str, Tensor] = {}  # name → [C, N, ...]
        self.openings: Tensor | None = None  # [N, stack − 1, ...] older frames of each episode's first observation
        self.kind: tuple[Any, ...] = ()  # shape and dtype of an observation, and of an action

    def add(self, steps: Steps) -> list[FinishedEpisode]:
        """The episodes that end within `steps`, in order of time; build them before the next call."""
        num_steps, num_envs = steps.rewards.shape
        if num_envs != len(self.starts) and min(self.starts, default=self.time) >= self.time:  # none is unfinished
            self.starts, self.returns = [self.time] * num_envs, torch.zeros(num_envs, dtype=torch.float64)
            self.history, self.openings = {}, None
        kind = _kind_of(steps.obs), _kind_of(steps.actions)
        if kind != self.kind or num_envs != len(self.starts):
            self._require_same_kind(steps, kind)
        self._append(steps)
        rewards = steps.rewards if steps.raw_rewards is None else steps.raw_rewards
        ends = (steps.dones if steps.episode_ends is None else steps.episode_ends).cpu()
        valid = torch.ones_like(ends) if steps.valid is None else steps.valid.cpu()
        ends = ends & valid
        if self.frame_stack > 1:
            _require_one_stack(steps.obs, steps.dones[:-1].cpu() & ~ends[:-1] & valid[:-1] & valid[1:])
        totals = self._running_returns(torch.where(valid, rewards.cpu().double(), 0.0), ends)[ends].tolist()
        groups = [0] * len(totals) if steps.groups is None else steps.groups.cpu()[ends].long().tolist()
        all_valid = bool(valid.all())
        for n in (~valid[0]).nonzero().flatten().tolist():
            if self.starts[n] == self.time:  # the reset step after an end belongs to no episode
                self.starts[n] += _reset_steps(valid[:, n])
        states = [None] * len(totals) if steps.starts is None else list(steps.starts)
        finished = []
        for (t, n), total_reward, group, state in zip(ends.nonzero().tolist(), totals, groups, states, strict=True):
            opening = self._opening(steps, n, self.starts[n]) if self.frame_stack > 1 else None
            end = self.time + t
            finished.append(FinishedEpisode(total_reward, group, self, n, self.starts[n], end, opening, state))
            self.starts[n] = end + 1 + (0 if all_valid else _reset_steps(valid[t + 1 :, n]))
        if self.frame_stack > 1:
            self._keep_openings(steps.obs)
        self.time += num_steps
        return finished

    def build(self, finished: Sequence[FinishedEpisode]) -> Episodes:
        """The steps of these episodes, copied together; of one longer than the limit the most recent."""
        kept = [episode.length for episode in finished]
        before = [min(episode.skipped, self.frame_stack - 1) for episode in finished]
        sizes = [n + older for n, older in zip(kept, before, strict=True)]  # with older frames in the history
        spans = [range(episode.end + 1 - size, episode.end + 1) for episode, size in zip(finished, sizes, strict=True)]
        times = torch.tensor(list(chain.from_iterable(spans))) % len(self.history["rewards"])
        streams = torch.tensor([episode.stream for episode in finished]).repeat_interleave(torch.tensor(sizes))
        columns = {name: history[times, streams] for name, history in self.history.items()}
        frames = columns.pop("frames")
        if self.frame_stack > 1:
            parts = zip(finished, before, torch.split(frames, sizes), strict=True)
            frames = torch.cat([part for e, older, own in parts for part in (e.opening[older:], own)])  # type: ignore[index]
        if any(before):
            steps = torch.cat([torch.arange(size) >= older for size, older in zip(sizes, before, strict=True)])
            columns = {name: column[steps.to(column.device)] for name, column in columns.items()}
        columns["dones"][torch.tensor(kept).cumsum(0) - 1] = (
            True  # the learner may see no end where the episode has one
        )
        return Episodes(frames, columns, kept, [episode.skipped > 0 for episode in finished])

    def forget_unfinished(self) -> None:
        """Drop unfinished episodes: their environments have been reset."""
        self.starts = [self.time] * len(self.starts)
        self.returns.zero_()

    @property
    def num_bytes(self) -> int:
        """Bytes held for unfinished episodes."""
        openings = 0 if self.openings is None else self.openings.nbytes
        return openings + sum(tensor.nbytes for tensor in self.history.values())

    def state_dict(self) -> dict[str, Any]:
        """The unfinished episodes, exactly."""
        times = self._times_in_use()
        time, stream = self._cells_in_use(times)
        return {
            "time": self.time,
            "starts": list(self.starts),
            "returns": self.returns.clone(),
            "times": times,
            "size": len(self.history["rewards"]) if self.history else 0,
            "steps": {name: rows[times[time] % len(rows), stream] for name, rows in self.history.items()},
            "openings": {} if self.openings is None else {"frames": self.openings},
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore `state_dict`."""
        self.time, self.starts, self.returns = state["time"], list(state["starts"]), state["returns"].clone()
        time, stream = self._cells_in_use(times := state["times"])
        self.history = {}
        for name, saved in state["steps"].items():
            rows = saved.to(device).new_zeros((state["size"], len(self.starts), *saved.shape[1:]))
            rows[times[time] % state["size"], stream] = saved.to(device)
            self.history[name] = rows
        self.openings = state["openings"]["frames"].to(device) if state["openings"] else None
        if self.history:
            (shape, dtype), action = _kind_of(self.history["frames"]), _kind_of(self.history["actions"])
            self.kind = ((self.frame_stack, *shape) if self.frame_stack > 1 else shape, dtype), action

    def _running_returns(self, rewards: Tensor, ends: Tensor) -> Tensor:
        """Return so far of the unfinished episode after each step, [T, N].

        Summed step by step, so that rounding depends neither on earlier episodes nor on where rollouts end, and equal
        episodes tie. On arrays, whose operations on a row cost less than a tensor's.
        """
        totals, running = rewards.clone(), self.returns.numpy()
        for so_far, ended in zip(totals.numpy(), ends.numpy(), strict=True):
            so_far += running
            running = so_far.copy()
            running[ended] = 0.0
        self.returns = torch.from_numpy(running)
        return totals

    def _require_same_kind(self, steps: Steps, kind: tuple[Any, ...]) -> None:
        """Raise unless the steps have the shapes and dtypes of earlier ones, and images are stacked as configured."""
        if steps.rewards.shape[1] != len(self.starts):
            counts = f"{steps.rewards.shape[1]} environments but were of {len(self.starts)} before"
            raise ShapeMismatch(f"steps are of {counts}; both must match")
        if self.frame_stack > 1 and steps.obs.shape[2:3] != (self.frame_stack,):
            raise ShapeMismatch(
                f"obs is {list(steps.obs.shape)}; of {self.frame_stack} stacked frames expected "
                f"[T, N, {self.frame_stack}, ...]"
            )
        for name, now, before in zip(("obs", "actions"), kind, self.kind, strict=False):
            if now != before:
                raise ShapeMismatch(
                    f"{name} is {list(now[0])} of {now[1]} a step and was {list(before[0])} of {before[1]} before; "
                    "both must match"
                )
        self.kind = kind

    def _append(self, steps: Steps) -> None:
        """Write the T rows into the history; grow it first if an unfinished episode would be overwritten."""
        num_steps = len(steps.rewards)
        rows = {name: getattr(steps, name) for name in STEP_COLUMNS}
        rows["frames"] = steps.obs[:, :, -1] if self.frame_stack > 1 else steps.obs
        if steps.bootstraps is None:
            rows["bootstraps"] = torch.zeros_like(steps.rewards)
        if steps.forced is not None:
            rows["forced"] = steps.forced
        if not self.history:
            self.history = {name: new.new_zeros((num_steps, *new.shape[1:])) for name, new in rows.items()}
        in_use = self._times_in_use()
        size = len(self.history["rewards"])
        if len(in_use) + num_steps > size:
            limit = self.max_steps + self.frame_stack - 1 + num_steps
            grown = max(len(in_use) + num_steps, min(2 * size, limit))
            self._resize(grown, in_use)
            size = grown
        positions = torch.arange(self.time, self.time + num_steps) % size
        for name, new in rows.items():
            self.history[name][positions] = new.detach().to(self.history[name].dtype)

    def _resize(self, size: int, times: Tensor) -> None:
        for name, old in self.history.items():
            grown = old.new_zeros((size, *old.shape[1:]))
            grown[times % size] = old[times % len(old)]
            self.history[name] = grown

    def _times_in_use(self) -> Tensor:
        """Times whose rows an unfinished episode may still need."""
        oldest = self.time - self.max_steps - self.frame_stack + 1
        begin = max(min(self.starts, default=self.time), oldest, 0)
        return torch.arange(min(begin, self.time), self.time)

    def _cells_in_use(self, times: Tensor) -> tuple[Tensor, Tensor]:
        """Indices into `times`, and streams, of the rows that the unfinished episode of each stream may still need."""
        cells = (times[:, None] >= torch.tensor(self.starts)).nonzero()
        return cells[:, 0], cells[:, 1]

    def _keep_openings(self, obs: Tensor) -> None:
        """Keep the older frames of the first observation of each unfinished episode."""
        older = torch.zeros_like(obs[0, :, :-1]) if self.openings is None else self.openings
        self.openings = older.clone()  # finished episodes may still read the old ones
        for n, start in enumerate(self.starts):
            if self.time <= start < self.time + len(obs):
                self.openings[n] = obs[start - self.time, n, :-1]

    def _opening(self, steps: Steps, stream: int, start: int) -> Tensor:
        """The older frames of an episode's first observation, [stack − 1, ...]."""
        if start >= self.time:
            return steps.obs[start - self.time, stream, :-1]
        assert self.openings is not None
        return self.openings[stream]


def _reset_steps(valid: Tensor) -> int:
    """Number of steps before the first valid one of a stream."""
    return int(valid.cummax(0).values.logical_not().sum())


def _kind_of(column: Tensor) -> tuple[tuple[int, ...], torch.dtype]:
    """Shape and dtype of one step of a column [T, N, ...]."""
    return tuple(column.shape[2:]), column.dtype


def _require_one_stack(obs: Tensor, lost: Tensor) -> None:
    """Raise if a stack of images starts again after a life lost within an episode, at `lost` [T − 1, N].

    Frames are stored singly and stacked again across the lost life, so a drawn stack would not be the one observed.
    """
    times, streams = lost.nonzero(as_tuple=True)
    if not obs[times + 1, streams, :-1].equal(obs[times, streams, 1:]):
        raise ConfigError(
            "a stack of frames starts again where a life is lost within an episode; set frame_stack = 1 "
            "(whole stacks are stored), or stack frames inside the wrapper that ends a life"
        )
