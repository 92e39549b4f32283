"""SIL at zero weight trains the same weights as the plain learner, and as OPR alone, bit for bit."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from optimist.config import A2CConfig, ACPERConfig, CardiffPPOConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.config.sil import SILConfig
from optimist.core.config import OPRConfig
from optimist.envs.make import make_envs
from optimist.rollout.collector import Collector
from optimist.training.build import make_algorithm, make_anchor, make_policy

UPDATES = 6
LEARNERS = {
    "a2c": A2CConfig(rollout_steps=8, learning_rate=1e-2),
    "ppo": PPOConfig(rollout_steps=16, minibatch_size=24, epochs=2, learning_rate=1e-2),
    "cardiff-ppo": CardiffPPOConfig(rollout_steps=16),
    "acper": ACPERConfig(rollout_steps=8, learning_rate=1e-2, replay_start=32, replay_segments=4),
}
ON = SILConfig(enabled=True, admission="any", start_transitions=1, batch_size=16)
ENV = EnvConfig(id="optimist/DeepSea-v0", num_envs=4, kwargs={"size": 4}, truncation="end")


def train(learner, opr=False, **changes):
    """Weights and losses after a few updates."""
    config = RunConfig(
        env=ENV, algorithm=learner, network=NetworkConfig(hidden=(16,)), opr=OPRConfig(enabled=opr), seed=3
    )
    config = dataclasses.replace(config, **changes)
    envs = make_envs(config.env, seed=config.seed)
    policy = make_policy(config, envs)
    anchor = make_anchor(config)
    algorithm = make_algorithm(config, policy, anchor)
    collector = Collector(envs, config.env, policy, learner.rollout_steps, torch.Generator().manual_seed(1))
    collector.restart(0)
    metrics = [algorithm.update(collector.collect()) for _ in range(UPDATES)]
    return policy.state_dict(), [{k: v for k, v in m.items() if not k.startswith("sil/")} for m in metrics], anchor


@pytest.mark.parametrize("opr", [False, True], ids=["alone", "with OPR"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_sil_with_a_coefficient_of_0_changes_nothing_bit_for_bit(learner, opr):
    plain, plain_losses, _ = train(LEARNERS[learner], opr)
    zero, zero_losses, anchor = train(LEARNERS[learner], opr, sil=dataclasses.replace(ON, coef=0.0))
    sil = anchor.anchors["sil"] if opr else anchor
    assert sil.past.num_transitions > 0, "no step was stored"
    assert all(zero[name].equal(plain[name]) for name in plain)
    assert zero_losses == plain_losses


@pytest.mark.parametrize("opr", [False, True], ids=["alone", "with OPR"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_sil_with_a_coefficient_above_0_makes_a_difference(learner, opr):
    plain, _, _ = train(LEARNERS[learner], opr)
    imitating, losses, _ = train(LEARNERS[learner], opr, sil=ON)
    assert any(not imitating[name].equal(plain[name]) for name in plain)
    assert "loss/sil" in losses[-1]
