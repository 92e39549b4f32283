"""A config becomes policy, anchor, learner and torch settings."""

import dataclasses
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch

from optimist.algorithms.a2c import A2C
from optimist.algorithms.ppo import PPO
from optimist.config import A2CConfig, EnvConfig, PPOConfig, RunConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.anchor import NoAnchor
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.envs.make import make_envs
from optimist.errors import ConfigError
from optimist.training.build import make_algorithm, make_anchor, make_policy, prepare_torch, uses_graphs
from optimist.training.describe import opr_bytes

CONFIG = RunConfig(env=EnvConfig(id="optimist/DeepSea-v0", num_envs=2, kwargs={"size": 4}))


@pytest.fixture
def envs():
    return make_envs(CONFIG.env, seed=0)


def test_the_network_depends_on_the_seed_and_the_global_generator_is_unchanged(envs):
    state = torch.get_rng_state()
    one, same = make_policy(CONFIG, envs), make_policy(CONFIG, envs)
    other = make_policy(dataclasses.replace(CONFIG, seed=1), envs)
    assert torch.get_rng_state().equal(state)
    assert all(a.equal(b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not all(a.equal(b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_the_config_names_learner_and_anchor(envs):
    policy = make_policy(CONFIG, envs)
    assert isinstance(make_anchor(CONFIG), NoAnchor)
    opr = make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig(), algorithm=A2CConfig(gamma=0.7, gae_lambda=0.6)))
    assert isinstance(opr, OptimisticRegularizer)
    assert (opr.gamma, opr.gae_lambda, opr.memory.gamma) == (0.7, 0.6, 0.7)
    assert isinstance(make_algorithm(CONFIG, policy, NoAnchor()), PPO)
    a2c = dataclasses.replace(CONFIG, algorithm=A2CConfig())
    assert isinstance(make_algorithm(a2c, policy, NoAnchor()), A2C)


def test_stacked_frames_are_stored_once_and_counted_once():
    box = gymnasium.spaces.Box(0, 255, (4, 40, 40), np.uint8)
    envs = SimpleNamespace(single_observation_space=box, single_action_space=gymnasium.spaces.Discrete(3))
    opr = OPRConfig(capacity_transitions=1000, capacity_episodes=10, max_episode_steps=100)
    stacked = dataclasses.replace(CONFIG, opr=opr, env=EnvConfig(num_envs=2, frame_stack=4))
    plain = dataclasses.replace(CONFIG, opr=opr, env=EnvConfig(num_envs=2))
    anchor = make_anchor(stacked)
    assert (anchor.memory.frame_stack, anchor.builder.frame_stack) == (4, 4)
    assert make_anchor(plain).memory.frame_stack == 1
    assert opr_bytes(stacked, envs) < 0.3 * opr_bytes(plain, envs)


def test_learner_and_anchor_have_different_seeds(envs):
    config = dataclasses.replace(CONFIG, opr=OPRConfig())
    anchor = make_anchor(config)
    learner = make_algorithm(config, make_policy(config, envs), anchor)
    assert learner.generator.initial_seed() != anchor.generator.initial_seed()


def test_an_unavailable_device_is_named_in_the_error():
    for name in ("gpu", "meta", "mps"):
        with pytest.raises(ConfigError, match=f"device must be cpu, cuda or cuda:N, got '{name}'"):
            prepare_torch(RunConfig(device=name))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="torch sees no CUDA device"):
            prepare_torch(RunConfig(device="cuda"))


def test_the_configured_gpu_becomes_the_current_device(monkeypatch):
    """Streams, events and captured graphs use the current device."""
    current = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    prepare_torch(RunConfig(device="cuda:1"))
    assert current == [torch.device("cuda:1")]
    prepare_torch(RunConfig(device="cuda"))
    prepare_torch(RunConfig(device="cpu"))
    assert len(current) == 1
    with pytest.raises(ConfigError, match="'cuda:2' is not available: torch sees cuda:0 to cuda:1"):
        prepare_torch(RunConfig(device="cuda:2"))


def test_determinism_follows_the_config():
    try:
        for wanted in (True, True, False, False, True):
            prepare_torch(RunConfig(deterministic=wanted))
            assert torch.are_deterministic_algorithms_enabled() is wanted
    finally:
        prepare_torch(RunConfig(deterministic=False))


def test_the_number_of_threads_follows_the_config():
    before = torch.get_num_threads()
    try:
        prepare_torch(RunConfig(threads=2, algorithm=PPOConfig()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_graphs_are_used_on_a_gpu_by_learners_that_need_no_value_on_the_host():
    def captured(algorithm, **changes):
        return uses_graphs(RunConfig(algorithm=algorithm, **({"device": "cuda"} | changes)), NoAnchor())

    assert all(captured(algorithm) for algorithm in (PPOConfig(), DQNConfig(), RainbowConfig()))
    assert not any(captured(algorithm) for algorithm in (A2CConfig(), PPOConfig(target_kl=0.1)))
    assert not captured(DQNConfig(replay_device="cpu"))
    assert not captured(DQNConfig(), graphs="off")
    assert not captured(DQNConfig(), device="cpu")
