"""OPR with every strength at zero trains the same weights as the plain learner, bit for bit."""

from __future__ import annotations

import pytest
import torch

from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.anchor import NoAnchor
from optimist.core.config import OPRConfig
from optimist.envs.make import make_envs
from optimist.rollout.collector import Collector
from optimist.training.build import make_algorithm, make_anchor, make_policy

ZERO = {"shaping_scale": 0.0, "bc_coef": 0.0, "augment_share": 0.0, "bc_phase_interval": 0}
UPDATES = 6
LEARNERS = {
    "ppo": PPOConfig(rollout_steps=16, minibatch_size=24, epochs=2, learning_rate=1e-2),
    "ppo, whole batch": PPOConfig(rollout_steps=16, minibatch_size=999, normalize_advantages="batch", value_clip=0.2),
    "ppo, target KL": PPOConfig(rollout_steps=16, minibatch_size=16, learning_rate=3e-2, target_kl=0.01),
    "a2c": A2CConfig(rollout_steps=8, learning_rate=1e-2, learning_rate_schedule="linear"),
    "a2c, standardised": A2CConfig(rollout_steps=8, normalize_advantages="batch"),
}
TASKS = {
    "DeepSea": EnvConfig(id="optimist/DeepSea-v0", num_envs=4, kwargs={"size": 4}),
    "CartPole": EnvConfig(id="CartPole-v1", num_envs=4),  # next-step autoreset: reset steps
    "Pendulum": EnvConfig(id="Pendulum-v1", num_envs=4),
}


def train(env, learner, opr):
    """Weights, and every metric of every update, of a few updates."""
    config = RunConfig(env=env, algorithm=learner, opr=opr, network=NetworkConfig(hidden=(16, 16)), seed=3)
    envs = make_envs(config.env, seed=config.seed)
    policy = make_policy(config, envs)
    anchor = make_anchor(config)
    algorithm = make_algorithm(config, policy, anchor)
    collector = Collector(envs, env, policy, learner.rollout_steps, torch.Generator().manual_seed(1))
    collector.restart(0)
    metrics = [algorithm.update(collector.collect(progress=i / UPDATES)) for i in range(UPDATES)]
    envs.close()
    losses = [{k: v for k, v in m.items() if not k.startswith("opr/")} for m in metrics]
    return policy.state_dict(), losses, anchor


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("task", TASKS)
def test_zero_strength_equals_the_plain_learner_bit_for_bit(learner, task):
    plain, plain_losses, none = train(TASKS[task], LEARNERS[learner], OPRConfig(enabled=False))
    zero, zero_losses, opr = train(TASKS[task], LEARNERS[learner], OPRConfig(**ZERO))
    assert isinstance(none, NoAnchor)
    if task == "DeepSea":
        assert opr.memory.episodes, "no episode was admitted"
    assert all(zero[name].equal(plain[name]) for name in plain)
    assert zero_losses == plain_losses


def test_a_cloned_reference_makes_no_difference_at_zero_strength():
    plain, _, _ = train(TASKS["DeepSea"], LEARNERS["ppo"], OPRConfig(enabled=False))
    zero, _, opr = train(TASKS["DeepSea"], LEARNERS["ppo"], OPRConfig(**ZERO, reference="cloned"))
    assert opr.memory.episodes
    assert all(zero[name].equal(plain[name]) for name in plain)


@pytest.mark.parametrize(
    "strength",
    [
        {"bc_coef": 0.1},
        {"augment_share": 0.5},
        {"augment_share": 0.5, "augment_rows": "full"},
        {"bc_phase_interval": 1},
        {"shaping_scale": 0.5, "reference": "cloned"},
    ],
    ids=lambda settings: "-".join(settings),
)
@pytest.mark.parametrize("learner", ["ppo", "a2c"])
def test_every_strength_on_its_own_makes_a_difference(strength, learner):
    plain, _, _ = train(TASKS["DeepSea"], LEARNERS[learner], OPRConfig(enabled=False))
    anchored, _, _ = train(TASKS["DeepSea"], LEARNERS[learner], OPRConfig(**(ZERO | strength)))
    assert any(not anchored[name].equal(plain[name]) for name in plain)
