"""Action masks and privileged critics: masked actions are never taken, and only the critic sees the true state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from cage2.expert.features import NUM_ACTOR_BITS, NUM_FEATURES, NUM_TRUTH
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.envs.make import make_envs
from optimist.errors import ConfigError
from optimist.networks.actor_critic import ActorCritic, make_actor_critic
from optimist.rollout.collector import Collector
from optimist.training.build import make_algorithm, make_anchor, make_policy

SEEN, ACTIONS, TRUTH = 5, 4, 3
SPACE = spaces.Box(0, 1, (SEEN + ACTIONS + TRUTH,), np.int8)
CONFIG = NetworkConfig(hidden=(16,), privileged=TRUTH, action_mask=True)


def network(config: NetworkConfig = CONFIG) -> ActorCritic:
    torch.manual_seed(0)
    return make_actor_critic(SPACE, spaces.Discrete(ACTIONS), config)


def observations(number: int = 200) -> torch.Tensor:
    obs = torch.randint(0, 2, (number, SPACE.shape[0]), generator=torch.Generator().manual_seed(1), dtype=torch.int8)
    obs[:, SEEN] = 1  # one action is always allowed
    return obs


def test_masked_actions_have_probability_zero_and_finite_logarithms() -> None:
    policy, obs = network(), observations()
    actions = policy.act(obs, torch.Generator().manual_seed(2))
    rows = torch.arange(len(obs))
    assert (obs[rows, SEEN + actions] == 1).all()
    assert (obs[rows, SEEN + policy.act_greedily(obs)] == 1).all()
    every = torch.stack([policy.log_prob(obs, torch.full((len(obs),), action)) for action in range(ACTIONS)], 1)
    assert torch.isfinite(every).all()
    assert (every.exp()[obs[:, SEEN : SEEN + ACTIONS] == 0] == 0).all()
    torch.testing.assert_close(every.exp().sum(1), torch.ones(len(obs)))
    assert torch.isfinite(policy.log_prob(obs, actions)).all()


def test_entropy_and_gradient_are_of_allowed_actions() -> None:
    policy = network()
    obs = torch.zeros((1, SPACE.shape[0]), dtype=torch.int8)
    obs[0, [SEEN, SEEN + 2]] = 1
    logp, entropy, _ = policy.evaluate(obs, torch.tensor([0]))
    p = logp.exp()
    torch.testing.assert_close(entropy, -(p * p.log() + (1 - p) * (1 - p).log()))
    (logp + entropy).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in policy.actor.parameters())


def test_only_the_critic_sees_the_last_entries() -> None:
    policy, obs = network(), observations()
    changed = obs.clone()
    changed[:, -TRUTH:] = 1 - changed[:, -TRUTH:]
    with torch.no_grad():
        torch.testing.assert_close(policy.actor(policy.features(obs)), policy.actor(policy.features(changed)))
        assert (policy.value(obs) != policy.value(changed)).any()
        short = policy.actor(policy.features(obs[:, : SEEN + ACTIONS]))
        torch.testing.assert_close(short, policy.actor(policy.features(obs)))


def test_without_the_options_the_network_is_the_plain_one() -> None:
    plain = NetworkConfig(hidden=(16,))
    names = set(network(plain).state_dict())
    assert not any("actor.actor" in name for name in names)
    assert network(replace(plain, privileged=TRUTH)).actor.masked == 0


@pytest.mark.parametrize(
    ("space", "actions", "config", "message"),
    [
        (SPACE, spaces.Box(-1, 1, (2,)), CONFIG, "one choice among several"),
        (SPACE, spaces.Discrete(ACTIONS), replace(CONFIG, privileged=8), "something to see"),
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), spaces.Discrete(3), CONFIG, "vectors"),
    ],
)
def test_options_that_do_not_fit_are_errors(
    space: spaces.Box, actions: spaces.Space, config: NetworkConfig, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_actor_critic(space, actions, config)


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
@pytest.mark.parametrize("privileged", [0, NUM_TRUTH - 1])
def test_an_actor_that_sees_the_true_state_is_an_error(vectorization: str, privileged: int) -> None:
    config = RunConfig(
        env=EnvConfig(id="optimist/CAGE2Expert-v0", num_envs=2, vectorization=vectorization),
        network=NetworkConfig(hidden=(16,), privileged=privileged, action_mask=True),
    )
    with pytest.raises(ConfigError, match=f"must be {NUM_TRUTH} for optimist/CAGE2Expert-v0, got {privileged}:"):
        make_policy(config, make_envs(config.env, seed=0))


def test_ppo_with_opr_never_takes_a_masked_action() -> None:
    config = RunConfig(
        env=EnvConfig(
            id="optimist/CAGE2Expert-v0", num_envs=16, kwargs={"red": "mixed", "horizon": 20}, truncation="end"
        ),
        network=NetworkConfig(hidden=(16,), privileged=NUM_TRUTH, action_mask=True),
        algorithm=PPOConfig(rollout_steps=20, minibatch_size=160, entropy_coef=0.05, entropy_coef_final=0.01),
        opr=OPRConfig(return_window=20),
    )
    envs = make_envs(config.env, seed=0)
    policy = make_policy(config, envs)
    algorithm = make_algorithm(config, policy, make_anchor(config))
    collector = Collector(envs, config.env, policy, 20, torch.Generator().manual_seed(0))
    collector.restart(seed=0)
    for update in range(4):
        rollout = collector.collect(progress=update / 4)
        allowed = rollout.obs[..., NUM_FEATURES:NUM_ACTOR_BITS].gather(-1, rollout.actions.unsqueeze(-1))
        assert (allowed == 1).all()
        metrics = algorithm.update(rollout)
    assert metrics["opr/memory_transitions"] > 0
    assert algorithm.entropy_coef == pytest.approx(0.05 + (0.01 - 0.05) * 0.75)
