"""The expert interface: ExpertVectorEnv for training, and ExpertDefender, its policy as a defender of the game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cage2.agents.defender import Logits, choose_action
from cage2.cores import available_cores
from cage2.errors import ConfigError, ShapeMismatch
from cage2.expert.actions import EXPERT_ACTION_NAMES, NUM_EXPERT_ACTIONS
from cage2.expert.features import (
    NUM_ACTOR_BITS,
    NUM_EXPERT_BITS,
    NUM_FEATURES,
    NUM_TRUTH,
    write_actor_bits,
    write_row,
)
from cage2.expert.memory import EXPERT_MEMORY, FRESH_EXPERT_MEMORY, MEMORY_RANGES, remember, take_action
from cage2.rules.compile import kernel
from cage2.rules.dynamics import reset_game, step_game
from cage2.rules.state import Settings, check_arrays, from_arrays, to_arrays
from cage2.vector_env import CageVectorEnv, Outputs

GAMES_PER_THREAD = 256
"""Fewer than for the other interfaces, because a step takes longer."""


@kernel
def reset_expert_games(games: Any, memories: Any, mask: Any, masked: bool, settings: Settings, rows: Any) -> None:
    """Start a new episode in the masked games and write the observations of all games."""
    for i in range(games.shape[0]):
        if mask[i]:
            reset_game(games, i, settings)
            memories[i] = FRESH_EXPERT_MEMORY[0]
        write_row(games[i], memories[i], masked, rows[i])


@kernel
def step_expert_games(
    start: int,
    stop: int,
    games: Any,
    memories: Any,
    actions: Any,
    masked: bool,
    weights: Any,
    settings: Settings,
    rows: Any,
    rewards: Any,
    truncated: Any,
    final_rows: Any,
) -> int:
    """Play one step of games start..stop−1 and reset those that ended; return how many ended."""
    ended = 0
    for i in range(start, stop):
        game, memory = games[i], memories[i]
        weight = weights[min(game.steps, weights.shape[0] - 1)]
        rewards[i] = weight * step_game(game, take_action(memory, actions[i]), settings, None)
        remember(memory, game.seen.bits)
        over = game.steps >= settings.horizon
        truncated[i] = over
        if over:
            ended += 1
            write_row(game, memory, masked, final_rows[i])
            reset_game(games, i, settings)
            memories[i] = FRESH_EXPERT_MEMORY[0]
        write_row(games[i], memories[i], masked, rows[i])
    return ended


@kernel
def update_memories(memories: Any, observations: Any, started: bool, masked: bool, rows: Any) -> None:
    """Update the memories with the observations after the last actions, and write the policy's inputs."""
    for i in range(memories.shape[0]):
        if started:
            remember(memories[i], observations[i])
        write_actor_bits(memories[i], observations[i], masked, rows[i])


@kernel
def take_actions(memories: Any, actions: Any, flat: Any) -> None:
    """Record expert actions in the memories and write them as flat actions."""
    for i in range(memories.shape[0]):
        flat[i] = take_action(memories[i], actions[i])


class ExpertVectorEnv(CageVectorEnv):
    """N games with the expert interface: 32 actions (`EXPERT_ACTION_NAMES`) and an observation of three parts:

    1. `NUM_FEATURES` bits of memory, computed only from the 52 bits, blue's actions and time;
    2. the action mask, one bit per action, or all ones with `mask=False`;
    3. `NUM_TRUTH` bits of the true state, for a critic (`NetworkConfig.privileged`).

    With `scored_at`, each reward is weighted by the share of these horizons that include its step, so that the return
    is the mean of the returns at these horizons. The challenge scores (30, 50, 100).
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
        """`keywords` are those of `CageVectorEnv`."""
        if threads is None:
            threads = max(1, min(available_cores(), num_envs // GAMES_PER_THREAD))
        self.masked = mask
        self.weights = score_weights(scored_at)
        self.memories = np.zeros(num_envs, EXPERT_MEMORY)
        super().__init__(num_envs, threads=threads, **keywords)

    def describe(self, action: int) -> str:
        """An action in words, such as `Restore User3` or `Decoy User1`."""
        return EXPERT_ACTION_NAMES[self._checked_action(action)]

    def state_dict(self) -> dict[str, Any]:
        """The state that `load_state_dict` restores exactly."""
        own = {"masked": self.masked, "weights": self.weights.copy(), "memories": to_arrays(self.memories)}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict`."""
        if state["masked"] != self.masked:
            raise ConfigError(f"saved games have mask={state['masked']}; this environment has mask={self.masked}")
        if not np.array_equal(state.get("weights", self.weights), self.weights):
            raise ConfigError("saved games have another scored_at than this environment")
        check_arrays(self.memories, state["memories"], MEMORY_RANGES)
        super().load_state_dict(state)
        from_arrays(self.memories, state["memories"], MEMORY_RANGES)

    def _reset_games(self, mask: NDArray[np.bool_], outputs: Outputs) -> None:
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
    """Weight of each step's reward, the last one for all later steps: the share of `horizons` above its index."""
    if horizons is None:
        return np.ones(1, np.float32)
    ends = np.asarray(horizons)
    if ends.ndim != 1 or not ends.size or ends.dtype.kind not in "iu" or ends.min() < 1:
        raise ConfigError(f"scored_at must be whole numbers of steps above 0, got {horizons!r}")
    weights: NDArray[np.float32] = (ends[None] > np.arange(ends.max() + 1)[:, None]).mean(1).astype(np.float32)
    return weights


class ExpertDefender:
    """A policy of the expert interface as a defender, with the same memory of each game as `ExpertVectorEnv`.

    `shows_mask`: the policy's input has the action mask; all ones otherwise, if it was trained so. `obeys_mask`: only
    allowed actions are taken.
    """

    def __init__(
        self, network: Logits, table: str = "official", *, shows_mask: bool = True, obeys_mask: bool = True
    ) -> None:
        self.network, self.table = network, table
        self.shows_mask, self.obeys_mask = shows_mask, obeys_mask
        self.memories = np.zeros(0, EXPERT_MEMORY)
        self.started = False

    def reset(self, num_games: int) -> None:
        """Start new games and clear the memory of the last ones."""
        self.memories = np.repeat(FRESH_EXPERT_MEMORY, num_games)
        self.started = False

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """Flat actions [N] for the observations [N, 52]."""
        rows = self.inputs(observations)
        logits = self.network(rows)
        if self.obeys_mask:
            logits = masked_logits(logits, rows)
        actions = choose_action(logits, greedy=greedy, generator=generator)
        flat = np.empty(len(rows), np.int64)
        take_actions(self.memories, actions, flat)
        return flat

    def inputs(self, observations: NDArray[np.int8]) -> NDArray[np.int8]:
        """Update the memories and return the policy's inputs [N, NUM_ACTOR_BITS]; call it once per step."""
        if observations.shape != (len(self.memories), 52):
            raise ShapeMismatch(f"observations are {list(observations.shape)}; expected [{len(self.memories)}, 52]")
        rows = np.empty((len(self.memories), NUM_ACTOR_BITS), np.int8)
        update_memories(self.memories, np.ascontiguousarray(observations, np.int8), self.started, self.shows_mask, rows)
        self.started = True
        return rows


def masked_logits(logits: NDArray[np.float32], rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """The logits [N, A] with −∞ for actions that the mask in `rows` forbids."""
    allowed = rows[:, NUM_FEATURES : NUM_FEATURES + NUM_EXPERT_ACTIONS] == 1
    return np.where(allowed, logits, np.float32(-np.inf))
