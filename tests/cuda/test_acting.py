"""BatchActor: the actions of a slot do not depend on the other slots of its batch."""

from __future__ import annotations

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

from optimist.config import NetworkConfig
from optimist.cuda.acting import BatchActor
from optimist.networks.actor_critic import make_actor_critic

SLOTS, STEPS, ACTIONS = 64, 2, 18


def make_actor(device, *, graphs, batch_size=32):
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn")
    policy = make_actor_critic(Box(0, 255, (4, 84, 84), np.uint8), Discrete(ACTIONS), network).to(device)
    if device == "cuda":
        policy = policy.to(memory_format=torch.channels_last)
    with torch.no_grad():
        policy.actor.weight.normal_(std=0.1)
    obs = torch.randint(256, (SLOTS, 4, 84, 84), dtype=torch.uint8)
    return BatchActor(
        policy,
        torch.Generator(device).manual_seed(3),
        host_obs=obs.pin_memory() if device == "cuda" else obs,
        rollout_obs=torch.zeros((STEPS * SLOTS + 1, 4, 84, 84), dtype=torch.uint8, device=device),
        rollout_actions=torch.full((STEPS * SLOTS + 1,), -1, device=device),
        batch_size=batch_size,
        graphs=graphs,
    )


def act(actor, slots, rows):
    actor.submit(slots, rows)
    return actor.result()


def assert_actions_do_not_depend_on_the_batch(actor):
    """In batches of any size and order, at any step: the same actions, each in its row of the rollout."""
    actor.start_rollout()
    found, rng, steps = [], np.random.default_rng(0), np.arange(SLOTS) % STEPS
    for _ in range(20):
        order, actions = rng.permutation(SLOTS), np.zeros(SLOTS, np.int64)
        while len(order):
            count = rng.integers(1, actor.batch_size + 1)
            batch, order = order[:count], order[count:]
            actions[batch] = act(actor, batch, steps[batch] * SLOTS + batch)
        found.append(actions)
    assert len({tuple(actions) for actions in found}) == 1
    assert len(set(found[0])) > 6
    obs = actor.rollout_obs[:-1].view(STEPS, SLOTS, *actor.rollout_obs.shape[1:]).cpu()
    actions = actor.rollout_actions[:-1].view(STEPS, SLOTS).cpu().numpy()
    for slot, step in enumerate(steps):
        assert obs[step, slot].equal(actor.host_obs[slot])
        assert actions[step, slot] == found[0][slot]
        assert actions[1 - step, slot] == -1  # no action was selected for its other step


def test_action_does_not_depend_on_the_batch():
    assert_actions_do_not_depend_on_the_batch(make_actor("cpu", graphs=False))


def test_action_of_a_captured_graph_does_not_depend_on_the_batch(device):
    """Otherwise a run would depend on the order in which slots become ready."""
    assert_actions_do_not_depend_on_the_batch(make_actor(device, graphs=True))


def test_every_rollout_step_and_slot_has_its_own_noise():
    actor, slots = make_actor("cpu", graphs=False, batch_size=SLOTS), np.arange(SLOTS)
    actor.host_obs[:] = actor.host_obs[0].clone()  # the same observation everywhere
    found = []
    for _ in range(2):
        actor.start_rollout()
        found += [act(actor, slots, step * SLOTS + slots) for step in range(STEPS)]
    assert all(len(set(actions)) > 3 for actions in found)
    assert len({tuple(actions) for actions in found}) == 2 * STEPS


def test_actions_follow_the_policys_distribution():
    actor, rounds = make_actor("cpu", graphs=False, batch_size=SLOTS), 150
    actor.host_obs[:] = actor.host_obs[0].clone()
    probabilities = actor.policy.action_params(actor.host_obs[:1]).softmax(-1)[0].detach().numpy()
    counts = np.zeros(ACTIONS)
    for _ in range(rounds):
        actor.start_rollout()
        for step in range(STEPS):
            np.add.at(counts, act(actor, np.arange(SLOTS), step * SLOTS + np.arange(SLOTS)), 1)
    total = rounds * STEPS * SLOTS
    error = np.abs(counts / total - probabilities) / np.sqrt(probabilities * (1 - probabilities) / total)
    assert error.max() < 4.5
