"""Station 3. What a host hands over (`Steps`), what M stores (`Episode`), and the way from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from optimist.core.shapes import require_same_shape
from optimist.errors import ConfigError, ShapeMismatch

COLUMNS = ("rewards", "logp", "dones", "raw_rewards", "episode_ends", "bootstraps", "valid", "groups")
"""Of `Steps`: one number a step."""
NEEDED = ("obs", "actions", "rewards", "logp", "dones")
"""Of `Steps`: what a host always hands over."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """T steps of N environments, as executed: what any host tells its anchor after a rollout.

    Two rewards, two ends: `raw_rewards` and `episode_ends` are the game's, `rewards` and `dones` the learner's
    (clipped, one life). An end is marked at the last step of its episode, not at the first of the next (where CleanRL
    has its `dones`). `bootstraps` is V of the state behind a time limit, 0 elsewhere. Ends may be numbers as well as
    booleans, and rewards whole numbers; they are turned into what the method reads.
    """

    obs: Tensor  # [T, N, ...]
    actions: Tensor  # [T, N, ...]
    rewards: Tensor  # [T, N]
    logp: Tensor  # [T, N] log π_old(a|s), recorded at execution
    dones: Tensor  # [T, N]
    raw_rewards: Tensor | None = None  # [T, N]; None: the same as `rewards`
    episode_ends: Tensor | None = None  # [T, N]; None: the same as `dones`
    bootstraps: Tensor | None = None  # [T, N]; None: no time limits
    valid: Tensor | None = None  # [T, N]; false on the dead step of a next-step autoreset; None: all valid
    groups: Tensor | None = None  # [T, N] opponent or level of the episode in play; None: one group
    progress: float = 0.0  # part of the run that is done, in [0, 1], for schedules

    def __post_init__(self) -> None:
        for name in ("obs", "actions", *COLUMNS):
            value = getattr(self, name)
            if not isinstance(value, Tensor) and (value is not None or name in NEEDED):
                raise ShapeMismatch(f"{name} is a {type(value).__name__}; expected a torch tensor [T, N, ...]")
        for name in ("dones", "episode_ends", "valid"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, getattr(self, name).bool())  # a number would be read as a position
        for name in ("rewards", "raw_rewards"):
            if getattr(self, name) is not None:
                value = getattr(self, name).detach()
                object.__setattr__(self, name, value if value.is_floating_point() else value.float())
        if not 0.0 <= self.progress <= 1.0:
            raise ConfigError(f"progress is the part of the run that is done, 0 to 1, got {self.progress}")
        given = {name: getattr(self, name) for name in COLUMNS if getattr(self, name) is not None}
        require_same_shape(**given)
        if self.obs.shape[:2] != self.rewards.shape or self.actions.shape[:2] != self.rewards.shape:
            raise ShapeMismatch(
                f"obs is {list(self.obs.shape)} and actions {list(self.actions.shape)} but rewards is "
                f"{list(self.rewards.shape)}; all are expected as [T, N, ...]"
            )
        if self.rewards.numel() == 0:
            raise ShapeMismatch(f"rewards is {list(self.rewards.shape)}; a rollout has at least one step")


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
    group: int = 0
    clipped: bool = False

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True)
class Finished:
    """A finished episode's return, length and group; `build()` copies its steps out (cheap to leave undone)."""

    total_reward: float
    length: int
    group: int
    build: Callable[[], Episode] = field(repr=False)


class EpisodeBuilder:
    """N streams of steps in, finished episodes out.

    All streams advance together, so their unfinished episodes live in one circular history [C, N, ...] that grows up
    to `max_steps` + T rows and no further: memory is bounded however long a game gets. Of stacked images only the
    newest frame of each step is kept.
    """

    def __init__(self, max_steps: int, *, frame_stack: int = 1, learner_episodes: bool = False) -> None:
        self.max_steps, self.frame_stack, self.learner_episodes = max_steps, frame_stack, learner_episodes
        self.time = 0  # of the next step to come
        self.starts: list[int] = []  # [N] time of the first step of the episode in play
        self.returns = torch.zeros(0, dtype=torch.float64)  # [N] its return so far
        self.history: dict[str, Tensor] = {}  # name → [C, N, ...]
        self.openings: Tensor | None = None  # [N, stack − 1, ...] older frames of each episode's first observation
        self.kinds: dict[str, str] = {}  # what an observation and an action are

    def add(self, steps: Steps) -> Iterator[Finished]:
        """The episodes that end within `steps`, in order of time; each can be built until the next is asked for."""
        num_steps, num_envs = steps.rewards.shape
        if num_envs != len(self.starts) and min(self.starts, default=self.time) >= self.time:  # nothing is in play
            self.starts, self.returns = [self.time] * num_envs, torch.zeros(num_envs, dtype=torch.float64)
            self.history, self.openings = {}, None
        self._require_same_kind(steps)
        self._remember(steps)
        raw = steps.rewards if self.learner_episodes or steps.raw_rewards is None else steps.raw_rewards
        ends = steps.dones.cpu() if steps.episode_ends is None else steps.episode_ends.cpu()
        if self.learner_episodes:
            ends = ends | steps.dones.cpu()  # lost lives; a time limit the learner ignores is an end all the same
        valid = torch.ones(ends.shape, dtype=torch.bool) if steps.valid is None else steps.valid.cpu()
        ends = ends & valid
        if self.frame_stack > 1:
            _require_one_stack(steps.obs, steps.dones[:-1].cpu() & ~ends[:-1] & valid[:-1] & valid[1:])
        totals = self._running_returns(torch.where(valid, raw.cpu().double(), 0.0), ends)
        groups = torch.zeros_like(ends) if steps.groups is None else steps.groups
        begin = self.time
        for n in (~valid[0]).nonzero().flatten().tolist():
            if self.starts[n] == begin:  # the dead step after an end belongs to no episode
                self.starts[n] += _dead_steps(valid[:, n])
        for t, n in ends.nonzero().tolist():
            yield self._finished(steps, n, begin + t, float(totals[t, n]), int(groups[t, n]))
            self.starts[n] = begin + t + 1 + _dead_steps(valid[t + 1 :, n])
        self._open(steps.obs)
        self.time += num_steps

    def forget_unfinished(self) -> None:
        """Drop the episodes in play: their environments have been restarted."""
        self.starts = [self.time] * len(self.starts)
        self.returns.zero_()

    @property
    def num_bytes(self) -> int:
        """Bytes held for unfinished episodes."""
        openings = [] if self.openings is None else [self.openings]
        return sum(tensor.nbytes for tensor in (*self.history.values(), *openings))

    def state_dict(self) -> dict[str, Any]:
        """The unfinished episodes, exactly."""
        times = self._times_in_use()
        return {
            "time": self.time,
            "starts": list(self.starts),
            "returns": self.returns.clone(),
            "times": times,
            "size": len(self.history["rewards"]) if self.history else 0,
            "history": {name: rows[times % len(rows)] for name, rows in self.history.items()},
            "openings": {} if self.openings is None else {"frames": self.openings},
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Take over the unfinished episodes of `state_dict`."""
        self.time, self.starts, self.returns = state["time"], list(state["starts"]), state["returns"].clone()
        self.history = {name: rows.to(device) for name, rows in state["history"].items()}
        if self.history:
            self._resize(state["size"], state["times"], lambda rows, _: rows)
        self.openings = state["openings"]["frames"].to(device) if state["openings"] else None
        stored = {"obs": self.history.get("frames"), "actions": self.history.get("actions")}
        self.kinds = {name: _kind_of(column) for name, column in stored.items() if column is not None}

    def _running_returns(self, rewards: Tensor, ends: Tensor) -> Tensor:
        """Return so far of the episode in play after each step, [T, N].

        Added up step by step: a sum that rounds then depends neither on what was played before the episode nor on
        where rollouts end, and equal episodes tie. On arrays, whose operations on a row cost less than a tensor's.
        """
        totals, running = rewards.clone(), self.returns.numpy()
        for so_far, ended in zip(totals.numpy(), ends.numpy(), strict=True):
            so_far += running
            running = so_far.copy()
            running[ended] = 0.0
        self.returns = torch.from_numpy(running)
        return totals

    def _require_same_kind(self, steps: Steps) -> None:
        """Raise unless the steps are like those before, and images stacked as was said."""
        if steps.rewards.shape[1] != len(self.starts):
            raise ShapeMismatch(f"steps of {steps.rewards.shape[1]} environments; there were {len(self.starts)} before")
        if self.frame_stack > 1 and steps.obs.shape[2:3] != (self.frame_stack,):
            raise ShapeMismatch(
                f"obs is {list(steps.obs.shape)}; of {self.frame_stack} stacked frames expected "
                f"[T, N, {self.frame_stack}, ...]"
            )
        newest = steps.obs[:, :, -1] if self.frame_stack > 1 else steps.obs
        kinds = {"obs": _kind_of(newest), "actions": _kind_of(steps.actions)}
        for name, before in self.kinds.items():
            if kinds[name] != before:
                raise ShapeMismatch(f"{name} is {kinds[name]} a step and was {before} before; both must match")
        self.kinds = kinds

    def _remember(self, steps: Steps) -> None:
        """Write the T rows into the history, growing it first if an episode in play would be overwritten."""
        num_steps = len(steps.rewards)
        bootstraps = torch.zeros_like(steps.rewards) if steps.bootstraps is None else steps.bootstraps
        rows = {
            "frames": steps.obs[:, :, -1] if self.frame_stack > 1 else steps.obs,
            "actions": steps.actions,
            "rewards": steps.rewards,
            "logp": steps.logp,
            "dones": steps.dones,
            "bootstraps": bootstraps,
        }
        if not self.history:
            self.history = {name: new.new_zeros((num_steps, *new.shape[1:])) for name, new in rows.items()}
        in_use = self._times_in_use()
        size = len(self.history["rewards"])
        if len(in_use) + num_steps > size:
            limit = self.max_steps + self.frame_stack - 1 + num_steps
            grown = max(len(in_use) + num_steps, min(2 * size, limit))
            self._resize(grown, in_use, lambda old, times: old[times % len(old)])
            size = grown
        positions = torch.arange(self.time, self.time + num_steps) % size
        for name, new in rows.items():
            self.history[name][positions] = new.detach().to(self.history[name].dtype)

    def _resize(self, size: int, times: Tensor, pick: Callable[[Tensor, Tensor], Tensor]) -> None:
        for name, old in self.history.items():
            grown = old.new_zeros((size, *old.shape[1:]))
            grown[times % size] = pick(old, times)
            self.history[name] = grown

    def _times_in_use(self) -> Tensor:
        """Times whose rows an episode in play may still need."""
        oldest = self.time - self.max_steps - self.frame_stack + 1
        begin = max(min(self.starts, default=self.time), oldest, 0)
        return torch.arange(min(begin, self.time), self.time)

    def _open(self, obs: Tensor) -> None:
        """Keep the older frames of the first observation of the episodes that are in play now."""
        if self.frame_stack == 1:
            return
        if self.openings is None:
            self.openings = torch.zeros_like(obs[0, :, :-1])
        for n, start in enumerate(self.starts):
            if self.time <= start < self.time + len(obs):
                self.openings[n] = obs[start - self.time, n, :-1]

    def _finished(self, steps: Steps, stream: int, end: int, total_reward: float, group: int) -> Finished:
        start = self.starts[stream]

        def build() -> Episode:
            kept = min(end + 1 - start, self.max_steps)
            before = min(end + 1 - start - kept, self.frame_stack - 1)  # older frames that lie in the history
            rows = torch.arange(end + 1 - kept - before, end + 1) % len(self.history["rewards"])
            columns = {name: history[rows, stream] for name, history in self.history.items()}
            frames = columns.pop("frames")
            if before < self.frame_stack - 1:
                frames = torch.cat([self._opening(steps, stream, start)[before:], frames])
            columns = {name: column[before:] for name, column in columns.items()}
            columns["dones"][-1] = True  # a game may end where the learner sees no end; its steps lead no further
            clipped = kept < end + 1 - start
            return Episode(frames=frames, **columns, total_reward=total_reward, group=group, clipped=clipped)

        return Finished(total_reward, end + 1 - start, group, build)

    def _opening(self, steps: Steps, stream: int, start: int) -> Tensor:
        """The older frames of an episode's first observation, [stack − 1, ...]."""
        if start >= self.time:
            return steps.obs[start - self.time, stream, :-1]
        assert self.openings is not None
        return self.openings[stream]


def _dead_steps(valid: Tensor) -> int:
    """Steps before the first valid one of a stream."""
    return int(valid.cummax(0).values.logical_not().sum())


def _kind_of(column: Tensor) -> str:
    """What one step of a column [T, N, ...] is."""
    return f"{list(column.shape[2:])} of {column.dtype}"


def _require_one_stack(obs: Tensor, lost: Tensor) -> None:
    """Raise if a life lost within an episode, at `lost` [T − 1, N], begins the stack of images anew.

    They are stored as single frames and stacked again across the loss, so what is drawn would not be what was seen.
    """
    times, streams = lost.nonzero(as_tuple=True)
    if not obs[times + 1, streams, :-1].equal(obs[times, streams, 1:]):
        raise ConfigError(
            "images are stacked anew where a life is lost within a game, which single frames cannot tell: set "
            "frame_stack = 1 (whole stacks are stored), or stack below what ends a life"
        )
