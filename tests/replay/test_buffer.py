"""The replay buffer returns the stored transitions across ends, time limits and overwritten rows."""

import numpy as np
import pytest
import torch

from optimist.errors import ConfigError
from optimist.replay.transitions import Replay
from tests.replay.rollouts import make_rollout, plain_transition, random_stream

F, T = False, True


def all_ready(replay: Replay):
    """Every transition that can be drawn, in order of time, then environment."""
    count = replay.num_ready
    return replay.transitions((torch.arange(count) + replay._first * replay.num_envs) % replay.size)


def add_stream(replay: Replay, stream, portion: int, until: int | None = None) -> None:
    until = len(stream["obs"]) if until is None else until
    for begin in range(0, until, portion):
        rows = {name: column[begin : min(begin + portion, until)] for name, column in stream.items()}
        rollout = make_rollout(**rows)
        replay.add(rollout, rollout.rewards)


def test_three_steps_by_hand():
    replay = Replay(10, n_step=3, gamma=0.5)
    obs = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]).view(6, 1, 1)
    rewards = [[1.0], [2.0], [4.0], [8.0], [16.0], [32.0]]
    rollout = make_rollout(obs, rewards, [[F], [F], [F], [T], [F], [F]])  # the fourth step ends its episode
    replay.add(rollout, rollout.rewards)
    found = all_ready(replay)
    assert found.obs.flatten().tolist() == [0, 1, 2]
    assert found.returns.tolist() == [1 + 0.5 * 2 + 0.25 * 4, 2 + 0.5 * 4 + 0.25 * 8, 4 + 0.5 * 8]
    assert found.discounts.tolist() == [0.125, 0.0, 0.0]
    assert found.next_obs.flatten()[0] == 3


def test_a_time_limit_bootstraps_from_its_last_state():
    replay = Replay(10, n_step=2, gamma=0.5)
    obs = torch.tensor([[0.0], [1.0], [7.0], [8.0]]).view(4, 1, 1)
    truncated = [[F], [T], [F], [F]]
    rollout = make_rollout(obs, [[1.0], [2.0], [4.0], [8.0]], truncated, truncated=truncated)
    replay.add(rollout, rollout.rewards)
    found = all_ready(replay)
    assert found.returns.tolist() == [2.0, 2.0]
    assert found.next_obs.flatten().tolist() == [1.5, 1.5]  # not 7, the first state of the next episode
    assert found.discounts.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("n_step", [1, 2, 3, 5])
@pytest.mark.parametrize(("num_envs", "portion", "capacity"), [(1, 1, 1000), (3, 4, 1000), (3, 7, 90), (2, 5, 41)])
def test_every_transition_is_the_one_a_plain_loop_gives(n_step, num_envs, portion, capacity):
    stream = random_stream(n_step, 100, num_envs)
    replay = Replay(capacity, n_step=n_step, gamma=0.9)
    add_stream(replay, stream, portion)
    rows = min(100, capacity // num_envs)
    found = all_ready(replay)
    expected = [
        plain_transition(stream, t, env, n_step, 0.9)
        for t in range(100 - rows, 100 - n_step)
        for env in range(num_envs)
    ]
    assert len(expected) == replay.num_ready > 0
    assert found.obs.flatten().tolist() == [float(t) for t in range((100 - rows) * num_envs, (100 - n_step) * num_envs)]
    assert found.actions.tolist() == [e["action"] for e in expected]
    np.testing.assert_allclose(found.returns, [e["return"] for e in expected], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.discounts, [e["discount"] for e in expected], rtol=1e-6)
    leads_on = found.discounts > 0
    assert found.next_obs.flatten()[leads_on].tolist() == [e["next_obs"] for e in expected if e["discount"] > 0]


def test_a_dead_step_gets_no_weight():
    replay = Replay(20, gamma=0.5)
    obs = torch.arange(5.0).view(5, 1, 1)
    rollout = make_rollout(obs, [[1.0], [2.0], [0.0], [3.0], [4.0]], [[F], [T], [T], [F], [F]],
                           valid=[[T], [T], [F], [T], [T]])  # fmt: skip
    replay.add(rollout, rollout.rewards)
    found = all_ready(replay)
    assert found.weights is not None
    assert found.weights.tolist() == pytest.approx([4 / 3, 4 / 3, 0, 4 / 3])  # the others' mean stays the same


def test_no_transition_connects_episodes_across_a_reset():
    replay = Replay(20, n_step=2, gamma=0.5)
    first = make_rollout(torch.tensor([0.0, 1.0, 2.0]).view(3, 1, 1), [[1.0], [2.0], [4.0]], [[F], [F], [F]])
    later = make_rollout(torch.tensor([10.0, 11.0, 12.0]).view(3, 1, 1), [[8.0], [8.0], [8.0]], [[F], [F], [F]])
    replay.add(first, first.rewards)
    replay.forget_unfinished()
    replay.forget_unfinished()  # twice changes nothing
    replay.add(later, later.rewards)
    found = all_ready(replay)
    assert found.weights is not None
    drawn = found.weights > 0
    assert found.obs.flatten()[drawn].tolist() == [0, 1, 10]  # the next state of the step in 2 is unknown
    assert found.returns[drawn].tolist() == [2.0, 2.0, 12.0]
    assert found.next_obs.flatten()[drawn].tolist() == [2, 2, 12]
    assert found.discounts[drawn].tolist() == [0.25, 0.5, 0.25]


def test_an_episode_that_ended_just_before_the_restart_is_kept():
    replay = Replay(20, gamma=0.5)
    first = make_rollout(torch.tensor([0.0, 1.0]).view(2, 1, 1), [[1.0], [2.0]], [[F], [T]])
    replay.add(first, first.rewards)
    replay.forget_unfinished()
    replay.add(first, first.rewards)
    found = all_ready(replay)
    assert found.weights.tolist() == [1.0, 1.0, 1.0]
    assert found.discounts.tolist() == [0.5, 0.0, 0.5]


def test_drawn_steps_are_drawable():
    replay = Replay(60, n_step=3, gamma=0.9)
    generator = torch.Generator().manual_seed(0)
    stream = random_stream(0, 100, 2)
    seen = set()
    for until in range(4, 100, 4):
        rows = {name: column[until - 4 : until] for name, column in stream.items()}
        rollout = make_rollout(**rows)
        replay.add(rollout, rollout.rewards)
        if replay.num_ready:
            drawn = replay.sample(64, generator).obs.flatten()
            oldest, newest = max(0, until - 30) * 2, (until - 3) * 2 - 1
            assert oldest <= drawn.min()
            assert drawn.max() <= newest
            seen |= set(drawn.tolist())
    assert len(seen) > 180


def test_training_rewards_replace_the_rollouts():
    replay = Replay(10)
    rollout = make_rollout(torch.zeros(3, 1, 1), [[1.0], [1.0], [1.0]], [[F], [F], [F]])
    replay.add(rollout, rollout.rewards * 5)
    assert all_ready(replay).returns.tolist() == [5.0, 5.0]


def test_minibatches_of_a_draw():
    replay = Replay(50)
    add_stream(replay, random_stream(1, 20, 2), 5)
    batch = replay.sample(12, torch.Generator().manual_seed(0))
    parts = list(batch.split(4))
    assert [len(part.returns) for part in parts] == [4, 4, 4]
    assert torch.cat([part.obs for part in parts]).equal(batch.obs)
    assert torch.cat([part.positions for part in parts]).equal(batch.positions)


def test_a_replay_buffer_that_is_too_small_is_an_error():
    rollout = make_rollout(torch.zeros(4, 2, 1), torch.zeros(4, 2), torch.zeros(4, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match="replay_capacity 8 holds 4 steps of 2 environments; at least 12"):
        Replay(8).add(rollout, rollout.rewards)


@pytest.mark.parametrize("stop", [3, 12, 39])
def test_a_restored_replay_buffer_equals_the_original(stop):
    stream = random_stream(5, 60, 2)
    whole, saved = Replay(50, n_step=2), Replay(50, n_step=2)
    add_stream(whole, stream, 3)
    add_stream(saved, stream, 3, until=stop)
    restored = Replay(50, n_step=2)
    restored.load_state_dict(saved.state_dict())
    for begin in range(stop, 60, 3):
        rollout = make_rollout(**{name: column[begin : begin + 3] for name, column in stream.items()})
        restored.add(rollout, rollout.rewards)
    ours, theirs = all_ready(restored), all_ready(whole)
    for name in ("obs", "actions", "returns", "next_obs", "discounts"):
        assert getattr(ours, name).equal(getattr(theirs, name)), name


@pytest.mark.parametrize(("num_rollouts", "ready"), [(1, 18), (2, 38), (9, 42)])
def test_a_draw_on_a_device_reaches_the_same_steps(num_rollouts, ready):
    """The device reads the number of steps from a tensor, also after the ring has wrapped."""
    replay = Replay(44)
    for seed in range(num_rollouts):
        rollout = make_rollout(**random_stream(seed, 10, 2))
        replay.add(rollout, rollout.rewards)
    assert replay.num_ready == ready
    every = (torch.arange(ready, dtype=torch.float64) + 0.5) / ready
    expected = (torch.arange(ready) + replay._first * replay.num_envs) % replay.size
    assert replay.positions_of(every).equal(expected)
    last = torch.tensor([1.0 - 2.0**-53], dtype=torch.float64)
    assert replay.positions_of(last).equal(expected[-1:])
