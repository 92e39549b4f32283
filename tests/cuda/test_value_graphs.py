"""On a GPU: DQN and Rainbow learn and act by graphs as they do kernel by kernel; nothing that changes is baked in."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.algorithms.dqn import DQN
from optimist.algorithms.rainbow import Rainbow
from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.config import NetworkConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.networks.q_network import make_q_network
from optimist.rollout.batch import Rollout
from optimist.rollout.decider import Decider
from optimist.training.loop import train
from tests.cuda.test_graphs import ATARI, lines
from tests.rollout.test_decider import decide

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

DEVICE, STACK, SIDE, GAMES, STEPS, ACTIONS = "cuda", 4, 44, 4, 8, 4
COMMON: dict[str, Any] = {
    "rollout_steps": STEPS, "gradient_steps": 4, "minibatch_size": 16, "learning_starts": 64, "learning_rate": 1e-3,
    "replay_capacity": 240, "target_interval": 6, "target_unit": "gradient_steps", "adam_eps": 1.5e-4,
}  # fmt: skip
NATURE = DQNConfig(**COMMON, optimizer="rmsprop", max_grad_norm=None)
MODERN = DQNConfig(**COMMON, double=True, loss="squared", max_grad_norm=0.1, learning_rate_schedule="linear")
RAINBOW = RainbowConfig(**COMMON, atoms=11, value_min=-2.0, value_max=2.0, max_grad_norm=1.0)
QUIET = dataclasses.replace(RAINBOW, noisy=False)
OPR = OPRConfig(capacity_transitions=100, capacity_episodes=20, bc_batch_size=16)
LITTLE = {"learning_rate": 1e-12, "target_interval": 10**9}


@pytest.fixture(autouse=True)
def same_kernels():
    """Other tests leave torch as their runs asked for it."""
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = cudnn.benchmark = False
    cudnn.deterministic = True  # sums in no fixed order differ in the last digit, and 30 gradient steps make it grow
    yield
    cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic = before


def make_network(config):
    torch.manual_seed(0)
    space = gym.spaces.Box(0, 255, (STACK, SIDE, SIDE), np.uint8)
    settings = NetworkConfig(kind="nature_cnn", cnn_features=32, initialization="default")
    network = make_q_network(space, gym.spaces.Discrete(ACTIONS), settings, config)
    return network.to(DEVICE).to(memory_format=torch.channels_last)


def make(config, *, graphs: bool, opr: OPRConfig | None = None):
    anchor = None if opr is None else OptimisticRegularizer(opr, seed=5, frame_stack=STACK, device=DEVICE)
    kind = Rainbow if isinstance(config, RainbowConfig) else DQN
    return kind(make_network(config), config, anchor, seed=1, frame_stack=STACK, graphs=graphs)


def rollout_of(seed: int, *, progress: float = 0.0, cut_off: bool = False, dead: bool = False) -> Rollout:
    """Random pictures, actions, rewards and ends; time limits and dead steps if asked."""
    numbers = torch.Generator().manual_seed(seed)
    shape = (STEPS, GAMES)
    obs = torch.zeros(*shape, STACK, SIDE, SIDE, dtype=torch.uint8)
    obs[:, :, -1] = torch.randint(256, (*shape, SIDE, SIDE), generator=numbers, dtype=torch.uint8)
    chances = torch.rand(shape, generator=numbers)
    truncated = (chances > 0.9) & torch.tensor(cut_off)
    dones = (chances < 0.1) | truncated
    zeros = torch.zeros(shape)
    rewards = torch.randint(-1, 2, shape, generator=numbers).float()
    valid = torch.rand(shape, generator=numbers) > 0.1 if dead else None
    columns: dict[str, Any] = {
        "obs": obs, "actions": torch.randint(ACTIONS, shape, generator=numbers), "rewards": rewards, "logp": zeros,
        "dones": dones, "bootstraps": zeros, "values": zeros, "next_values": zeros, "valid": valid,
        "truncated": truncated if truncated.any() else None,
        "final_obs": obs[truncated] if truncated.any() else None,
    }  # fmt: skip
    moved = {name: None if column is None else column.to(DEVICE) for name, column in columns.items()}
    return Rollout(**moved, raw_rewards=rewards, episode_ends=dones, progress=progress)


def rollouts() -> list[Rollout]:
    """Ten of them: the replay fills and goes round; time limits and dead steps come in on the way."""
    return [rollout_of(i, progress=i / 10, cut_off=i >= 4, dead=i >= 7) for i in range(10)]


def constant(reward: float) -> Rollout:
    """The same picture and end at every step, so that a row's loss tells its reward."""
    plain = rollout_of(0)
    dones = torch.ones_like(plain.dones)
    return dataclasses.replace(
        plain, obs=torch.zeros_like(plain.obs), actions=torch.zeros_like(plain.actions), dones=dones,
        rewards=torch.full_like(plain.rewards, reward), episode_ends=dones.cpu(),
    )  # fmt: skip


@torch.no_grad()
def follow(eager, graphed):
    """The next update begins at the same point: last digits that differ do not add up until another row is drawn."""
    eager.flat.copy_(graphed.flat)
    eager.target_flat.copy_(graphed.target_flat)
    moments, others = eager.optimizer.state[eager.flat], graphed.optimizer.state[graphed.flat]
    for name, moment in moments.items():
        if isinstance(moment, torch.Tensor):
            moment.copy_(others[name])
    if isinstance(eager, Rainbow) and eager.steps:
        for level, others in zip(eager.replay.tree.levels, graphed.replay.tree.levels, strict=True):
            level.copy_(others)


def filled(config, *, reward: float | None = None, **settings):
    learner = make(config, graphs=True, **settings)
    for i in range(4):
        rollout = rollout_of(i) if reward is None else constant(reward)
        learner.anchor.observe(rollout)
        learner.replay.add(rollout, rollout.rewards)
    return learner


@pytest.mark.parametrize(
    ("config", "opr"),
    [(NATURE, None), (MODERN, None), (QUIET, None), (RAINBOW, None), (NATURE, OPR), (MODERN, OPR), (QUIET, OPR),
     (dataclasses.replace(MODERN, cloning="cross_entropy"), dataclasses.replace(OPR, sampling="uniform"))],
    ids=["nature", "modern", "quiet", "rainbow", "nature-opr", "modern-opr", "quiet-opr", "entropy-opr"],
)  # fmt: skip
def test_graphed_and_eager_updates_agree(config, opr):
    eager, graphed = make(config, graphs=False, opr=opr), make(config, graphs=True, opr=opr)
    start = eager.flat.detach().clone()
    assert graphed.flat.equal(start)
    for number, rollout in enumerate(rollouts()):
        follow(eager, graphed)
        found, expected = graphed.update(rollout), eager.update(rollout)
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-2, abs=1e-3, nan_ok=True), (name, number)
    assert graphed.gradient_steps == eager.gradient_steps >= 20
    moved = float((eager.flat - start).detach().norm())
    assert moved > 0.02
    assert float((graphed.flat - eager.flat).detach().norm()) < 0.02 * moved
    assert float((graphed.target_flat - eager.target_flat).norm()) < 0.02 * moved
    assert opr is None or found["opr/memory_episodes"] > 0
    assert opr is None or found["loss/anchor"] > 0
    if isinstance(config, RainbowConfig):
        torch.testing.assert_close(graphed.replay.tree.weights, eager.replay.tree.weights, rtol=0.05, atol=0.02)


def test_terms_do_not_change_when_the_next_step_is_taken():
    learner = filled(QUIET)
    first = learner.graphed.take()
    kept = [term.clone() for term in vars(first).values()]
    second = learner.graphed.take()
    assert all(term.equal(old) for term, old in zip(vars(first).values(), kept, strict=True))
    assert not second.td.equal(first.td)


@pytest.mark.parametrize("config", [NATURE, MODERN], ids=["rmsprop", "adam"])
def test_recording_is_no_step(config):
    learner = filled(config)
    before, state = learner.flat.detach().clone(), learner.generator.get_state()
    learner.graphed.layout = learner.replay.layout
    learner.graphed.graphs[False] = learner.graphed._record(False)
    assert learner.flat.equal(before)
    assert learner.generator.get_state().equal(state)
    assert all(not moment.any() for moment in learner.optimizer.state[learner.flat].values())


def test_the_target_network_is_copied():
    learner = filled(NATURE)  # every 6 gradient steps
    learner.gradient_phase()
    assert not learner.target_flat.equal(learner.flat)
    start = learner.target_flat.clone()
    learner.gradient_phase()  # 8: past 6
    assert not learner.target_flat.equal(start)


def test_noise_is_drawn_anew_by_every_replay():
    losses = {}
    for name, config in {"noisy": RAINBOW, "quiet": QUIET}.items():
        learner = filled(dataclasses.replace(config, **LITTLE), reward=1.0)  # rows all alike, weights that stay
        losses[name] = [round(float(learner.graphed.take().row_losses.mean()), 4) for _ in range(8)]
    assert len(set(losses["quiet"])) == 1
    assert len(set(losses["noisy"])) >= 6


def test_steps_that_come_after_the_recording_are_drawn():
    learner = filled(dataclasses.replace(NATURE, **LITTLE), reward=0.0)
    before = max(float(learner.graphed.take().row_losses.max()) for _ in range(4))
    recorded = learner.graphed.graphs[False]
    for _ in range(3):
        learner.replay.add(constant(1.9), constant(1.9).rewards)
    after = max(float(learner.graphed.take().row_losses.max()) for _ in range(4))
    assert learner.graphed.graphs[False] is recorded
    assert after > before + 0.5


def test_steps_that_come_after_the_recording_are_drawn_by_priority_too():
    learner = filled(QUIET)
    learner.graphed.take()
    recorded = learner.graphed.graphs[False]
    for seed in range(4, 7):
        learner.replay.add(rollout_of(seed), rollout_of(seed).rewards)
    newest = slice(4 * STEPS * GAMES, learner.replay.num_ready)
    before = learner.replay.tree.weights[newest].clone()
    for _ in range(4):
        learner.graphed.take()
    assert learner.graphed.graphs[False] is recorded
    assert int((learner.replay.tree.weights[newest] != before).sum()) >= 8


def test_priorities_and_their_largest_follow_the_losses():
    learner = filled(QUIET)
    before = learner.replay.tree.weights.clone()
    learner.replay.largest.fill_(1e-3)
    terms = learner.graphed.take()
    assert int((learner.replay.tree.weights != before).sum()) >= 8
    expected = (terms.row_losses.double() + 1e-6).sqrt()
    assert float(learner.replay.largest) == pytest.approx(float(expected.max()))
    assert bool(torch.isin(expected, learner.replay.tree.weights).all())
    total = learner.replay.tree.weights.sum()
    torch.testing.assert_close(learner.replay.tree.total, total)


def test_the_importance_exponent_is_read_anew():
    config = dataclasses.replace(QUIET, importance_exponent=0.0, importance_exponent_final=1.0, **LITTLE)
    learner = filled(config)
    for _ in range(10):
        learner.graphed.take()  # priorities differ
    terms = learner.graphed.take()
    assert float(terms.td) == pytest.approx(float(terms.row_losses.mean()), rel=1e-5)
    learner.set_progress(1.0)
    terms = learner.graphed.take()
    assert float(terms.td) < 0.999 * float(terms.row_losses.mean())


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_the_learning_rate_is_read_anew(optimizer):
    learner = filled(dataclasses.replace(NATURE, optimizer=optimizer, learning_rate_schedule="linear"))
    before = learner.flat.detach().clone()
    learner.graphed.take()
    after = learner.flat.detach().clone()
    assert not after.equal(before)
    learner.set_progress(1.0)
    learner.graphed.take()
    assert learner.flat.equal(after)


@pytest.mark.parametrize("config", [NATURE, MODERN, QUIET], ids=["nature", "modern", "quiet"])
def test_a_restored_learner_goes_on_alike(config):
    whole, other = make(config, graphs=True, opr=OPR), make(config, graphs=True, opr=OPR)
    stream = rollouts()
    for rollout in stream[:6]:
        whole.update(rollout)
        other.update(rollout)
    saved = whole.state_dict()
    fresh = make(config, graphs=True, opr=OPR)
    for learner in (fresh, other):  # one that has recorded nothing yet, and one that has
        learner.load_state_dict(copy.deepcopy(saved))
    for rollout, error in zip(stream[6:8], (1e-2, 5e-2), strict=True):  # later a draw may fall on another row
        expected = whole.update(rollout)
        for learner in (fresh, other):
            found = learner.update(rollout)
            assert found["loss/td"] == pytest.approx(expected["loss/td"], rel=error, abs=1e-3)
            assert found["loss/anchor"] == pytest.approx(expected["loss/anchor"], rel=error, abs=1e-3)


def decider_of(network, games: int = 256) -> Decider:
    pictures = torch.randint(256, (games, STACK, SIDE, SIDE), dtype=torch.uint8).pin_memory()
    return Decider(
        network,
        torch.Generator(DEVICE).manual_seed(3),
        host_obs=pictures,
        rows=torch.zeros((16 * games + 1, STACK, SIDE, SIDE), dtype=torch.uint8, device=DEVICE),
        actions=torch.zeros(16 * games + 1, dtype=torch.int64, device=DEVICE),
        at_once=games,
        graphs=True,
    )


def decisions_of(decider: Decider, times: int = 16) -> np.ndarray:
    """What is decided for every game, so many times, [times, games]."""
    games = np.arange(len(decider.host_obs))
    decider.begin()
    return np.stack([decide(decider, games, t * len(games) + games) for t in range(times)])


def test_recorded_decisions_follow_epsilon():
    network = make_network(NATURE)
    network.epsilon = 1.0
    decider = decider_of(network)
    greedy = network.act_greedily(decider.host_obs.to(DEVICE)).cpu().numpy()

    def share_of_greedy() -> float:
        return float((decisions_of(decider, 8) == greedy).mean())

    assert share_of_greedy() == pytest.approx(1 / ACTIONS, abs=0.05)
    network.epsilon = 0.4
    assert share_of_greedy() == pytest.approx(0.6 + 0.4 / ACTIONS, abs=0.05)
    network.epsilon = 0.0
    assert share_of_greedy() > 0.98  # the two may round differently


def test_recorded_decisions_have_fresh_noise():
    network = make_network(RAINBOW)
    network.epsilon = 0.0
    decisions = decisions_of(decider_of(network))
    assert ((decisions != decisions[0]).any(0)).mean() > 0.2
    quiet = decider_of(make_network(QUIET))
    quiet.policy.epsilon = 0.0
    decisions = decisions_of(quiet, 4)
    assert (decisions == decisions[0]).all()


@pytest.mark.parametrize("config", [NATURE, RAINBOW], ids=["nature", "rainbow"])
def test_graphed_and_eager_runs_on_atari_agree(tmp_path, config):
    """With ε = 1 both play the same games; what they learn from them is compared."""
    learner = dataclasses.replace(
        config, epsilon_start=1.0, epsilon_final=1.0, rollout_steps=24, replay_capacity=600, learning_starts=190
    )
    run = dataclasses.replace(ATARI, algorithm=learner, total_steps=960)
    found = {}
    for graphs in ("auto", "off"):
        train(dataclasses.replace(run, graphs=graphs), tmp_path / graphs, progress=False)
        found[graphs] = lines(tmp_path / graphs)
    assert "loss/td" in found["auto"][-1]
    for graphed, eager in zip(found["auto"], found["off"], strict=True):
        assert set(graphed) == set(eager)
        for name, value in eager.items():
            assert graphed[name] == pytest.approx(value, rel=5e-2, abs=5e-3, nan_ok=True), (name, eager["step"])
