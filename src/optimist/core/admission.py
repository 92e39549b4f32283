"""Station 3. Which finished episodes are admitted to M: R_K, its percentile τ, and the two admission rules."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from typing import Literal


def is_admitted(total_reward: float, threshold: float, rule: Literal["paper", "gated"]) -> bool:
    """Whether an episode with this return is admitted, given τ = `threshold`.

    `paper`: R(E) > τ. Once more than 100 − P percent of the window tie at the best return nothing is admitted any more,
    and M goes stale. `gated`: R(E) ≥ τ, so that ties at a ceiling refresh M.
    """
    return total_reward > threshold if rule == "paper" else total_reward >= threshold


class ReturnWindow:
    """R_K. The returns of the K most recent episodes, and τ = percentile(R_K, P) of them (paper, eq. 2)."""

    def __init__(self, size: int, percentile: float, returns: Iterable[float] = ()) -> None:
        self.percentile = percentile
        self.returns: deque[float] = deque(returns, maxlen=size)
        self._sorted = sorted(self.returns)

    def add(self, total_reward: float) -> float:
        """Add a return and give τ.

        τ's window includes this episode, as in the paper: with K = 1 nothing is ever above it.
        """
        if len(self.returns) == self.returns.maxlen:
            del self._sorted[bisect_left(self._sorted, self.returns[0])]
        self.returns.append(total_reward)
        insort(self._sorted, total_reward)
        return self.threshold

    @property
    def threshold(self) -> float:
        """τ, interpolated linearly between neighbours; −inf while the window is empty."""
        if not self._sorted:
            return float("-inf")
        position = self.percentile * (len(self._sorted) - 1) / 100.0  # in this order a whole number stays whole
        low = int(position)
        high = min(low + 1, len(self._sorted) - 1)
        return self._sorted[low] + (position - low) * (self._sorted[high] - self._sorted[low])


class GroupWindows:
    """A `ReturnWindow` for each group of episodes (opponent, level), created when the group is first seen."""

    def __init__(self, size: int, percentile: float, rule: Literal["paper", "gated"] = "gated") -> None:
        self.size, self.percentile, self.rule = size, percentile, rule
        self.windows: dict[int, ReturnWindow] = {}

    def admits(self, total_reward: float, group: int) -> tuple[bool, float]:
        """Add a return to its group's window; whether its episode is admitted, and the group's τ."""
        if group not in self.windows:
            self.windows[group] = ReturnWindow(self.size, self.percentile)
        threshold = self.windows[group].add(total_reward)
        return is_admitted(total_reward, threshold, self.rule), threshold

    def state_dict(self) -> dict[str, list[float]]:
        """The returns of each window."""
        return {str(group): list(window.returns) for group, window in self.windows.items()}

    def load_state_dict(self, state: dict[str, list[float]]) -> None:
        """Restore `state_dict`."""
        self.windows = {int(g): ReturnWindow(self.size, self.percentile, returns) for g, returns in state.items()}
