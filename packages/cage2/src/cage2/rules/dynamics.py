"""One step of one game: blue, green, red, reward, observation; and the kernels that step many games."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cage2.rules.blue import (
    STATUS_PRIVILEGED,
    activity,
    blue_act,
    clear_activity,
    open_ports,
    set_status,
    show_activity,
)
from cage2.rules.chance import count_bits, draw, next_bits
from cage2.rules.compile import kernel, rule
from cage2.rules.red_actions import red_act
from cage2.rules.red_agents import red_choice
from cage2.rules.scenario import GREEN_TARGETS, NOWHERE, RESTORE, VERB_OF, WORTH_A_TENTH, WORTH_ONE
from cage2.rules.state import B_LINE, FRESH_GAME, MEANDER, SLEEPER, Settings

_TO_UNIT: Final = 2.0**-53
_DROP: Final = np.uint64(11)


@rule
def penalty_in_tenths(game: Any, restoring: bool) -> int:
    """−10 r as an integer, with r = −Σ values of hosts red owns − 10 if OTService is down − 1 for a Restore.

    User sessions cost nothing, and User0 has no value. A stopped OTService costs 10 per step until Op_Server0 is
    restored.
    """
    tenths = 10 * count_bits(game.owned & WORTH_ONE) + count_bits(game.owned & WORTH_A_TENTH)
    if not game.ot_running:
        tenths += 100
    if restoring:
        tenths += 10
    return tenths


@rule
def reset_game(games: Any, i: int, settings: Settings) -> None:
    """Start a new episode in game i with a red agent drawn at random; the random state continues."""
    low, high = games[i].random[0], games[i].random[1]
    games[i] = FRESH_GAME[0]
    game = games[i]
    game.random[0], game.random[1] = low, high
    share = np.float64(next_bits(game) >> _DROP) * _TO_UNIT
    game.red = B_LINE if share < settings.b_line_below else MEANDER if share < settings.meander_below else SLEEPER


@rule
def green_act(game: Any, noisy: bool, recorded: Any) -> int:
    """Return the host that green scans in this step; NOWHERE (asleep) with probability ½."""
    host = NOWHERE
    if recorded is not None:
        host = recorded.green_target
    elif noisy:
        choice = draw(game, 2 * len(GREEN_TARGETS))
        if choice < len(GREEN_TARGETS):
            host = GREEN_TARGETS[choice]
    return host


@rule
def collect_events(game: Any, service_host: int, red_ports: int, red_events: int, cardiff_table: bool) -> None:
    """Write activity and status from the log of this step, first of red's target, then of green's."""
    clear_activity(game)
    green_host = game.green_target
    green_ports = open_ports(game, green_host) if green_host != NOWHERE else 0
    if red_events > 0:
        host = game.red_target
        if host == green_host:
            red_ports |= green_ports
            red_events += count_bits(green_ports)
            green_ports = 0
        reverse = game.shell_host != NOWHERE
        show_activity(game, 0, host, activity(host == service_host, red_ports, red_events, reverse, cardiff_table))
    if green_ports != 0:
        seen = activity(green_host == service_host, green_ports, count_bits(green_ports), False, cardiff_table)
        show_activity(game, 1, green_host, seen)


@rule
def step_game(game: Any, action: int, settings: Settings, recorded: Any) -> float:
    """Play one step and return its reward; outcomes are drawn if `recorded` is None, else taken from it."""
    service_host, file_host = blue_act(game, action)
    game.green_target = green_act(game, settings.green, recorded)
    verb, target = red_choice(game, recorded)
    ports, events = red_act(game, verb, target, settings.competition, recorded)
    penalty = penalty_in_tenths(game, VERB_OF[action] == RESTORE)
    collect_events(game, service_host, ports, events, settings.cardiff_table)
    if file_host != NOWHERE:
        set_status(game, file_host, STATUS_PRIVILEGED)
    game.steps += 1
    return -penalty / 10.0


@kernel
def first_outside(actions: Any, number: int) -> int:
    """Return the index of the first action outside 0..number−1, or −1."""
    for i in range(actions.shape[0]):
        if actions[i] < 0 or actions[i] >= number:
            return i
    return -1


@kernel
def reset_games(games: Any, mask: Any, settings: Settings, observations: Any) -> None:
    """Start a new episode in the masked games and write the observations of all games."""
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
    """Play one step of games start..stop−1 and reset those that ended; return how many ended."""
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
    for i in range(start, stop):  # in a second loop: copying bytes just written stalls the processor
        observations[i] = games[i].seen
    return ended


@kernel
def replay_game(games: Any, actions: Any, settings: Settings, recorded: Any, observations: Any, rewards: Any) -> None:
    """Play one game with recorded outcomes; `games[0]` is the state before, `games[t + 1]` after step t."""
    for t in range(actions.shape[0]):
        games[t + 1] = games[t]
        rewards[t] = step_game(games[t + 1], actions[t], settings, recorded[t])
        observations[t] = games[t + 1].seen
