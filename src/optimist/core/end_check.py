"""EndCheck: a warning where a host seems to mark the ends of episodes at the wrong steps."""

from __future__ import annotations

import warnings
from collections import Counter

import torch
from torch import Tensor

from optimist.core.steps import Steps

ENOUGH = 16
"""Ends that must show where they are."""
AGREEMENT = 0.8
"""Share of them that must show the same shift."""
NUM_ROLLOUTS = 100
"""Rollouts after which the check stops."""
CLEAR_JUMP = 2.0
"""A jump shows an end where it is this many times larger than those of the steps around it."""
ONE_STEP_CHANCE = 1e-4
"""First episodes of one step are a sign where independent ends would give them with less than this probability."""
MAX_FEATURES, MAX_ROWS = 512, 256
"""Numbers of an observation, and rows of a rollout, that are compared."""
PLACES = ("early", "at the mark", "late")
"""Where an episode ends: a step before the mark, at it, or a step after it."""
MESSAGES = {
    "early": "ends of episodes look marked one step late; mark the last step of an episode, not the first of the next: "
    "Steps.from_cleanrl converts CleanRL's dones",
    "late": "the step after a marked end looks like a reset step (next-step autoreset); pass `valid`, false at these "
    "steps, as Steps.from_cleanrl does",
}


class EndCheck:
    """Looks at the first ends that a host marks, and warns once if they look shifted.

    A reset shows: the observation returns to the very first one, or jumps.
    """

    def __init__(self) -> None:
        self.places: Counter[str] = Counter()
        self.undecided = 0
        self.rollouts_left = NUM_ROLLOUTS
        self.first_obs: Tensor | None = None

    def look(self, steps: Steps, stacklevel: int = 3) -> None:
        """Look at the ends of a rollout, and warn if there is a verdict; `stacklevel` as of `warnings.warn`."""
        if self.rollouts_left == 0:
            return
        self.rollouts_left -= 1
        ends = (steps.dones if steps.episode_ends is None else steps.episode_ends).cpu()
        if self.first_obs is None:
            self.first_obs = _features(steps.obs[0, :1])
            if _starts_with_ends(ends):
                self.places["early"] = ENOUGH
        self._count(steps, ends, self.first_obs)
        if self.places.total() < ENOUGH:
            return
        self.rollouts_left = 0
        ((place, count),) = self.places.most_common(1)
        agreed = count >= AGREEMENT * self.places.total() and self.places.total() >= self.undecided
        if agreed and place in MESSAGES:
            warnings.warn(MESSAGES[place], stacklevel=stacklevel)

    def _count(self, steps: Steps, ends: Tensor, first_obs: Tensor) -> None:
        """Count where episodes end, of those marked with a step before and two steps after that are no ends."""
        marked = ends[1:-2] & ~ends[:-3] & ~ends[2:-1]
        if steps.valid is not None:
            valid = steps.valid.cpu()
            marked &= valid[:-3] & valid[1:-2] & valid[2:-1] & valid[3:]
        times, streams = (index[: 4 * ENOUGH].to(steps.obs.device) for index in marked.nonzero(as_tuple=True))
        if len(times) == 0:
            return
        rows = steps.obs.flatten(0, 1)
        spread = _features(rows[:: -(-len(rows) // MAX_ROWS)]).std(0)
        spread[spread == 0] = torch.inf
        around = torch.stack([_features(steps.obs[times + offset, streams]) for offset in range(4)])
        returned = around[1:].eq(first_obs).all(-1)  # [3, ends]
        jumps = ((around[1:] - around[:-1]) / spread).abs().mean(-1)
        largest = jumps.sort(0, descending=True)
        once, clear = returned.sum(0) == 1, largest.values[0] > CLEAR_JUMP * largest.values[1]
        places = torch.where(once, returned.int().argmax(0), largest.indices[0])
        self.places.update(PLACES[place] for place in places[once | clear].tolist())
        self.undecided += int((~(once | clear)).sum())


def _starts_with_ends(ends: Tensor) -> bool:
    """Whether first episodes all have one step and later ones more, as where episode starts are marked."""
    num_steps, num_envs = ends.shape
    if num_steps == 1 or not bool(ends[0].all()):
        return False
    share = max(float(ends[1:].double().mean()), 1 / ends[1:].numel())
    return bool(share**num_envs < ONE_STEP_CHANCE)


def _features(obs: Tensor) -> Tensor:
    """Observations as rows of at most `MAX_FEATURES` numbers, [B, F]."""
    rows = obs.detach().reshape(len(obs), -1)
    return rows[:, :: -(-rows.shape[1] // MAX_FEATURES)].double().cpu()
