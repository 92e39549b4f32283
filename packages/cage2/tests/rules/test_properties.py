"""Properties of every game: invariants under random actions, and exact replay of recorded outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cage2.rules.dynamics import replay_game
from cage2.rules.scenario import DECOY_PORT, GENUINE_PORTS, NOWHERE, NUM_HOSTS, USER0
from cage2.rules.state import OUTCOMES, REDS, VIEW, members, new_games
from cage2.vector_env import CageVectorEnv


@pytest.mark.parametrize("rules", ["final", "competition"])
@pytest.mark.parametrize("green", ["Sleep", "GreenAgent"])
def test_invariants_under_random_play(rules: str, green: str) -> None:
    env = CageVectorEnv(400, red="mixed", red_weights=(1, 1, 1), rules=rules, green=green, horizon=150)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    hosts = np.arange(NUM_HOSTS)
    for _ in range(149):
        remembered = env.games["known_ports"].copy()
        bits, rewards, *_ = env.step(rng.integers(145, size=400))
        games = env.games
        held, owned = members(games["held"]), members(games["owned"])
        sessions = games["plain"] + games["flagged"] + games["privileged"]
        assert (games["plain"] >= 0).all()
        assert (games["flagged"] >= 0).all()
        assert (held == (sessions > 0)).all()
        assert (owned == (games["privileged"] > 0)).all()
        assert owned[:, USER0].all()
        assert ((bits == 0) | (bits == 1)).all()
        activity = bits.reshape(400, NUM_HOSTS, 4)[:, :, :2]
        assert not ((activity[..., 0] == 0) & (activity[..., 1] == 1)).any()
        assert (activity[..., 0].sum(axis=1) <= 1 + (green == "GreenAgent")).all()
        tenths = np.rint(rewards * 10)
        assert np.abs(rewards * 10 - tenths).max() < 1e-4
        assert ((tenths <= 0) & (tenths >= -158)).all()
        assert not (games["decoy_ports"] & ~np.bitwise_or.reduce(DECOY_PORT)).any()
        known = games["known_ports"]
        if rules == "competition":
            assert (known & remembered == remembered).all()
        fresh = (known != remembered) & (known != 0)
        listening = GENUINE_PORTS[hosts] | games["decoy_ports"]
        assert (known[fresh] & listening[fresh] == listening[fresh]).all()
        assert (~games["ot_running"] <= ~members(games["restored"])[:, 7] | games["ot_killable"]).all()
        sleeping = games["red"] == REDS.index("Sleep")
        assert (games["held"][sleeping] == 1 << USER0).all()


def outcomes_of(games: np.ndarray) -> np.ndarray:
    """Random outcomes of the last step of each game, as in a record."""
    outcomes = np.zeros(len(games), OUTCOMES)
    outcomes["green_target"], outcomes["red_target"] = games["green_target"], games["red_target"]
    outcomes["exploit"] = games["red_exploit"]
    outcomes["detected"] = games["shell_host"] != NOWHERE
    on_host = np.minimum(games["red_target"], NUM_HOSTS - 1)
    outcomes["flagged"] = games["flagged"][np.arange(len(games)), on_host]
    return outcomes


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32),
    red=st.sampled_from(["B_line", "Meander"]),
    green=st.sampled_from(["Sleep", "GreenAgent"]),
    rules=st.sampled_from(["final", "competition"]),
    table=st.sampled_from(["official", "cardiff"]),
    actions=st.lists(st.integers(0, 144), min_size=1, max_size=80),
)
def test_random_game_replays_from_its_recorded_outcomes(
    seed: int, red: str, green: str, rules: str, table: str, actions: list[int]
) -> None:
    env = CageVectorEnv(1, red=red, green=green, rules=rules, table=table, horizon=1000)
    env.reset(seed=seed)
    start, states, rewards = env.games.copy(), [], []
    for action in actions:
        rewards.append(env.step([action])[1][0])
        states.append(env.games.copy())
    games = new_games(len(actions) + 1)
    games[0] = start[0]
    seen, again = np.zeros(len(actions), VIEW), np.zeros(len(actions))
    outcomes = outcomes_of(np.concatenate(states))
    replay_game(games, np.array(actions), env.settings, outcomes, seen, again)
    np.testing.assert_array_equal(np.float32(again), rewards)
    for name in games.dtype.names or ():
        if name != "random":
            np.testing.assert_array_equal(games[name][1:], np.concatenate(states)[name], err_msg=name)
