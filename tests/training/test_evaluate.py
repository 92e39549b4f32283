"""Evaluation of a policy: episodes, their summary, and limits."""

import dataclasses
import math

import gymnasium
import numpy as np
import pytest
import torch

from optimist.config import EnvConfig, NetworkConfig
from optimist.envs.make import make_envs
from optimist.envs.tabular.grid import scripted_success
from optimist.errors import OptimistError
from optimist.networks.actor_critic import make_actor_critic
from optimist.training.evaluate import MIN_EPISODES, play, summarize, summarize_policy

DEEPSEA = EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 5})


class Script(torch.nn.Module):
    """The solution of DeepSea, read from its map; sampled actions are the opposite of it."""

    def __init__(self, task_seed):
        super().__init__()
        envs = make_envs(DEEPSEA, seed=task_seed)
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.right = torch.from_numpy(np.where(envs.unwrapped.right_is_one, 1, 0).ravel())
        assert scripted_success(envs) == [int(self.right[i * 5 + i]) for i in range(5)]

    def act_greedily(self, obs):
        return self.right[obs]

    def act(self, obs, generator):
        return 1 - self.right[obs]


def test_the_solution_always_reaches_the_goal_and_its_opposite_never():
    policy = Script(task_seed=3)
    best = play(policy, DEEPSEA, 23, greedy=True, seed=0, task_seed=3)
    assert len(best) == 23
    assert {(round(e["return"], 6), e["length"], e["goal"]) for e in best} == {(0.99, 5, True)}
    worst = play(policy, DEEPSEA, 5, greedy=False, seed=0, task_seed=3)
    assert {(e["return"], e["length"], e["goal"]) for e in worst} == {(0.0, 5, False)}


def test_the_solution_of_one_map_fails_on_another():
    found = play(Script(task_seed=3), DEEPSEA, 5, greedy=True, seed=0, task_seed=4)
    assert not any(e["goal"] for e in found)


def cartpole_policy():
    envs = make_envs(EnvConfig(id="CartPole-v1", num_envs=1))
    torch.manual_seed(0)
    return make_actor_critic(envs.single_observation_space, envs.single_action_space, NetworkConfig(hidden=(8,)))


def test_short_episodes_are_not_counted_more_often_than_long_ones():
    # each of 16 environments plays its 2 or 3 episodes to the end
    found = play(cartpole_policy(), EnvConfig(id="CartPole-v1"), 40, greedy=False, seed=1, task_seed=0)
    again = play(cartpole_policy(), EnvConfig(id="CartPole-v1"), 40, greedy=False, seed=1, task_seed=0)
    other = play(cartpole_policy(), EnvConfig(id="CartPole-v1"), 40, greedy=False, seed=2, task_seed=0)
    assert found == again != other
    assert len(found) == 40
    ticks = []
    play(
        cartpole_policy(),
        EnvConfig(id="CartPole-v1"),
        40,
        greedy=False,
        seed=1,
        task_seed=0,
        tick=lambda: ticks.append(1),
    )
    assert len(ticks) == 40  # episodes beyond an environment's share are not counted
    assert all(e["return"] == e["length"] >= 5 and e["goal"] is None for e in found)  # reset steps are not counted


def test_exactly_as_many_episodes_are_played_as_asked_for():
    assert len(play(cartpole_policy(), EnvConfig(id="CartPole-v1"), 3, greedy=True, seed=1, task_seed=0)) == 3


def test_gaussian_actions_stay_within_bounds():
    config = EnvConfig(id="Pendulum-v1", num_envs=1)
    envs = make_envs(config)
    network = NetworkConfig(hidden=(8,), log_std=3.0)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    found = play(policy, config, 2, greedy=False, seed=0, task_seed=0)
    assert [e["length"] for e in found] == [200, 200]


def played(returns, goal=None):
    return [{"return": value, "length": n, "goal": goal and goal(value)} for n, value in enumerate(returns, 1)]


def test_the_summary_by_hand():
    summary = summarize(played([1.0, 3.0, 5.0, 7.0, 9.0], goal=lambda value: value < 2))
    assert (summary["episodes"], summary["mean_return"], summary["mean_length"]) == (5, 5.0, 3.0)
    error = math.sqrt(10 / 5)
    assert summary["standard_error"] == pytest.approx(error)
    assert summary["interval_95"] == pytest.approx([5 - 2.776445 * error, 5 + 2.776445 * error])
    assert summary["goal_rate"] == pytest.approx(1 / 5)


def test_too_few_episodes_have_no_interval_and_a_task_without_goal_has_no_goal_rate():
    for few in range(1, MIN_EPISODES):
        summary = summarize(played([-18.0, -20.0, -19.0, -20.0][:few]))
        assert summary["interval_95"] is None
        assert math.isnan(summary["standard_error"]) == (few == 1)
        assert "goal_rate" not in summary
    assert all(math.isfinite(bound) for bound in summarize(played([1.0] * MIN_EPISODES))["interval_95"])


def test_the_statistic_names_the_horizons_it_is_averaged_over():
    played = [{"return": -4.0, "length": 100, "goal": None}]
    found = summarize_policy(played, EnvConfig(kwargs={"scored_at": [30, 100]}), greedy=True)["statistic"]
    assert found == (
        "mean return, each the mean of those at 30, 100 steps, of 1 fresh episodes (greedy actions), final policy"
    )
    assert "mean raw return of 1" in summarize_policy(played, EnvConfig(), greedy=True)["statistic"]


class Endless(gymnasium.Env):
    """One state; an episode never ends."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 1.0, False, False, {}


def test_an_endless_episode_is_an_error_and_a_step_limit_ends_it(monkeypatch):
    monkeypatch.setattr("optimist.training.evaluate.MAX_STEPS", 500)
    monkeypatch.setitem(gymnasium.registry, "Endless-v0", gymnasium.envs.registration.EnvSpec("Endless-v0", Endless))
    endless = EnvConfig(id="Endless-v0")
    policy = make_actor_critic(Endless.observation_space, Endless.action_space, NetworkConfig())
    with pytest.raises(OptimistError, match=r"Endless-v0 has not ended after 500 steps.*max_episode_steps"):
        play(policy, endless, 3, greedy=False, seed=0, task_seed=0)
    limited = dataclasses.replace(endless, kwargs={"max_episode_steps": 500})
    played = play(policy, limited, 3, greedy=False, seed=0, task_seed=0)
    assert [episode["length"] for episode in played] == [500, 500, 500]
