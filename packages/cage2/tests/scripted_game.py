"""One game for tests in which red's actions and all random outcomes are given by the test."""

from __future__ import annotations

import numpy as np

from cage2.rules.dynamics import replay_game, reset_games
from cage2.rules.scenario import (
    ENTERPRISE0,
    ESCALATE,
    EXPLOIT,
    GENUINE_PORTS,
    IMPACT,
    NO_EXPLOIT,
    NOWHERE,
    NUM_HOSTS,
    OP_SERVER0,
    RED_SLEEP,
    SCAN,
    SWEEP,
    YES,
    flat_action,
)
from cage2.rules.state import GAME, MEANDER, OUTCOMES, SLEEPER, VIEW, make_settings, new_games

EVERYTHING = (1 << NUM_HOSTS) - 1
QUIET, SCANNED, EXPLOITED = (0, 0), (1, 0), (1, 1)
NO_STATUS, UNKNOWN, USER, PRIVILEGED = (0, 0), (1, 0), (0, 1), (1, 1)


class ScriptedGame:
    """One game, step by step; fields of its record are attributes."""

    def __init__(self, red: str = "Sleep", rules: str = "final", table: str = "official") -> None:
        self.settings = make_settings(red, "GreenAgent", rules, table, horizon=1000)
        self._game = new_games(1)
        reset_games(self._game, np.ones(1, np.bool_), self.settings, np.zeros(1, VIEW))
        self.reward = 0.0

    def __getattr__(self, name: str):
        return self._game[name][0]

    def __setattr__(self, name: str, value) -> None:
        if name in (GAME.names or ()):
            self._game[name][0] = value
        else:
            super().__setattr__(name, value)

    # -- arrange

    def hold(self, host: int, *, plain: int = 0, flagged: int = 0, privileged: int = 0) -> ScriptedGame:
        """Give red these sessions on a host."""
        self.plain[host], self.flagged[host], self.privileged[host] = plain, flagged, privileged
        self.held |= 1 << host
        if privileged:
            self.owned |= 1 << host
        return self

    def set_red_action(self, verb: int, target: int = NOWHERE) -> ScriptedGame:
        """Set red's next action: a Meander whose memory leaves no other choice."""
        self.red, self.red_verb, self.red_success = MEANDER, RED_SLEEP, YES
        self.known_subnets = self.swept = self.known_names = self.escalated = 0
        self.known_addresses = self.scanned = self.exploited = EVERYTHING
        if verb == SWEEP:
            self.known_subnets = 1 << target
        elif verb == SCAN:
            self.scanned = EVERYTHING & ~(1 << target)
        elif verb == ESCALATE:
            self.known_names = 1 << target
        elif verb == IMPACT:
            self.escalated = 1 << OP_SERVER0
        elif verb == EXPLOIT:
            self.exploited = EVERYTHING & ~(1 << target)
        return self

    def stop_red(self) -> ScriptedGame:
        """Let red sleep from now on."""
        self.red = SLEEPER
        return self

    def exploit(
        self, host: int, exploit: int, detected: bool = True, blue: int = 0, green: int = NOWHERE
    ) -> ScriptedGame:
        """Step in which red tries this exploit; it knows all open ports of the host."""
        if not self.known_ports[host]:
            self.known_ports[host] = GENUINE_PORTS[host] | self.decoy_ports[host]
        self.set_red_action(EXPLOIT, host)
        return self.step(blue, green=green, target=host, exploit=exploit, detected=detected)

    # -- act

    def step(
        self,
        action: int = 0,
        *,
        green: int = NOWHERE,
        target: int = NOWHERE,
        exploit: int = NO_EXPLOIT,
        detected: bool = True,
        flagged: int = 0,
    ) -> ScriptedGame:
        """One step with these outcomes."""
        states = np.repeat(self._game, 2)
        outcomes = np.array([(green, target, exploit, int(detected), flagged)], OUTCOMES)
        seen, rewards = np.zeros(1, VIEW), np.zeros(1)
        replay_game(states, np.array([action]), self.settings, outcomes, seen, rewards)
        self._game = states[1:].copy()
        self.reward = float(rewards[0])
        return self

    def do(self, verb: int, host: int = NOWHERE, **outcomes) -> ScriptedGame:
        """One step with this action of blue; red sleeps unless `set_red_action` was called."""
        return self.step(flat_action(verb, host), **outcomes)

    # -- observe

    def activity(self, host: int) -> tuple[int, int]:
        return tuple(self.seen["bits"][4 * host : 4 * host + 2].tolist())

    def status(self, host: int) -> tuple[int, int]:
        return tuple(self.seen["bits"][4 * host + 2 : 4 * host + 4].tolist())

    def set_status(self, host: int, status: tuple[int, int]) -> ScriptedGame:
        self.seen["bits"][4 * host + 2 : 4 * host + 4] = status
        return self

    def sessions(self, host: int) -> tuple[int, int, int]:
        """(plain, flagged, privileged)."""
        return int(self.plain[host]), int(self.flagged[host]), int(self.privileged[host])

    def has(self, mask: str, host: int) -> bool:
        return bool(getattr(self, mask) >> host & 1)


def gateway(game: ScriptedGame) -> ScriptedGame:
    """Open the Operational subnet to red."""
    return game.hold(ENTERPRISE0, plain=1)
