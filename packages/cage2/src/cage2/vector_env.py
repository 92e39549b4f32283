"""CageVectorEnv: many games at once as a Gymnasium vector environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from cage2.cores import available_cores
from cage2.errors import ConfigError
from cage2.picture import draw_game
from cage2.render import render_game
from cage2.rules.compile import announce_compilation
from cage2.rules.dynamics import first_outside, reset_games, step_games
from cage2.rules.scenario import NUM_ACTIONS
from cage2.rules.state import (
    NUM_BITS,
    RANGES,
    VIEW,
    check_horizon,
    from_arrays,
    make_settings,
    new_games,
    to_arrays,
    true_state,
)
from cage2.words import describe_action

NEVER = 2**31 - 1
"""A horizon that no episode reaches."""
GAMES_PER_THREAD = 2048
"""For fewer games, another thread costs more time than it saves."""


class GameThreads:
    """Runs a kernel over ranges of games on several threads; results do not depend on their number."""

    def __init__(self, num_games: int, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, got {threads}")
        self.threads = threads or max(1, min(available_cores(), num_games // GAMES_PER_THREAD))
        bounds = [num_games * i // self.threads for i in range(self.threads + 1)]
        self.ranges = list(pairwise(bounds))
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}  # a copy starts its own threads

    def run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Return the sum of kernel(start, stop, *arguments) over all ranges."""
        first, *others = self.ranges
        if not others:
            return kernel(*first, *arguments)
        if self._pool is None or self._process != os.getpid():  # threads do not survive a fork
            self._pool = ThreadPoolExecutor(len(others), thread_name_prefix="cage2")
            self._process = os.getpid()
        futures = [self._pool.submit(kernel, *part, *arguments) for part in others]
        return kernel(*first, *arguments) + sum(future.result() for future in futures)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown(wait=False)
        self._pool = None


def _is_next_step(mode: AutoresetMode | str) -> bool:
    """Whether an ended game is reset in the next step; raises for a mode other than `SameStep` and `NextStep`."""
    known = {kind.value: kind for kind in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP)}
    chosen = known.get(mode.value if isinstance(mode, AutoresetMode) else mode)
    if chosen is None:
        raise ConfigError(f"autoreset_mode is {mode!r}; expected {' or '.join(known)}")
    return chosen is AutoresetMode.NEXT_STEP


Infos = dict[str, Any]


class Outputs(NamedTuple):
    """Arrays that a step writes."""

    observations: NDArray[np.int8]  # [N, bits]
    rewards: NDArray[np.float32]  # [N]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]


class CageVectorEnv(VectorEnv[NDArray[np.int8], NDArray[np.int64], NDArray[Any]]):
    """N games of CAGE Challenge 2, each with its own random state: 52 observation bits, 145 actions.

    An episode is truncated at the horizon, and its game is reset in the same step: the returned observation is of the
    new episode, and `infos["final_obs"]` has the last one of the old. `infos["red"]` is the attacker (index in `REDS`)
    for each returned observation, `infos["final_info"]["red"]` for each episode that ended. With `true_state`, the
    infos have the true state for each returned observation. With `autoreset_mode="NextStep"` the game is reset in the
    next step, which ignores its action, as Gymnasium's wrappers of observations need it; the episodes are the same.
    """

    metadata = {  # noqa: RUF012 (as Gymnasium declares it)
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["human", "ansi", "rgb_array"],
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
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        render_mode: str | None = None,
    ) -> None:
        """`true_state` adds the state that blue cannot see to the infos; `copy=False` reuses the output arrays."""
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, got {num_envs}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            gymnasium.logger.warn(
                f"no render_mode {render_mode!r}, so render() gives None; known: human, ansi, rgb_array"
            )
            render_mode = None
        self._next_step = _is_next_step(autoreset_mode)
        if self._next_step:
            self.metadata = {**self.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.horizon = check_horizon(horizon)
        # with NextStep the kernels play on, and `_step_or_reset` ends the episodes
        self.settings = make_settings(red, green, rules, table, NEVER if self._next_step else horizon, red_weights)
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
        self._all = np.ones(num_envs, np.bool_)
        self._all_read_only = self._all.copy()  # for infos
        self._all_read_only.flags.writeable = False
        self._red = self._attackers()
        self._started = False
        self._last_actions: NDArray[np.int64] | None = None

    @property
    def longest_episode(self) -> int:
        """Steps of an episode."""
        return int(self.settings.horizon)

    # -- Gymnasium interface

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], Infos]:
        """Start new episodes in all games, or those in `options["reset_mask"]`; a seed fixes all that follows."""
        mask = self._checked_mask((options or {}).get("reset_mask"))
        self._seed(seed, mask)
        outputs = self._outputs()
        with announce_compilation("the CAGE-2 rules"):
            self._reset_games(mask, outputs)
            if not self._started:
                self._compile_step(outputs)
        self._started = True
        self._red = self._attackers()
        return outputs.observations, self._infos()

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """Play one step of all games."""
        if not self._started:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        checked = self._checked_actions(actions)
        outputs = self._outputs()
        self._last_actions = checked
        if self._next_step:
            return self._step_or_reset(checked, outputs)
        ended = self._threads.run(*self._step_kernel(checked, outputs))
        if not ended:
            return *outputs, self._infos()
        final_info = {"red": self._red, "_red": outputs.truncated}
        self._red = self._attackers()
        infos = self._infos()
        infos["final_obs"] = self._final if self._reused else self._final.copy()
        infos["final_info"] = final_info
        infos["_final_obs"] = infos["_final_info"] = outputs.truncated
        return *outputs, infos

    def episode_starts(self) -> NDArray[np.int64]:
        """What restores games at step 0, [N, 3]: the two halves of the random state, and the attacker."""
        return np.column_stack([self.games["random"].view(np.int64), self.games["red"].astype(np.int64)])

    def restore_starts(self, starts: ArrayLike) -> NDArray[np.int8]:
        """Put all games at the starts that `episode_starts` gave; returns the observations."""
        rows = np.asarray(starts, np.int64).reshape(self.num_envs, 3)
        observations, _ = self.reset(seed=0)
        self.games["random"] = rows[:, :2].view(np.uint64)
        self.games["red"] = rows[:, 2]
        self._red = self._attackers()
        return observations

    def describe(self, action: int) -> str:
        """An action in words, such as `Restore User3`."""
        return describe_action(self._checked_action(action))

    def render(self) -> tuple[Any, ...] | None:
        """Print the first game ("human"), or return all games as text ("ansi") or pictures ("rgb_array")."""
        if self.render_mode == "ansi":
            return tuple(render_game(self.games, i) for i in range(self.num_envs))
        if self.render_mode == "rgb_array":
            return tuple(draw_game(self.games, i, self._last_words(i)) for i in range(self.num_envs))
        if self.render_mode == "human":
            print(render_game(self.games, 0))
        return None

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads."""
        self._threads.close()

    # -- saved state

    def state_dict(self) -> dict[str, Any]:
        """The settings and all fields of the games; `load_state_dict` continues exactly."""
        return {"settings": self._saved_settings(), "begun": self._started, "games": to_arrays(self.games)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict` of an environment with the same settings and number of games."""
        if dict(state["settings"]) != self._saved_settings():
            raise ConfigError(
                f"saved games have {dict(state['settings'])}; this environment has {self._saved_settings()}"
            )
        from_arrays(self.games, state["games"], RANGES)
        self._started = bool(state["begun"])
        self._red = self._attackers()

    # -- replaced by environments with another interface

    def _reset_games(self, mask: NDArray[np.bool_], outputs: Outputs) -> None:
        reset_games(self.games, mask, self.settings, outputs.observations.view(VIEW)[:, 0])

    def _step_kernel(self, actions: NDArray[np.int64], outputs: Outputs) -> tuple[Any, ...]:
        """The kernel of a step, and its arguments after start and stop."""
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
        infos: Infos = {"red": self._red, "_red": self._all_read_only}
        if self._with_true_state:
            infos["true_state"] = true_state(self.games)
        return infos

    # -- helpers

    def _step_or_reset(
        self, actions: NDArray[np.int64], outputs: Outputs
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """A step with `NextStep`: games whose episode has ended are reset instead of played."""
        ended = self.games["steps"] >= self.horizon
        before = self.games[ended]
        self._threads.run(*self._step_kernel(actions, outputs))
        if before.size:
            self.games[ended] = before  # with the random state of the episode's end, as in the other mode
            self._reset_games(ended, outputs)
            outputs.rewards[ended] = 0.0
            self._red = self._attackers()
        np.greater_equal(self.games["steps"], self.horizon, out=outputs.truncated)
        return *outputs, self._infos()

    def _saved_settings(self) -> dict[str, Any]:
        own = {"horizon": self.horizon, "autoreset_mode": AutoresetMode.NEXT_STEP.value} if self._next_step else {}
        return {**self.settings._asdict(), **own}

    def _checked_action(self, action: int) -> int:
        if isinstance(action, bool) or not isinstance(action, int | np.integer) or not 0 <= action < self.num_actions:
            raise ConfigError(f"action is {action!r}; expected a whole number from 0 to {self.num_actions - 1}")
        return int(action)

    def _last_words(self, index: int) -> str:
        """Blue's last action in a game, in words; nothing before its first step."""
        if self._last_actions is None or not self.games["steps"][index]:
            return ""
        return self.describe(self._last_actions[index])

    def _attackers(self) -> NDArray[np.int64]:
        """The attacker of each game; read-only, because infos share it until a game ends."""
        attackers: NDArray[np.int64] = self.games["red"].astype(np.int64)
        attackers.flags.writeable = False
        return attackers

    def _compile_step(self, outputs: Outputs) -> None:
        """Compile the kernels of a step by playing a step of no games."""
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
        array = np.asarray(actions)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise ConfigError(f"actions are {array.dtype} {list(array.shape)}; expected integers [{self.num_envs}]")
        checked = np.ascontiguousarray(array, np.int64)
        wrong = first_outside(checked, self.num_actions)
        if wrong >= 0:
            raise ConfigError(f"action {checked[wrong]} of game {wrong} is outside 0..{self.num_actions - 1}")
        return checked

    def _checked_mask(self, mask: Any) -> NDArray[np.bool_]:
        if mask is None:
            return self._all
        chosen: NDArray[np.bool_] = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (self.num_envs,):
            raise ConfigError(f"reset_mask is {chosen.dtype} {list(chosen.shape)}; expected bool [{self.num_envs}]")
        if not self._started and not chosen.all():
            raise ConfigError("reset_mask excludes games that were never reset; call reset() without it first")
        return chosen

    def _seed(self, seed: int | Sequence[int | None] | None, mask: NDArray[np.bool_]) -> None:
        """Seed the masked games, from one seed for all or one for each (None keeps a game's random state)."""
        if seed is None and self._started:
            return
        if seed is None or isinstance(seed, int | np.integer):
            fresh = np.random.SeedSequence(seed).generate_state(2 * self.num_envs, np.uint64)
            self.games["random"][mask] = fresh.reshape(-1, 2)[mask]
            return
        if len(seed) != self.num_envs:
            raise ConfigError(
                f"got {len(seed)} seeds for {self.num_envs} games; expected one number, or one for each game"
            )
        for i in np.flatnonzero(mask).tolist():
            if seed[i] is not None or not self._started:
                self.games["random"][i] = np.random.SeedSequence(seed[i]).generate_state(2, np.uint64)
