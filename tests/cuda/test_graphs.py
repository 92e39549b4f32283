"""Atari runs with captured graphs agree with eager runs, and resume."""

from __future__ import annotations

import dataclasses
import shutil
from contextlib import closing, contextmanager

import numpy as np
import pytest
import torch

from optimist.algorithms.dqn import DQN
from optimist.algorithms.ppo import PPO
from optimist.algorithms.rainbow import Rainbow
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.advantages import gae
from optimist.core.config import OPRConfig
from optimist.cuda.learning import CapturedDQN, CapturedPPO, CapturedRainbow
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.cuda.conftest import needs_cuda
from tests.cuda.test_acting import act
from tests.cuda.test_value_graphs import NATURE, RAINBOW
from tests.metrics import without_time

ATARI = RunConfig(
    # An episode takes 20 steps, in which points are scored, so that the memory fills.
    env=EnvConfig(
        id="optimist/Atari-v0",
        num_envs=4,
        kwargs={"game": "Asterix", "sticky": 0.25, "max_frames": 80, "num_workers": 2},
        clip_rewards=True,
        frame_stack=4,
    ),
    network=NetworkConfig(kind="nature_cnn", cnn_features=64),
    algorithm=PPOConfig(
        rollout_steps=24,
        minibatch_size=32,
        epochs=2,
        learning_rate_schedule="linear",
        entropy_coef_final=0.0,
    ),
    opr=OPRConfig(capacity_transitions=200, capacity_episodes=20, bc_batch_size=16),
    tensorboard=False,
)
BATCH = 96
"""Steps of an update."""
PLAIN = OPRConfig(enabled=False)
PAPER = dataclasses.replace(OPRConfig.paper("atari"), bc_phase_interval=100, capacity_transitions=200)
LUCK = dataclasses.replace(ATARI.opr, bc_luck=0.25)


def config_for(device, updates, **changes):
    """ATARI on a device, with so many updates; a few on a CPU."""
    number = updates if device == "cuda" else min(updates, 4)
    return dataclasses.replace(ATARI, device=device, total_steps=number * BATCH, **changes)


@contextmanager
def make_trainer(config, path):
    with RunDir.create(path, config) as run, closing(Trainer(config, run)) as trainer:
        yield trainer


def metrics_of(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


def metrics_of_both(config, path):
    """Metrics of a run with captured graphs and of an eager one."""
    for graphs in ("auto", "off"):
        train(dataclasses.replace(config, graphs=graphs), path / graphs, progress=False)
    captured, eager = metrics_of(path / "auto"), metrics_of(path / "off")
    assert [set(line) for line in captured] == [set(line) for line in eager]
    return captured, eager


def assert_close(found, expected, *, rel, abs):
    for line, reference in zip(found, expected, strict=True):
        for name, value in reference.items():
            assert line[name] == pytest.approx(value, rel=rel, abs=abs, nan_ok=True), (name, reference["step"])


@pytest.mark.parametrize("opr", [PLAIN, ATARI.opr, PAPER, LUCK], ids=["ppo", "opr", "paper", "luck"])
def test_captured_and_eager_runs_agree(device, tmp_path, opr):
    """Closely for three updates of six gradient steps; later a last digit of a sum may have changed an action."""
    captured, eager = metrics_of_both(config_for(device, 10, opr=opr), tmp_path)
    assert_close(captured[:3], eager[:3], rel=2e-2, abs=2e-3)
    assert any(line.get("opr/memory_episodes", 0) > 0 for line in captured) == opr.enabled


@pytest.mark.parametrize("learner", [NATURE, RAINBOW], ids=["nature", "rainbow"])
def test_captured_and_eager_runs_of_value_based_learners_agree(device, tmp_path, learner):
    """With ε = 1 both take the same actions; what they learn is compared."""
    learner = dataclasses.replace(
        learner, epsilon_start=1.0, epsilon_final=1.0, rollout_steps=24, replay_capacity=600, learning_starts=190
    )
    captured, eager = metrics_of_both(config_for(device, 10, algorithm=learner), tmp_path)
    assert "loss/td" in captured[-1]
    assert_close(captured, eager, rel=5e-2, abs=5e-3)


@pytest.mark.parametrize(
    ("settings", "captured", "eager"),
    [(PPOConfig(), CapturedPPO, PPO), (DQNConfig(), CapturedDQN, DQN), (RainbowConfig(), CapturedRainbow, Rainbow)],
    ids=["ppo", "dqn", "rainbow"],
)
def test_run_learns_and_acts_by_graphs_unless_they_are_off(device, tmp_path, settings, captured, eager):
    config = config_for(device, 10, algorithm=dataclasses.replace(settings, rollout_steps=24))
    for graphs, expected in (("auto", captured), ("off", eager)):
        with make_trainer(dataclasses.replace(config, graphs=graphs), tmp_path / graphs) as trainer:
            trainer.one_update()
            assert type(trainer.algorithm) is expected
            assert (trainer.collector.actor.graph is not None) == (graphs == "auto")


def test_captured_gradient_step_is_the_eager_one(device, tmp_path):
    """The same weights, moments and rows give the same weights; rows of M are among them."""
    with make_trainer(config_for(device, 10), tmp_path / "run") as trainer:
        for _ in range(4):
            trainer.one_update()
        rollout, learner = trainer.collector.collect(), trainer.algorithm
        assert isinstance(learner, CapturedPPO)
        assert learner.captured
        advantages, returns = gae(rollout.rewards, rollout.values, rollout.next_values, rollout.dones, 0.99, 0.95)
        batch = rollout.flatten(advantages, returns)
        minibatch = next(iter(batch.minibatches(1, 32, torch.Generator(device).manual_seed(1))))
        good = next(learner.anchor.sample([4], learner.policy))
        assert good is not None
        tensors = [learner.flat.data, *learner.optimizer.state[learner.flat].values()]
        before = [tensor.clone() for tensor in tensors]
        terms = learner.learn(minibatch, good)
        after = learner.flat.detach().clone()
        for tensor, old in zip(tensors, before, strict=True):
            tensor.copy_(old)
        expected = PPO.learn(learner, minibatch, good)
        assert float(terms.policy) == pytest.approx(expected.policy.item(), abs=1e-5)
        assert float(terms.anchor) == pytest.approx(expected.anchor.item(), abs=1e-5)
        torch.testing.assert_close(after, learner.flat.detach(), rtol=1e-3, atol=2e-5)
        assert float((after - before[0]).abs().max()) > 1e-5


def test_captured_actions_follow_the_policys_distribution(device, tmp_path):
    with make_trainer(config_for(device, 10), tmp_path / "run") as trainer:
        collector, actor = trainer.collector, trainer.collector.actor
        torch.manual_seed(0)
        with torch.no_grad():
            trainer.policy.actor.weight.normal_(std=0.5)
            trainer.policy.actor.bias.normal_(std=0.5)
        obs = collector.host_obs.to(device)
        probabilities = trainer.policy.action_params(obs).softmax(-1).detach()
        counts = torch.zeros_like(probabilities)
        slots, rounds, steps = np.arange(len(obs)), 200 if device == "cuda" else 40, collector.num_steps
        for _ in range(rounds):
            actor.start_rollout()
            for t in range(steps):
                for batch in np.split(slots, len(slots) // actor.batch_size):
                    actions = torch.from_numpy(act(actor, batch, t * len(obs) + batch)).to(device)
                    counts[batch] += torch.nn.functional.one_hot(actions, counts.shape[1])
        draws = rounds * steps
        error = (counts / draws - probabilities).abs()
        deviation = (probabilities * (1 - probabilities) / draws).sqrt().clamp_min(1e-4)
        assert float((error / deviation).max()) < 4.5


def test_captured_run_resumes(device, tmp_path):
    """From its checkpoint it continues as before; on a GPU closely for two updates."""
    config = config_for(device, 20)
    half = config.total_steps // 2
    train(dataclasses.replace(config, checkpoint_every=half), tmp_path / "whole", progress=False)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    (tmp_path / "cut" / "summary.json").unlink()
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / f"step-{config.total_steps}")
    resume(tmp_path / "cut", progress=False)
    late, again = ([line for line in metrics_of(tmp_path / name) if line["step"] > half] for name in ("whole", "cut"))
    assert (
        [line["step"] for line in again]
        == [line["step"] for line in late]
        == [*range(half + BATCH, config.total_steps + 1, BATCH)]
    )
    if device == "cpu":
        assert_close(again, late, rel=0, abs=0)
    else:
        assert_close(again[:2], late[:2], rel=5e-2, abs=5e-3)


@needs_cuda
def test_tensors_of_the_learner_are_on_the_gpu(tmp_path):
    with make_trainer(config_for("cuda", 10), tmp_path / "run") as trainer:
        for _ in range(4):
            trainer.one_update()
        memory = trainer.algorithm.anchor.memory
        assert memory.pools["frames"].is_cuda
        assert memory.pools["frames"].dtype == torch.uint8
        assert trainer.collector.rollout_obs.is_cuda
        assert trainer.collector.host_obs.is_pinned()
        convolution = trainer.policy.trunk[0].weight
        assert convolution.is_contiguous(memory_format=torch.channels_last)
