"""The Python API: train from a preset, resume, load the agent, act."""

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch

import optimist
from optimist.config import EnvConfig, NetworkConfig, PPOConfig
from optimist.core.settings import REMOVED
from optimist.errors import OptimistError, ShapeMismatch, UnknownName
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import train
from tests.training.test_trainer import DEEPSEA, weights


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "run"
    return path, train(DEEPSEA, path, progress=False)


def test_an_agent_acts_on_one_observation_or_on_many(run):
    agent = optimist.load(run[0])
    single, batch = agent.act(0), agent.act([0, 5, 10])
    assert type(single) is int
    assert (batch.shape, int(batch[0])) == ((3,), single)
    sampled = {agent.act(0, greedy=False) for _ in range(60)}
    assert sampled == {0, 1}


def test_an_agent_has_the_trained_policy(run):
    agent = optimist.load(run[0])
    state, obs = weights(run[0]), torch.arange(16)
    assert all(agent.policy.state_dict()[name].equal(value) for name, value in state.items())
    assert agent.act(obs.numpy()).tolist() == agent.policy.act_greedily(obs).tolist()


def test_an_observation_of_another_shape_is_refused(run):
    with pytest.raises(ShapeMismatch, match=r"obs is \[2, 2\]; expected \[\] or a batch of them"):
        optimist.load(run[0]).act([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        (16, "obs holds 16 to 16; expected states from 0 to 15"),
        ([3, -1], "obs holds -1 to 3; expected states from 0 to 15"),
        (0.5, "obs is of float64; expected integers"),
    ],
)
def test_a_state_outside_the_space_is_refused(run, obs, message):
    with pytest.raises(ShapeMismatch, match=message):
        optimist.load(run[0]).act(obs)


def test_actions_are_within_the_environments_bounds(tmp_path):
    config = dataclasses.replace(
        DEEPSEA,
        env=EnvConfig(id="Pendulum-v1", num_envs=2),
        network=NetworkConfig(hidden=(8,), log_std=3.0),
        algorithm=PPOConfig(rollout_steps=8),
        total_steps=16,
    )
    train(config, tmp_path / "run", progress=False)
    agent = optimist.load(tmp_path / "run")
    actions = agent.act([[1.0, 0.0, 0.0]] * 50, greedy=False)
    assert actions.shape == (50, 1)
    assert abs(actions).max() == 2.0
    assert agent.act([1.0, 0.0, 0.0]).shape == (1,)


def test_a_preset_is_trained_with_its_keywords_and_any_setting(tmp_path):
    settings = {"size": 4, "seed": 3, "total_steps": 1024, "opr": {"bc_coef": 0.3}, "tensorboard": False}
    summary = optimist.train("deepsea/opr", out=tmp_path / "run", progress=False, **settings)
    config = RunDir.read(tmp_path / "run").config
    assert summary["run"] == str(tmp_path / "run")
    assert (config.seed, config.env.kwargs["size"], config.opr.bc_coef, summary["steps"]) == (3, 4, 0.3, 1024)
    assert optimist.load(tmp_path / "run").act(0) in (0, 1)


@pytest.mark.parametrize("settings", [{"sizes": 4}, {"opr": {"bc_coeff": 0.3}}])
def test_a_misspelt_setting_is_refused_before_anything_is_written(tmp_path, settings):
    with pytest.raises(UnknownName):
        optimist.train("deepsea/opr", out=tmp_path / "run", progress=False, **settings)
    assert not (tmp_path / "run").exists()


def test_a_removed_setting_is_answered_with_its_successor(monkeypatch):
    monkeypatch.setitem(REMOVED, "gone", "set seed instead")
    monkeypatch.setitem(REMOVED, "opr.gone", "set opr.bc_coef instead")
    for settings, line in (
        ({"gone": 3}, "gone no longer exists: set seed"),
        ({"opr": {"gone": 3}}, "opr.gone no longer"),
    ):
        with pytest.raises(UnknownName, match=f"^{line}"):
            optimist.train("deepsea/opr", **settings)


def test_a_finished_run_is_resumed_to_its_summary(run):
    assert optimist.resume(run[0], progress=False) == run[1]


def test_suggestions_include_the_presets_own_keywords():
    with pytest.raises(UnknownName, match=r"no setting 'siz'; did you mean 'size'\?"):
        optimist.train("deepsea/opr", siz=3)


@pytest.mark.parametrize(
    "settings",
    [
        {"opr": {"percentile": 90, "bc_coef": 0.3}},
        {"opr.percentile": 90, "opr.bc_coef": 0.3},
        {"opr.percentile": 90, "opr": {"bc_coef": 0.3}},
        {"opr.percentile": 90.0, "opr": optimist.OPRConfig(bc_coef=0.3)},
        {"env.kwargs.size": 5, "opr": {"percentile": 90}, "opr.bc_coef": 0.3},
    ],
)
def test_a_setting_is_given_by_its_part_or_by_its_full_name(settings, monkeypatch):
    monkeypatch.setattr("optimist.training.trainer.train", lambda config, out, progress: config)
    for config in (optimist.train("deepsea/opr", settings), optimist.train("deepsea/opr", **settings)):
        assert config.opr == optimist.OPRConfig(percentile=90, bc_coef=0.3)
        assert config.env.kwargs["size"] == settings.get("env.kwargs.size", 12)


def test_a_keyword_counts_more_than_a_setting(monkeypatch):
    monkeypatch.setattr("optimist.training.trainer.train", lambda config, out, progress: config)
    assert optimist.train("deepsea/opr", {"seed": 1, "size": 6}, seed=2).seed == 2


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"percentile": 90}, r"no setting 'percentile'; write opr={'percentile': 90}"),
        ({"rollout_steps": 8}, r"no setting 'rollout_steps'; write algorithm={'rollout_steps': 8}"),
        ({"opt.percentile": 90}, r"no setting 'opt.percentile'; write opr={'percentile': 90}"),
        ({"opr.percentil": 90}, r"no setting 'opr.percentil'; did you mean 'opr.percentile'\?"),
        ({"seet": 3}, r"no setting 'seet'; did you mean 'seed'\?"),
        ({"total_steps": 1.5}, "total_steps must be a whole number, got 1.5"),
    ],
)
def test_a_setting_that_is_part_of_another_is_shown_as_the_argument_to_write(settings, line):
    with pytest.raises(OptimistError, match=f"^{line}$"):
        optimist.train("deepsea/opr", **settings)


def test_whole_numbers_may_be_floats(monkeypatch):
    monkeypatch.setattr("optimist.training.trainer.train", lambda config, out, progress: config)
    config = optimist.train("deepsea/opr", total_steps=1e5, size=1e1, opr={"capacity_episodes": 1e3})
    assert (config.total_steps, config.env.kwargs, config.opr.capacity_episodes) == (100_000, {"size": 10}, 1000)
    assert type(config.total_steps) is type(config.env.kwargs["size"]) is int


def test_an_agent_says_what_it_is(run):
    path, summary = run
    assert repr(optimist.load(path)) == f"Agent(ppo, DeepSea-4, {summary['steps']:,} steps, run={str(path)!r})"


def test_predict_is_that_of_stable_baselines3(run):
    agent = optimist.load(run[0])
    action, state = agent.predict(3, deterministic=True)
    assert (action.shape, state) == ((), None)
    assert action == agent.act(3)
    state = (np.zeros(2),)
    actions, same = agent.predict(np.arange(16), state=state, episode_start=np.ones(16, bool), deterministic=True)
    assert same is state
    assert (actions == agent.act(np.arange(16))).all()
    sampled = {int(action) for _ in range(50) for action in agent.predict(np.zeros(8, int))[0]}
    assert sampled == {0, 1}


def test_stable_baselines3_evaluates_an_agent(tmp_path):
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    config = dataclasses.replace(DEEPSEA, env=EnvConfig(id="CartPole-v1", num_envs=2), total_steps=64)
    train(config, tmp_path / "run", progress=False)
    agent = optimist.load(tmp_path / "run")
    returns, lengths = evaluation.evaluate_policy(
        agent, gymnasium.make("CartPole-v1"), n_eval_episodes=3, return_episode_rewards=True, warn=False
    )
    assert returns == lengths  # CartPole pays 1 a step
    assert len(returns) == 3
