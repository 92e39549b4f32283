"""The warning where a host marks ends at the wrong steps, on real environments."""

import warnings
from functools import cache

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import optimist.envs  # noqa: F401  registers DeepSea and Key-Door-Treasure
from optimist.core.config import OPRConfig
from optimist.core.end_check import ENOUGH, NUM_ROLLOUTS, EndCheck
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Rollout, Steps
from tests.core.tables import make_steps

EARLY, LATE = "Steps.from_cleanrl converts CleanRL's dones", "looks like a reset step"
TASKS = {
    "CartPole-v1": {},
    "MountainCar-v0": {"max_episode_steps": 40},
    "FrozenLake-v1": {},
    "optimist/DeepSea-v0": {"size": 8},
    "optimist/KeyDoorTreasure-v0": {},
}


@cache
def play(task, mode, num_envs=4, num_steps=128):
    """Eight rollouts of random actions in CleanRL's order: obs, rewards, dones and next_done of each."""
    envs = SyncVectorEnv([lambda: gym.make(task, **TASKS[task])] * num_envs, autoreset_mode=AutoresetMode(mode))
    envs.action_space.seed(0)
    obs, done, rollouts = envs.reset(seed=0)[0], np.zeros(num_envs, bool), []
    for _ in range(8):
        rows = []
        for _ in range(num_steps):
            before, started = np.array(obs), done
            obs, reward, terminated, truncated, _ = envs.step(envs.action_space.sample())
            done = terminated | truncated
            rows.append((before, reward, started))
        columns = (torch.as_tensor(np.stack(column)) for column in zip(*rows, strict=True))
        rollouts.append((*columns, torch.as_tensor(done)))
    return rollouts


def warnings_of(rollouts):
    opr = OptimisticRegularizer(OPRConfig())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for steps in rollouts:
            opr.observe(steps)
    return [str(warning.message) for warning in caught]


def converted(task, mode):
    for obs, rewards, dones, next_done in play(task, mode):
        zeros = torch.zeros_like(rewards)
        yield Steps.from_cleanrl(
            obs=obs, actions=zeros, rewards=rewards, logprobs=zeros, dones=dones, next_done=next_done, autoreset=mode
        )


def with_ends(task, mode, *, shifted=False):
    """Steps without a mask, with ends at their steps or, shifted, one step late."""
    for obs, rewards, dones, next_done in play(task, mode):
        ends = dones if shifted else torch.cat([dones[1:], next_done[None]])
        yield make_steps(rewards, ends, obs=obs)


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
@pytest.mark.parametrize("task", TASKS)
def test_ends_at_their_steps_give_no_warning(task, mode):
    assert warnings_of(converted(task, mode)) == []


@pytest.mark.parametrize("task", TASKS)
def test_ends_marked_a_step_late_give_one_warning(task):
    (message,) = warnings_of(with_ends(task, "SameStep", shifted=True))
    assert EARLY in message
    assert warnings_of(with_ends(task, "SameStep")) == []


@pytest.mark.parametrize("task", TASKS)
def test_reset_steps_without_a_mask_give_one_warning(task):
    (message,) = warnings_of(with_ends(task, "NextStep"))
    assert LATE in message


def test_the_warning_names_the_line_that_called_observe():
    opr, steps = OptimisticRegularizer(OPRConfig()), next(with_ends("CartPole-v1", "SameStep", shifted=True))
    with pytest.warns(UserWarning, match="look marked one step late") as caught:
        opr.observe(steps)
    assert caught[0].filename == __file__


def test_a_start_marked_in_every_environment_at_the_first_step_gives_a_warning():
    starts = torch.zeros(32, 4).bool()
    starts[[0, 20]] = True
    (message,) = warnings_of([make_steps(torch.ones(32, 4), starts)])
    assert EARLY in message


@pytest.mark.parametrize("first", [[True, False], [True]])
def test_a_first_episode_of_one_step_may_be_chance(first):
    ends = torch.zeros(32, len(first)).bool()
    ends[0], ends[20] = torch.tensor(first), True
    assert warnings_of([make_steps(torch.ones(32, len(first)), ends)]) == []


@pytest.mark.parametrize("share", [0.1, 1.0])
@pytest.mark.parametrize("shape", [(), (3,), (2, 4, 4)])
def test_observations_that_say_nothing_give_no_warning(shape, share):
    generator = torch.Generator().manual_seed(0)
    for obs in (torch.zeros(200, 4, *shape), torch.randn(200, 4, *shape, generator=generator)):
        ends = torch.rand(200, 4, generator=generator) <= share
        assert warnings_of([make_steps(torch.ones(200, 4), ends, obs=obs)] * 4) == []


def test_the_check_ends_with_a_verdict_and_after_some_rollouts():
    check = EndCheck()
    for steps in with_ends("CartPole-v1", "SameStep"):
        check.look(steps)
    assert check.rollouts_left == 0
    assert ENOUGH <= check.places["at the mark"] == check.places.total() <= 4 * ENOUGH
    check = EndCheck()
    for _ in range(NUM_ROLLOUTS + 1):
        check.look(make_steps([[1.0]], [[True]]))
    assert (check.rollouts_left, check.places.total()) == (0, 0)


def test_rollouts_of_our_own_collectors_are_not_checked():
    opr = OptimisticRegularizer(OPRConfig())
    for steps in with_ends("CartPole-v1", "SameStep", shifted=True):
        opr.observe(Rollout(**vars(steps), values=steps.rewards, next_values=steps.rewards))
    assert opr.end_check.rollouts_left == NUM_ROLLOUTS
