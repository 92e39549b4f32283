"""The compiled entry points of the expert interface, for many games of the environment or of a defender."""

from __future__ import annotations

from typing import Any

from optimist.envs.cage2.compiled import kernel, rule
from optimist.envs.cage2.dynamics import reset_game, step_game
from optimist.envs.cage2.expert_actions import NUM_EXPERT_ACTIONS
from optimist.envs.cage2.expert_features import NUM_ACTOR_BITS, NUM_FEATURES, write_features, write_truth
from optimist.envs.cage2.expert_memory import FRESH_EXPERT_MEMORY, remember, take_action, write_mask
from optimist.envs.cage2.state import Settings


@rule
def write_actor_bits(memory: Any, bits: Any, masked: bool, row: Any) -> None:
    """What a policy sees of a game: features, then the mask (or ones where there is to be none)."""
    write_features(memory, bits, row)
    if masked:
        write_mask(memory, row[NUM_FEATURES:])
    else:
        for action in range(NUM_EXPERT_ACTIONS):
            row[NUM_FEATURES + action] = 1


@rule
def _write_row(game: Any, memory: Any, masked: bool, row: Any) -> None:
    write_actor_bits(memory, game.seen.bits, masked, row)
    write_truth(game, row[NUM_ACTOR_BITS:])


@kernel
def reset_expert_games(games: Any, memories: Any, mask: Any, masked: bool, settings: Settings, rows: Any) -> None:
    """Starts a new episode in the masked games and writes the observation of all games."""
    for i in range(games.shape[0]):
        if mask[i]:
            reset_game(games, i, settings)
            memories[i] = FRESH_EXPERT_MEMORY[0]
        _write_row(games[i], memories[i], masked, rows[i])


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
    """Plays one step of games start..stop−1; how many of them ended and began anew."""
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
            _write_row(game, memory, masked, final_rows[i])
            reset_game(games, i, settings)
            memories[i] = FRESH_EXPERT_MEMORY[0]
        _write_row(games[i], memories[i], masked, rows[i])
    return ended


@kernel
def look_at_games(memories: Any, observations: Any, begun: bool, masked: bool, rows: Any) -> None:
    """The observations that followed the actions taken are remembered; what a policy sees of each game is written."""
    for i in range(memories.shape[0]):
        if begun:
            remember(memories[i], observations[i])
        write_actor_bits(memories[i], observations[i], masked, rows[i])


@kernel
def take_actions(memories: Any, actions: Any, flat: Any) -> None:
    """Expert actions as flat ones, remembered as blue's next."""
    for i in range(memories.shape[0]):
        flat[i] = take_action(memories[i], actions[i])
