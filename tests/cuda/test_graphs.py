"""On a GPU: graphs do what the same work does kernel by kernel."""

from __future__ import annotations

import dataclasses
import gc
import shutil

import numpy as np
import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.cuda.graph import record
from optimist.tracking.metrics import without_time
from optimist.tracking.metrics_log import read_metrics
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import Trainer, resume, train
from tests.rollout.test_decider import assert_decisions_are_each_game_s_own, decide, make_decider

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

ATARI = RunConfig(
    total_steps=1_920,
    device="cuda",
    # A game every 20 steps, with points in it, so that the memory fills.
    env=EnvConfig(
        id="optimist/Atari-v0",
        num_envs=4,
        kwargs={"game": "Asterix", "sticky": 0.25, "max_frames": 80, "lanes": 2},
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
    opr=OPRConfig(capacity_transitions=200, capacity_episodes=20, bc_batch_size=16, bc_schedule="linear"),
    checkpoint_every=960,
    tensorboard=False,
)
LITERAL = dataclasses.replace(OPRConfig.paper("atari"), bc_phase_interval=100, capacity_transitions=200)
BEYOND_LUCK = dataclasses.replace(ATARI.opr, bc_luck=0.25)
PLAIN = OPRConfig(enabled=False)


def lines(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


@pytest.mark.parametrize("opr", [PLAIN, ATARI.opr, LITERAL, BEYOND_LUCK], ids=["ppo", "opr", "literal", "luck"])
def test_graphed_and_eager_runs_agree(tmp_path, opr):
    """Closely for three updates of six gradient steps; later the last bits of a sum may have changed a drawn action."""
    config = dataclasses.replace(ATARI, opr=opr, total_steps=960, deterministic=False)
    found = {}
    for graphs in ("auto", "off"):
        train(dataclasses.replace(config, graphs=graphs), tmp_path / graphs, progress=False)
        found[graphs] = lines(tmp_path / graphs)
    assert len(found["auto"]) == len(found["off"]) == 10
    for graphed, eager in zip(found["auto"], found["off"], strict=True):
        assert set(graphed) == set(eager)
    for graphed, eager in zip(found["auto"][:3], found["off"][:3], strict=True):
        for name, value in eager.items():
            assert graphed[name] == pytest.approx(value, rel=2e-2, abs=2e-3, nan_ok=True), (name, eager["step"])
    assert any(line.get("opr/memory_episodes", 0) > 0 for line in found["auto"]) == opr.enabled


def test_a_graphed_step_is_the_eager_step(tmp_path):
    """From the same weights, moments and rows: the same weights afterwards; rows of M among them."""
    with RunDir.create(tmp_path / "run", ATARI) as run:
        trainer = Trainer(ATARI, run)
        for _ in range(4):
            rollout = trainer.collector.collect()
            trainer.algorithm.update(rollout)
        rollout = trainer.collector.collect()
        graphed = trainer.algorithm
        assert isinstance(graphed, PPO)
        assert graphed.graphed is not None
        assert graphed.graphed.steps
        state = graphed.state_dict()
        state = {**state, "policy": {k: v.clone() for k, v in state["policy"].items()}}
        before = graphed.flat.detach().clone()
        moments = {k: v.clone() for k, v in graphed.optimizer.state[graphed.flat].items()}
        from optimist.core.advantages import gae

        advantages, returns = gae(rollout.rewards, rollout.values, rollout.next_values, rollout.dones, 0.99, 0.95)
        batch = graphed.anchor.augment(rollout.flatten(advantages, returns), graphed.policy)
        minibatch = next(iter(batch.minibatches(1, 32, torch.Generator("cuda").manual_seed(1))))
        assert minibatch.good is not None
        terms = graphed.graphed.take(minibatch)
        after = graphed.flat.detach().clone()
        graphed.flat.data.copy_(before)
        for name, moment in moments.items():
            graphed.optimizer.state[graphed.flat][name].copy_(moment)
        eager = graphed.losses(minibatch)
        graphed.step(eager.total)
        assert float(terms.policy) == pytest.approx(eager.policy.item(), abs=1e-5)
        assert float(terms.anchor) == pytest.approx(eager.anchor.item(), abs=1e-5)
        torch.testing.assert_close(after, graphed.flat.detach(), rtol=1e-3, atol=2e-5)
        assert float((after - before).abs().max()) > 1e-5
        trainer.envs.close()


def test_the_graphed_sampler_draws_from_the_policy(tmp_path):
    with RunDir.create(tmp_path / "run", ATARI) as run:
        trainer = Trainer(ATARI, run)
        collector, decider = trainer.collector, trainer.collector.decider
        torch.manual_seed(0)
        with torch.no_grad():
            trainer.policy.actor.weight.normal_(std=0.5)
            trainer.policy.actor.bias.normal_(std=0.5)
        obs = collector.host_obs.cuda()
        probs = trainer.policy.action_params(obs).softmax(-1)
        counts = torch.zeros_like(probs)
        games, rounds, steps = np.arange(len(obs)), 200, collector.num_steps
        for _ in range(rounds):
            decider.begin()
            for t in range(steps):
                actions = torch.from_numpy(decide(decider, games, t * len(obs) + games)).cuda()
                counts.scatter_add_(1, actions[:, None], torch.ones_like(counts[:, :1]))
        draws = rounds * steps
        error = (counts / draws - probs).abs()
        assert float((error / (probs * (1 - probs) / draws).sqrt().clamp_min(1e-4)).max()) < 4.5
        trainer.envs.close()


def test_a_recorded_decision_does_not_depend_on_who_else_is_decided_for():
    """Else a run would depend on who is ready first."""
    assert_decisions_are_each_game_s_own(make_decider("cuda", graphs=True))


def test_a_graph_that_goes_does_not_spoil_one_that_is_being_recorded():
    """As those of a run before in the same process: a learner and its graphs know each other."""

    class Run:
        pass

    numbers = torch.zeros(3, device="cuda")
    old = Run()
    old.itself, old.graph = old, record(lambda: numbers.add_(1.0))
    del old
    thresholds = gc.get_threshold()
    gc.set_threshold(1)  # whatever is made makes it look for garbage
    try:
        graph = record(lambda: [[] for _ in range(1000)] and numbers.mul_(2.0), kept=[numbers])
    finally:
        gc.set_threshold(*thresholds)
    numbers.fill_(3.0)
    graph.replay()
    assert numbers.tolist() == [6.0] * 3


def test_a_graphed_run_resumes(tmp_path):
    """From a checkpoint it goes on as the run that wrote it did; closely for two updates."""
    config = dataclasses.replace(ATARI, deterministic=False)
    train(config, tmp_path / "whole", progress=False)
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    (tmp_path / "cut" / "summary.json").unlink()
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-1920")
    resume(tmp_path / "cut", progress=False)
    late, again = ([line for line in lines(tmp_path / name) if line["step"] > 960] for name in ("whole", "cut"))
    assert [line["step"] for line in late] == [line["step"] for line in again]
    for one, other in zip(late[:2], again[:2], strict=True):
        for name, value in one.items():
            assert other[name] == pytest.approx(value, rel=5e-2, abs=5e-3, nan_ok=True), name


def test_what_the_learner_needs_lies_on_the_gpu(tmp_path):
    with RunDir.create(tmp_path / "run", ATARI) as run:
        trainer = Trainer(ATARI, run)
        for _ in range(4):
            trainer.one_update()
        memory = trainer.algorithm.anchor.memory
        assert memory.pools["frames"].is_cuda
        assert memory.pools["frames"].dtype == torch.uint8
        assert trainer.collector.rows.is_cuda
        assert trainer.collector.host_obs.is_pinned()
        convolution = trainer.policy.trunk[0].weight
        assert convolution.is_contiguous(memory_format=torch.channels_last)
        trainer.envs.close()
