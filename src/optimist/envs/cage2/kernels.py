"""The compiled entry points: the rules of one game run over a range of games."""

from __future__ import annotations

from typing import Any

from optimist.envs.cage2.compiled import kernel
from optimist.envs.cage2.dynamics import reset_game, step_game
from optimist.envs.cage2.state import Settings


@kernel
def first_outside(actions: Any, number: int) -> int:
    """The index of the first action outside 0..number−1, or −1."""
    for i in range(actions.shape[0]):
        if actions[i] < 0 or actions[i] >= number:
            return i
    return -1


@kernel
def reset_games(games: Any, mask: Any, settings: Settings, observations: Any) -> None:
    """Starts a new episode in the masked games and writes the observation of all games."""
    for i in range(games.shape[0]):
        if mask[i]:
            reset_game(games, i, settings)
        observations[i] = games[i].seen


@kernel
def step_games(
    start: int,
    stop: int,
    games: Any,
    actions: Any,
    settings: Settings,
    observations: Any,
    rewards: Any,
    truncated: Any,
    final_observations: Any,
) -> int:
    """Plays one step of games start..stop−1; how many of them ended and began anew."""
    ended = 0
    for i in range(start, stop):
        game = games[i]
        rewards[i] = step_game(game, actions[i], settings, None)
        over = game.steps >= settings.horizon
        truncated[i] = over
        if over:
            ended += 1
            final_observations[i] = game.seen
            reset_game(games, i, settings)
    for i in range(start, stop):  # a pass of its own: copied at once, bytes just written stall the processor
        observations[i] = games[i].seen
    return ended


@kernel
def replay_game(games: Any, actions: Any, settings: Settings, given: Any, observations: Any, rewards: Any) -> None:
    """Plays one game with the outcomes given, keeping its states: `games[0]` before, `games[t + 1]` after step t."""
    for t in range(actions.shape[0]):
        games[t + 1] = games[t]
        rewards[t] = step_game(games[t + 1], actions[t], settings, given[t])
        observations[t] = games[t + 1].seen
