"""One step of one game: blue, green, red, reward, events. Chance is drawn, or given when a record is replayed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from optimist.envs.cage2.actions import RESTORE, VERB_OF
from optimist.envs.cage2.attacks import red_act
from optimist.envs.cage2.blue import blue_act, listening
from optimist.envs.cage2.chance import draw, next_bits, size
from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.network import GREEN_TARGETS, NOWHERE
from optimist.envs.cage2.observe import STATUS_PRIVILEGED, activity, clear_activity, set_status, show_activity
from optimist.envs.cage2.red import red_choice
from optimist.envs.cage2.rewards import penalty_in_tenths
from optimist.envs.cage2.state import B_LINE, FRESH_GAME, MEANDER, SLEEPER, Settings

_TO_UNIT: Final = 2.0**-53
_DROP: Final = np.uint64(11)


@rule
def reset_game(games: Any, i: int, settings: Settings) -> None:
    """A new episode in game i, with a red agent drawn for it. The dice roll on from where they are."""
    low, high = games[i].random[0], games[i].random[1]
    games[i] = FRESH_GAME[0]
    game = games[i]
    game.random[0], game.random[1] = low, high
    luck = np.float64(next_bits(game) >> _DROP) * _TO_UNIT
    game.red = B_LINE if luck < settings.b_line_below else MEANDER if luck < settings.meander_below else SLEEPER


@rule
def green_act(game: Any, awake: bool, given: Any) -> int:
    """The host that green scans in this step, or NOWHERE: it sleeps with probability ½."""
    host = NOWHERE
    if given is not None:
        host = given.green_target
    elif awake:
        choice = draw(game, 2 * len(GREEN_TARGETS))
        if choice < len(GREEN_TARGETS):
            host = GREEN_TARGETS[choice]
    return host


@rule
def collect_events(game: Any, serviced: int, red_ports: int, red_events: int, cardiff_table: bool) -> None:
    """Turns this step's log into activity and status, host by host: red's target, then green's."""
    clear_activity(game)
    green_host = game.green_target
    green_ports = listening(game, green_host) if green_host != NOWHERE else 0
    if red_events > 0:
        host = game.red_target
        if host == green_host:
            red_ports |= green_ports
            red_events += size(green_ports)
            green_ports = 0
        reverse = game.shell_host != NOWHERE
        show_activity(game, 0, host, activity(host == serviced, red_ports, red_events, reverse, cardiff_table))
    if green_ports != 0:
        seen = activity(green_host == serviced, green_ports, size(green_ports), False, cardiff_table)
        show_activity(game, 1, green_host, seen)


@rule
def step_game(game: Any, action: int, settings: Settings, given: Any) -> float:
    """The reward of one step; the game has moved on and holds what blue will see. `given` is None to draw."""
    serviced, found = blue_act(game, action)
    game.green_target = green_act(game, settings.green, given)
    verb, target = red_choice(game, given)
    ports, events = red_act(game, verb, target, settings.competition, given)
    penalty = penalty_in_tenths(game, VERB_OF[action] == RESTORE)
    collect_events(game, serviced, ports, events, settings.cardiff_table)
    if found != NOWHERE:
        set_status(game, found, STATUS_PRIVILEGED)
    game.steps += 1
    return -penalty / 10.0
