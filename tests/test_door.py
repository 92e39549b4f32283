"""The Python door: train from a preset, load the agent, act."""

import dataclasses

import pytest
import torch

import optimist
from optimist import door
from optimist.config import EnvConfig, NetworkConfig, PPOConfig
from optimist.errors import ShapeMismatch, UnknownName
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import train
from tests.training.test_loop import DEEPSEA, weights


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("door") / "run"
    return path, train(DEEPSEA, path, progress=False)


def test_an_agent_acts_on_one_observation_or_on_many(run):
    agent = door.load(run[0])
    single, batch = agent.act(0), agent.act([0, 5, 10])
    assert type(single) is int
    assert (batch.shape, int(batch[0])) == ((3,), single)
    sampled = {agent.act(0, greedy=False) for _ in range(60)}
    assert sampled == {0, 1}


def test_an_agent_is_the_policy_that_was_trained(run):
    agent = door.load(run[0])
    state, obs = weights(run[0]), torch.arange(16)
    assert all(agent.policy.state_dict()[name].equal(value) for name, value in state.items())
    assert agent.act(obs.numpy()).tolist() == agent.policy.act_greedily(obs).tolist()


def test_an_agent_says_which_observation_it_expects(run):
    with pytest.raises(ShapeMismatch, match=r"obs is \[2, 2\]; expected \[\] or a batch of them"):
        door.load(run[0]).act([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("obs", "message"),
    [
        (16, "obs holds 16 to 16; the states are 0 to 15"),
        ([3, -1], "obs holds -1 to 3; the states are 0 to 15"),
        (0.5, "obs is of float64; expected integers"),
    ],
)
def test_a_state_that_does_not_exist_is_refused(run, obs, message):
    with pytest.raises(ShapeMismatch, match=message):
        door.load(run[0]).act(obs)


def test_actions_of_an_agent_lie_within_the_environments_bounds(tmp_path):
    config = dataclasses.replace(
        DEEPSEA,
        env=EnvConfig(id="Pendulum-v1", num_envs=2),
        network=NetworkConfig(hidden=(8,), log_std=3.0),
        algorithm=PPOConfig(rollout_steps=8),
        total_steps=16,
    )
    train(config, tmp_path / "run", progress=False)
    agent = door.load(tmp_path / "run")
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


def test_the_public_names_are_there():
    assert all(getattr(optimist, name) is not None for name in optimist.__all__)


def test_a_wrong_setting_is_compared_with_the_presets_own_too():
    with pytest.raises(UnknownName, match=r"no setting 'siz'; did you mean 'size'\?"):
        optimist.train("deepsea/opr", siz=3)
