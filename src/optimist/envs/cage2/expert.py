"""ExpertVectorEnv: the game as a strong defender wants to see it, with memory, useful actions, a mask and the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.cores import available_cores
from optimist.envs.cage2.env import CageVectorEnv, Outputs
from optimist.envs.cage2.expert_actions import NUM_EXPERT_ACTIONS
from optimist.envs.cage2.expert_features import NUM_ACTOR_BITS, NUM_EXPERT_BITS, NUM_FEATURES, NUM_TRUTH
from optimist.envs.cage2.expert_kernels import reset_expert_games, step_expert_games
from optimist.envs.cage2.expert_memory import EXPERT_MEMORY
from optimist.envs.cage2.state import check_arrays, from_arrays, to_arrays
from optimist.errors import ConfigError

__all__ = ["NUM_ACTOR_BITS", "NUM_FEATURES", "NUM_TRUTH", "ExpertVectorEnv", "score_weights"]

GAMES_PER_THREAD = 256
"""Each game takes longer than behind the other interfaces, so that fewer of them are worth a thread."""


class ExpertVectorEnv(CageVectorEnv):
    """N games behind the expert interface: 32 actions (`EXPERT_ACTION_NAMES`), and an observation of bits:

    1. `NUM_FEATURES` of memory, computed from the 52 bits, blue's actions and time alone;
    2. the mask, one bit an action; all ones with `mask=False`, and then every action is played as asked;
    3. `NUM_TRUTH` of the true state, for a critic (`NetworkConfig.privileged`).

    With `scored_at` a step's reward is weighted by the share of these horizons that it counts for, so that an episode's
    return is the mean of its returns at each of them; (30, 50, 100) is what the challenge scores.
    """

    metadata = CageVectorEnv.metadata | {"privileged": NUM_TRUTH}
    observation_width, num_actions = NUM_EXPERT_BITS, NUM_EXPERT_ACTIONS

    def __init__(
        self,
        num_envs: int = 1,
        *,
        mask: bool = True,
        scored_at: Sequence[int] | None = None,
        threads: int | None = None,
        **keywords: Any,
    ) -> None:
        """The keywords of `CageVectorEnv`."""
        if threads is None:
            threads = max(1, min(available_cores(), num_envs // GAMES_PER_THREAD))
        self.masked = mask
        self.weights = score_weights(scored_at)
        self.memories = np.zeros(num_envs, EXPERT_MEMORY)
        super().__init__(num_envs, threads=threads, **keywords)

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        own = {"masked": self.masked, "weights": self.weights.copy(), "memories": to_arrays(self.memories)}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict`."""
        if state["masked"] != self.masked:
            raise ConfigError(f"the saved games have mask={state['masked']}, this environment {self.masked}")
        if not np.array_equal(state.get("weights", self.weights), self.weights):
            raise ConfigError("the saved games are scored at other horizons (scored_at) than this environment")
        check_arrays(self.memories, state["memories"])
        super().load_state_dict(state)
        from_arrays(self.memories, state["memories"])

    def _begin(self, mask: NDArray[np.bool_], outputs: Outputs) -> None:
        reset_expert_games(self.games, self.memories, mask, self.masked, self.settings, outputs.observations)

    def _step_kernel(self, actions: NDArray[np.int64], outputs: Outputs) -> tuple[Any, ...]:
        return (
            step_expert_games,
            self.games,
            self.memories,
            actions,
            self.masked,
            self.weights,
            self.settings,
            outputs.observations,
            outputs.rewards,
            outputs.truncated,
            self._final,
        )


def score_weights(horizons: Sequence[int] | None) -> NDArray[np.float32]:
    """The weight of each step's reward, the last one for all later steps: the share of `horizons` above its index."""
    if horizons is None:
        return np.ones(1, np.float32)
    ends = np.asarray(horizons)
    if ends.ndim != 1 or not ends.size or ends.dtype.kind not in "iu" or ends.min() < 1:
        raise ConfigError(f"scored_at must be whole numbers of steps above 0, got {horizons!r}")
    weights: NDArray[np.float32] = (ends[None] > np.arange(ends.max() + 1)[:, None]).mean(1).astype(np.float32)
    return weights
