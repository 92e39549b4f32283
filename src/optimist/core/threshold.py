"""Station 3. R_K, the window of recent returns, and τ, its percentile; one window for each group of episodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable


class ReturnWindow:
    """R_K. The returns of the K most recent episodes, and τ = percentile(R_K, P) of them (paper, eq. 2)."""

    def __init__(self, size: int, percentile: float, returns: Iterable[float] = ()) -> None:
        self.percentile = percentile
        self.returns: deque[float] = deque(returns, maxlen=size)
        self._sorted = sorted(self.returns)

    def add(self, total_reward: float) -> float:
        """τ after this return has entered the window.

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
        position = self.percentile * (len(self._sorted) - 1) / 100.0  # in this order a whole number comes out whole
        low = int(position)
        high = min(low + 1, len(self._sorted) - 1)
        return self._sorted[low] + (position - low) * (self._sorted[high] - self._sorted[low])


class Thresholds:
    """A `ReturnWindow` per group, made when a group is first seen; `shared` puts all episodes into one."""

    def __init__(self, size: int, percentile: float, *, shared: bool) -> None:
        self.size, self.percentile, self.shared = size, percentile, shared
        self.windows: dict[int, ReturnWindow] = {}

    def add(self, total_reward: float, group: int) -> float:
        """τ of the episode's group, this episode included."""
        return self.window(group).add(total_reward)

    def window(self, group: int) -> ReturnWindow:
        """The window that decides about episodes of this group."""
        key = 0 if self.shared else group
        if key not in self.windows:
            self.windows[key] = ReturnWindow(self.size, self.percentile)
        return self.windows[key]

    def state_dict(self) -> dict[str, list[float]]:
        """The returns of each window."""
        return {str(group): list(window.returns) for group, window in self.windows.items()}

    def load_state_dict(self, state: dict[str, list[float]]) -> None:
        """Take over the windows of `state_dict`."""
        self.windows = {int(g): ReturnWindow(self.size, self.percentile, returns) for g, returns in state.items()}
