"""Moves for some of the games at a time: whoever else is decided for, they are the same."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

from optimist.config import NetworkConfig
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.decider import Decider

GAMES, STEPS, ACTIONS = 64, 2, 18


def make_decider(device, *, graphs, at_once=32):
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn")
    policy = make_actor_critic(Box(0, 255, (4, 84, 84), np.uint8), Discrete(ACTIONS), network).to(device)
    if device == "cuda":
        policy = policy.to(memory_format=torch.channels_last)
    with torch.no_grad():
        policy.actor.weight.normal_(std=0.1)
    pictures = torch.randint(256, (GAMES, 4, 84, 84), dtype=torch.uint8)
    return Decider(
        policy,
        torch.Generator(device).manual_seed(3),
        host_obs=pictures.pin_memory() if device == "cuda" else pictures,
        rows=torch.zeros((STEPS * GAMES + 1, 4, 84, 84), dtype=torch.uint8, device=device),
        actions=torch.full((STEPS * GAMES + 1,), -1, device=device),
        at_once=at_once,
        graphs=graphs,
    )


def decide(decider, games, rows):
    decider.ask(games, rows)
    return decider.answer()


def assert_decisions_are_each_game_s_own(decider):
    """In whatever company and order, at whatever step: the same moves, and each in its row of the rollout."""
    decider.begin()
    found, rng, times = [], np.random.default_rng(0), np.arange(GAMES) % STEPS
    for _ in range(20):
        order, actions = rng.permutation(GAMES), np.zeros(GAMES, np.int64)
        while len(order):
            count = rng.integers(1, decider.at_once + 1)
            group, order = order[:count], order[count:]
            actions[group] = decide(decider, group, times[group] * GAMES + group)
        found.append(actions)
    assert len({tuple(actions) for actions in found}) == 1
    assert len(set(found[0])) > 6
    rows = decider.rows[:-1].view(STEPS, GAMES, *decider.rows.shape[1:]).cpu()
    actions = decider.actions[:-1].view(STEPS, GAMES).cpu().numpy()
    for game, time in enumerate(times):
        assert rows[time, game].equal(decider.host_obs[game])
        assert actions[time, game] == found[0][game]
        assert actions[1 - time, game] == -1  # its other step was not decided


def test_a_decision_does_not_depend_on_who_else_is_decided_for():
    assert_decisions_are_each_game_s_own(make_decider("cpu", graphs=False))


def test_every_rollout_has_chances_of_its_own_and_each_step_of_each_game_too():
    decider, games = make_decider("cpu", graphs=False, at_once=GAMES), np.arange(GAMES)
    decider.host_obs[:] = decider.host_obs[0].clone()  # all see the same
    found = []
    for _ in range(2):
        decider.begin()
        found += [decide(decider, games, time * GAMES + games) for time in range(STEPS)]
    assert all(len(set(actions)) > 3 for actions in found)
    assert len({tuple(actions) for actions in found}) == 2 * STEPS


def test_moves_are_drawn_from_the_policy():
    decider, draws = make_decider("cpu", graphs=False, at_once=GAMES), 150
    decider.host_obs[:] = decider.host_obs[0].clone()
    probabilities = decider.policy.action_params(decider.host_obs[:1]).softmax(-1)[0].detach().numpy()
    counts = np.zeros(ACTIONS)
    for _ in range(draws):
        decider.begin()
        for time in range(STEPS):
            np.add.at(counts, decide(decider, np.arange(GAMES), time * GAMES + np.arange(GAMES)), 1)
    total = draws * STEPS * GAMES
    error = np.abs(counts / total - probabilities) / np.sqrt(probabilities * (1 - probabilities) / total)
    assert error.max() < 4.5
