"""The Gymnasium face of many games at once: CageVectorEnv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from optimist.envs.cage2.actions import NUM_ACTIONS
from optimist.envs.cage2.compiled import announce_compilation
from optimist.envs.cage2.kernels import first_outside, reset_games, step_games
from optimist.envs.cage2.render import render_game
from optimist.envs.cage2.settings import make_settings
from optimist.envs.cage2.state import NUM_BITS, VIEW, from_arrays, new_games, to_arrays, true_state
from optimist.envs.cage2.threads import GameThreads
from optimist.errors import ConfigError

Infos = dict[str, Any]


class Outputs(NamedTuple):
    """The arrays that one step writes."""

    observations: NDArray[np.int8]  # [N, bits]
    rewards: NDArray[np.float32]  # [N]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]


class CageVectorEnv(VectorEnv[NDArray[np.int8], NDArray[np.int64], NDArray[Any]]):
    """N games of CAGE Challenge 2 at once, each with its own dice: 52 observation bits, 145 actions.

    A game ends by its horizon (`truncated`) and begins anew in the same step: the observation returned is the new
    game's, the last one of the old game is in `infos["final_obs"]`. `infos["red"]` names the attacker of each
    returned observation by its index in `REDS`; `infos["final_info"]["red"]` that of the games that ended. With
    `true_state` the infos hold the truth behind each returned observation, so never that of a game's last one.
    """

    metadata = {  # noqa: RUF012 (as Gymnasium declares it)
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["human", "ansi"],
        "render_fps": 4,
    }
    num_actions = NUM_ACTIONS
    observation_low, observation_high, observation_width = 0, 1, NUM_BITS

    def __init__(
        self,
        num_envs: int = 1,
        *,
        red: str = "B_line",
        green: str = "Sleep",
        rules: str = "final",
        table: str = "official",
        horizon: int = 100,
        red_weights: Mapping[str, float] | Sequence[float] | None = None,
        true_state: bool = False,
        threads: int | None = None,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """So many games; `true_state` adds what blue cannot see to the infos, `copy=False` reuses the output arrays."""
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, got {num_envs}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"render_mode must be 'human', 'ansi' or None, got {render_mode!r}")
        self.settings = make_settings(red, green, rules, table, horizon, red_weights)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = spaces.Box(
            self.observation_low, self.observation_high, (self.observation_width,), np.int8
        )
        self.single_action_space = spaces.Discrete(self.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.games = new_games(num_envs)
        self._threads = GameThreads(num_envs, threads)
        self._with_true_state = true_state
        self._reused = None if copy else self._new_outputs()
        self._final = np.zeros((num_envs, self.observation_width), np.int8)
        self._everyone = np.ones(num_envs, np.bool_)
        self._shown = self._everyone.copy()  # as infos have it, for reading
        self._shown.flags.writeable = False
        self._red = self._attackers()
        self._begun = False

    # -- the interface of a vector environment

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], Infos]:
        """New episodes, everywhere or where `options["reset_mask"]` says so; a seed fixes all that follows."""
        mask = self._checked_mask((options or {}).get("reset_mask"))
        self._seed(seed, mask)
        outputs = self._outputs()
        with announce_compilation("the CAGE-2 rules"):
            self._begin(mask, outputs)
            if not self._begun:
                self._compile_step(outputs)
        self._begun = True
        self._red = self._attackers()
        return outputs.observations, self._infos()

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """One step of every game."""
        if not self._begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        checked = self._checked_actions(actions)
        outputs = self._outputs()
        ended = self._threads.run(*self._step_kernel(checked, outputs))
        if not ended:
            return *outputs, self._infos()
        finished = {"red": self._red, "_red": outputs.truncated}
        self._red = self._attackers()
        infos = self._infos()
        infos["final_obs"] = self._final if self._reused else self._final.copy()
        infos["final_info"] = finished
        infos["_final_obs"] = infos["_final_info"] = outputs.truncated
        return *outputs, infos

    def render(self) -> tuple[Any, ...] | None:
        """The first game as a table of hosts: printed ("human"), or every game's as text ("ansi")."""
        if self.render_mode == "ansi":
            return tuple(render_game(self.games, i) for i in range(self.num_envs))
        if self.render_mode == "human":
            render_game(self.games, 0, show=True)
        return None

    def close_extras(self, **kwargs: Any) -> None:
        """Lets the worker threads go."""
        self._threads.close()

    # -- saving and restoring

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on exactly: the settings they were played with, and each field of the games."""
        return {"settings": self.settings._asdict(), "begun": self._begun, "games": to_arrays(self.games)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict` of an environment with the same settings and number of games."""
        if dict(state["settings"]) != self.settings._asdict():
            raise ConfigError(
                f"the saved games have {dict(state['settings'])}, this environment {self.settings._asdict()}"
            )
        from_arrays(self.games, state["games"])
        self._begun = bool(state["begun"])
        self._red = self._attackers()

    # -- what an environment with another interface replaces

    def _begin(self, mask: NDArray[np.bool_], outputs: Outputs) -> None:
        reset_games(self.games, mask, self.settings, outputs.observations.view(VIEW)[:, 0])

    def _step_kernel(self, actions: NDArray[np.int64], outputs: Outputs) -> tuple[Any, ...]:
        """The kernel that plays a step, and its arguments after start and stop."""
        return (
            step_games,
            self.games,
            actions,
            self.settings,
            outputs.observations.view(VIEW)[:, 0],
            outputs.rewards,
            outputs.truncated,
            self._final.view(VIEW)[:, 0],
        )

    def _infos(self) -> Infos:
        infos: Infos = {"red": self._red, "_red": self._shown}
        if self._with_true_state:
            infos["true_state"] = true_state(self.games)
        return infos

    # -- helpers

    def _attackers(self) -> NDArray[np.int64]:
        """The attacker of each game; infos share it until a game ends, so nobody may write to it."""
        attackers: NDArray[np.int64] = self.games["red"].astype(np.int64)
        attackers.flags.writeable = False
        return attackers

    def _compile_step(self, outputs: Outputs) -> None:
        """Compiles what the first step will need by playing a step of no games."""
        actions = np.zeros(self.num_envs, np.int64)
        first_outside(actions, self.num_actions)
        step, *arguments = self._step_kernel(actions, outputs)
        step(0, 0, *arguments)

    def _outputs(self) -> Outputs:
        return self._reused or self._new_outputs()

    def _new_outputs(self) -> Outputs:
        number = self.num_envs
        return Outputs(
            np.empty((number, self.observation_width), np.int8),
            np.empty(number, np.float32),
            np.zeros(number, np.bool_),
            np.empty(number, np.bool_),
        )

    def _checked_actions(self, actions: ArrayLike) -> NDArray[np.int64]:
        given = np.asarray(actions)
        if given.shape != (self.num_envs,) or given.dtype.kind not in "iu":
            raise ConfigError(f"actions are {given.dtype} {list(given.shape)}, expected integers [{self.num_envs}]")
        checked = np.ascontiguousarray(given, np.int64)
        wrong = first_outside(checked, self.num_actions)
        if wrong >= 0:
            raise ConfigError(f"action {checked[wrong]} of game {wrong} is outside 0..{self.num_actions - 1}")
        return checked

    def _checked_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return self._everyone
        chosen: NDArray[np.bool_] = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (self.num_envs,):
            raise ConfigError(f"reset_mask is {chosen.dtype} {list(chosen.shape)}, expected bool [{self.num_envs}]")
        if not self._begun and not chosen.all():
            raise ConfigError("reset_mask leaves games out, but none has begun yet: call reset() without it first")
        return chosen

    def _seed(self, seed: int | Sequence[int | None] | None, mask: NDArray[np.bool_]) -> None:
        """Gives dice to the masked games: from one seed for all, or from a seed for each (None rolls on)."""
        if seed is None and self._begun:
            return
        if seed is None or isinstance(seed, int | np.integer):
            fresh = np.random.SeedSequence(seed).generate_state(2 * self.num_envs, np.uint64)
            self.games["random"][mask] = fresh.reshape(-1, 2)[mask]
            return
        if len(seed) != self.num_envs:
            raise ConfigError(f"{len(seed)} seeds for {self.num_envs} games; give one number, or one for each game")
        for i in np.flatnonzero(mask).tolist():
            if seed[i] is not None or not self._begun:
                self.games["random"][i] = np.random.SeedSequence(seed[i]).generate_state(2, np.uint64)
