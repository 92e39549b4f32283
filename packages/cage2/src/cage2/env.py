"""One game as a Gymnasium environment: CageEnv, CardiffEnv and ExpertEnv, without automatic reset."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from cage2.cardiff import CardiffVectorEnv
from cage2.errors import ConfigError
from cage2.expert.env import ExpertVectorEnv
from cage2.expert.features import NUM_TRUTH
from cage2.rules.state import check_horizon
from cage2.vector_env import NEVER, CageVectorEnv


class CageEnv(gymnasium.Env[NDArray[np.int8], np.int64]):
    """One game of CAGE Challenge 2: 52 observation bits, 145 actions, truncated at the horizon."""

    metadata = {"render_modes": ["human", "ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (as Gymnasium declares it)
    vector_class: ClassVar[type[CageVectorEnv]] = CageVectorEnv

    def __init__(self, *, horizon: int = 100, render_mode: str | None = None, **keywords: Any) -> None:
        """`keywords`: of the vector environment, without `num_envs`, `threads`, `copy` and `autoreset_mode`."""
        self.horizon = check_horizon(horizon)
        self.games = self.vector_class(
            1, horizon=NEVER, render_mode=render_mode, threads=1, autoreset_mode=AutoresetMode.SAME_STEP, **keywords
        )
        self.render_mode = self.games.render_mode
        self.observation_space = self.games.single_observation_space
        self.action_space = self.games.single_action_space
        self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], dict[str, Any]]:
        """Start a new episode; a seed fixes all that follows."""
        super().reset(seed=seed)
        observations, infos = self.games.reset(seed=seed)
        self.steps = 0
        return observations[0], _of_one(infos)

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        """Play one step; `truncated` is true from the horizon on."""
        observations, rewards, _, _, infos = self.games.step(np.array([action]))
        self.steps += 1
        return observations[0], float(rewards[0]), False, self.steps >= self.horizon, _of_one(infos)

    def describe(self, action: int) -> str:
        """An action in words, such as `Restore User3`."""
        return self.games.describe(action)

    def render(self) -> Any:
        """Print the game ("human"), or return it as text ("ansi") or a picture ("rgb_array")."""
        rendered = self.games.render()
        return rendered[0] if isinstance(rendered, tuple) else rendered

    def close(self) -> None:
        """Close the vector environment."""
        self.games.close()

    def state_dict(self) -> dict[str, Any]:
        """The state that `load_state_dict` restores exactly."""
        return {"steps": self.steps, "horizon": self.horizon, "games": self.games.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a `state_dict`."""
        if state.get("horizon", self.horizon) != self.horizon:
            raise ConfigError(f"saved game has horizon={state['horizon']}; this environment has horizon={self.horizon}")
        self.games.load_state_dict(state["games"])
        self.steps = int(state["steps"])


class CardiffEnv(CageEnv):
    """One game with the Cardiff interface: 62 inputs, 36 outputs."""

    vector_class = CardiffVectorEnv


class ExpertEnv(CageEnv):
    """One game with the expert interface: memory, mask and true state as bits, 32 actions."""

    metadata = CageEnv.metadata | {"privileged": NUM_TRUTH}
    vector_class = ExpertVectorEnv


def _of_one(infos: dict[str, Any]) -> dict[str, Any]:
    """Infos of the only game: arrays without their first axis."""
    single: dict[str, Any] = {}
    for key, value in infos.items():
        if not key.startswith("_"):
            single[key] = _of_one(value) if isinstance(value, dict) else value[0]
    return single
