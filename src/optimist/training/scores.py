"""Scores of a run: the last 100 training returns, the best evaluation, and whether the goal was seen and kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from optimist.rollout.collector import EpisodeRecord

WINDOW = 100
"""Training episodes behind the statistic `last_100_return`."""
SOLVED_SHARE = 0.9
"""Share of the last 100 training episodes that must reach the goal for `solved`."""
METRICS = {
    "rollout/episodes": ("episodes", "training episodes finished so far"),
    "rollout/raw_return": ("reward", "mean raw return of the last 100 finished training episodes"),
    "rollout/length": ("steps", "mean length of the last 100 finished training episodes"),
    "rollout/goal_rate": ("share", "of the last 100 training episodes, those that reached the goal, if it has one"),
    "rollout/goal_seen": ("0 or 1", "whether any training episode has reached the goal so far"),
}
"""Metric → unit and meaning."""


class Scores:
    """Statistics of finished training episodes; independent of wall-clock time."""

    def __init__(self) -> None:
        self.episodes = 0
        self.last: deque[tuple[float, int, bool | None]] = deque(maxlen=WINDOW)  # raw return, length, goal
        self.first_goal_step: int | None = None
        self.best_evaluation: tuple[float, int] | None = None  # mean return, step

    def add(self, records: Iterable[EpisodeRecord]) -> None:
        """Add the episodes that have just finished."""
        for record in records:
            self.episodes += 1
            self.last.append((record.raw_return, record.length, record.goal))
            if record.goal and self.first_goal_step is None:
                self.first_goal_step = record.step

    def add_evaluation(self, mean_return: float, step: int) -> None:
        """Add an evaluation; among equal ones the first is the best."""
        if self.best_evaluation is None or mean_return > self.best_evaluation[0]:
            self.best_evaluation = mean_return, step

    def metrics(self) -> dict[str, float]:
        """Means over the last 100 training episodes, once one has finished."""
        metrics = {"rollout/episodes": float(self.episodes)}
        if self.last:
            returns, lengths, goals = zip(*self.last, strict=True)
            metrics |= {
                "rollout/raw_return": sum(returns) / len(returns),
                "rollout/length": sum(lengths) / len(lengths),
            }
            if goals[-1] is not None:
                metrics |= {
                    "rollout/goal_rate": sum(map(bool, goals)) / len(goals),
                    "rollout/goal_seen": float(self.first_goal_step is not None),
                }
        return metrics

    def summary(self) -> dict[str, Any]:
        """The statistic with its name; for tasks with a goal, whether it was seen and kept."""
        metrics = self.metrics()
        summary: dict[str, Any] = {
            "statistic": f"mean raw return of the last {WINDOW} training episodes (sampled actions)",
            "last_100_return": metrics.get("rollout/raw_return"),
            "episodes_in_statistic": len(self.last),
            "episodes": self.episodes,
        }
        if "rollout/goal_rate" in metrics:
            summary |= {
                "goal_seen": self.first_goal_step is not None,
                "first_goal_step": self.first_goal_step,
                "goal_rate": metrics["rollout/goal_rate"],
                "solved": len(self.last) == WINDOW and metrics["rollout/goal_rate"] >= SOLVED_SHARE,
            }
        if self.best_evaluation is not None:
            mean_return, step = self.best_evaluation
            summary["best_evaluation"] = {
                "statistic": "highest mean raw return of the evaluations during training; a maximum, biased upwards",
                "mean_return": mean_return,
                "step": step,
            }
        return summary

    def state_dict(self) -> dict[str, Any]:
        """The counts and the last episodes."""
        return {
            "episodes": self.episodes,
            "last": [list(e) for e in self.last],
            "first_goal_step": self.first_goal_step,
            "best_evaluation": self.best_evaluation and list(self.best_evaluation),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.episodes, self.first_goal_step = state["episodes"], state["first_goal_step"]
        self.last = deque((tuple(e) for e in state["last"]), maxlen=WINDOW)
        best = state.get("best_evaluation")
        self.best_evaluation = best and (best[0], best[1])
