"""DQN and Rainbow on images: captured graphs do what eager learners do, and read each value that changes."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor

from optimist.algorithms.dqn import DQN
from optimist.algorithms.rainbow import Rainbow
from optimist.config import NetworkConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Rollout
from optimist.cuda import learning
from optimist.cuda.acting import BatchActor
from optimist.cuda.learning import CapturedDQN, CapturedRainbow
from optimist.networks.q_network import make_q_network
from tests.cuda.conftest import needs_cuda
from tests.cuda.test_acting import act

STACK, SIDE, NUM_ENVS, STEPS, ACTIONS = 4, 44, 4, 8, 4
COMMON: dict[str, Any] = {
    "rollout_steps": STEPS, "gradient_steps": 4, "minibatch_size": 16, "learning_starts": 64, "learning_rate": 1e-3,
    "replay_capacity": 240, "target_interval": 6, "target_unit": "gradient_steps", "adam_eps": 1.5e-4,
}  # fmt: skip
NATURE = DQNConfig(**COMMON, optimizer="rmsprop", max_grad_norm=None)
MODERN = DQNConfig(**COMMON, double=True, loss="squared", max_grad_norm=0.1, learning_rate_schedule="linear")
RAINBOW = RainbowConfig(**COMMON, atoms=11, value_min=-2.0, value_max=2.0, max_grad_norm=1.0)
NOISELESS = dataclasses.replace(RAINBOW, noisy=False)
OPR = OPRConfig(capacity_transitions=100, capacity_episodes=20, bc_batch_size=16)
FIXED_WEIGHTS = {"learning_rate": 1e-12, "target_interval": 10**9}


@pytest.fixture(autouse=True)
def same_kernels():
    """Set the flags of torch that runs of other tests have changed."""
    cudnn = torch.backends.cudnn
    before = cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = cudnn.benchmark = False
    cudnn.deterministic = True  # the order of a sum changes its last digit, and 30 gradient steps amplify it
    yield
    cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic = before


def make_network(config, device):
    torch.manual_seed(0)
    space = gym.spaces.Box(0, 255, (STACK, SIDE, SIDE), np.uint8)
    settings = NetworkConfig(kind="nature_cnn", cnn_features=32, initialization="default")
    network = make_q_network(space, gym.spaces.Discrete(ACTIONS), settings, config)
    return network.to(device).to(memory_format=torch.channels_last)


def make(config, device, *, captured: bool = True, opr: OPRConfig | None = None):
    anchor = None if opr is None else OptimisticRegularizer(opr, seed=5, frame_stack=STACK, device=device)
    if isinstance(config, RainbowConfig):
        kind = CapturedRainbow if captured else Rainbow
    else:
        kind = CapturedDQN if captured else DQN
    return kind(make_network(config, device), config, anchor, seed=1, frame_stack=STACK)


def make_rollout(
    seed: int, device: str, *, progress: float = 0.0, time_limits: bool = False, reset_steps: bool = False
) -> Rollout:
    """Random images, actions, rewards and ends; with time limits and reset steps if asked."""
    numbers = torch.Generator().manual_seed(seed)
    shape = (STEPS, NUM_ENVS)
    obs = torch.zeros(*shape, STACK, SIDE, SIDE, dtype=torch.uint8)
    obs[:, :, -1] = torch.randint(256, (*shape, SIDE, SIDE), generator=numbers, dtype=torch.uint8)
    ends = torch.rand(shape, generator=numbers)
    truncated = (ends > 0.9) & torch.tensor(time_limits)
    dones = (ends < 0.1) | truncated
    zeros = torch.zeros(shape)
    rewards = torch.randint(-1, 2, shape, generator=numbers).float()
    valid = torch.rand(shape, generator=numbers) > 0.1 if reset_steps else None
    columns: dict[str, Any] = {
        "obs": obs, "actions": torch.randint(ACTIONS, shape, generator=numbers), "rewards": rewards, "logp": zeros,
        "dones": dones, "bootstraps": zeros, "values": zeros, "next_values": zeros, "valid": valid,
        "truncated": truncated if truncated.any() else None,
        "final_obs": obs[truncated] if truncated.any() else None,
    }  # fmt: skip
    moved = {name: None if column is None else column.to(device) for name, column in columns.items()}
    return Rollout(**moved, raw_rewards=rewards, episode_ends=dones, progress=progress)


def make_rollouts(device) -> list[Rollout]:
    """Ten rollouts that fill the replay and wrap it; later ones have time limits, then reset steps."""
    return [make_rollout(i, device, progress=i / 10, time_limits=i >= 4, reset_steps=i >= 7) for i in range(10)]


def constant(reward: float, device) -> Rollout:
    """The same image and an end at every step, so that the loss of a row depends on its reward alone."""
    plain = make_rollout(0, device)
    dones = torch.ones_like(plain.dones)
    return dataclasses.replace(
        plain, obs=torch.zeros_like(plain.obs), actions=torch.zeros_like(plain.actions), dones=dones,
        rewards=torch.full_like(plain.rewards, reward), episode_ends=dones.cpu(),
    )  # fmt: skip


def filled(config, device, *, reward: float | None = None):
    """A learner that has stored four rollouts and taken no gradient step."""
    learner = make(config, device)
    for seed in range(4):
        rollout = make_rollout(seed, device) if reward is None else constant(reward, device)
        learner.anchor.observe(rollout)
        learner.replay.add(rollout, rollout.rewards)
    return learner


def step(learner):
    """One captured gradient step."""
    return learner.learn(None, next(learner.anchor.sample([4], learner.policy)))


def tensors_of(learner) -> dict[str, Tensor]:
    """Copies of the tensors on which the next update depends, by name."""
    replay, memory, ring = learner.replay, getattr(learner.anchor, "memory", None), learner.replay.observations
    found = {
        "weights": learner.flat.detach(),
        "target": learner.target_flat,
        "generator": learner.generator.get_state(),
        "frames": ring.frames[: replay.num_transitions],
        "ages": ring.ages[: replay.num_transitions],
        "finals": ring.finals,
    }
    found |= {name: getattr(replay, name)[: replay.num_transitions] for name in ("actions", "rewards", "ends")}
    found |= {f"priorities {level}": tensor for level, tensor in enumerate(replay.written)}
    found |= {f"moment {name}": moment for name, moment in learner.optimizer.state[learner.flat].items()}
    if memory is not None:
        found |= {f"memory {name}": pool[memory.rows] for name, pool in memory.pools.items() if name != "frames"}
        found["memory generator"] = learner.anchor.generator.get_state()
    return {name: tensor.clone() for name, tensor in found.items()}


def differences(one: dict[str, Tensor], other: dict[str, Tensor]) -> dict[str, float]:
    """The largest difference of each tensor that is not equal."""
    assert one.keys() == other.keys()
    unequal = [name for name, tensor in one.items() if not tensor.equal(other[name])]
    return {name: float((one[name].double() - other[name].double()).abs().max()) for name in unequal}


@torch.no_grad()
def follow(eager, captured):
    """Let both start the next update from the same point, so that differences in last digits do not add up."""
    eager.flat.copy_(captured.flat)
    eager.target_flat.copy_(captured.target_flat)
    moments, others = eager.optimizer.state[eager.flat], captured.optimizer.state[captured.flat]
    for name, moment in moments.items():
        if isinstance(moment, torch.Tensor):
            moment.copy_(others[name])
    if isinstance(eager, Rainbow) and eager.steps:
        for level, others in zip(eager.replay.tree.levels, captured.replay.tree.levels, strict=True):
            level.copy_(others)


@pytest.mark.parametrize(
    ("config", "opr"),
    [(NATURE, None), (MODERN, None), (NOISELESS, None), (RAINBOW, None), (NATURE, OPR), (MODERN, OPR), (NOISELESS, OPR),
     (dataclasses.replace(MODERN, cloning="cross_entropy"), dataclasses.replace(OPR, sampling="uniform"))],
    ids=["nature", "modern", "noiseless", "rainbow", "nature-opr", "modern-opr", "noiseless-opr", "cross-entropy-opr"],
)  # fmt: skip
def test_captured_and_eager_updates_agree(device, config, opr):
    eager, captured = make(config, device, captured=False, opr=opr), make(config, device, opr=opr)
    start = eager.flat.detach().clone()
    assert captured.flat.equal(start)
    for number, rollout in enumerate(make_rollouts(device)):
        follow(eager, captured)
        found, expected = captured.update(rollout), eager.update(rollout)
        assert set(found) == set(expected)
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-2, abs=1e-3, nan_ok=True), (name, number)
    assert captured.gradient_steps == eager.gradient_steps >= 20
    change = float((eager.flat - start).detach().norm())
    assert change > 0.02
    assert float((captured.flat - eager.flat).detach().norm()) < 0.02 * change
    assert float((captured.target_flat - eager.target_flat).norm()) < 0.02 * change
    assert opr is None or found["opr/memory_episodes"] > 0
    assert opr is None or found["loss/anchor"] > 0
    if isinstance(config, RainbowConfig):
        torch.testing.assert_close(captured.replay.tree.weights, eager.replay.tree.weights, rtol=0.05, atol=0.02)


def test_terms_are_not_changed_by_the_next_step(device):
    learner = filled(NOISELESS, device)
    first = step(learner)
    kept = [term.clone() for term in vars(first).values()]
    second = step(learner)
    assert all(term.equal(old) for term, old in zip(vars(first).values(), kept, strict=True))
    assert not second.td.equal(first.td)


@pytest.mark.parametrize("config", [NATURE, MODERN, RAINBOW], ids=["rmsprop", "adam", "rainbow"])
def test_capture_leaves_no_trace(device, config, monkeypatch):
    learner, capture, found = filled(config, device), learning.capture, []

    def checked(work, **more):
        before = tensors_of(learner)
        graph = capture(work, **more)
        found.append(differences(before, tensors_of(learner)))
        return graph

    monkeypatch.setattr(learning, "capture", checked)
    learning.optimizer_tensors(learner)  # creates the moments, all zero
    step(learner)
    assert found == [{}]


def test_target_network_is_copied(device):
    learner = filled(NATURE, device)  # every 6 gradient steps

    def four_steps():
        for _ in range(4):
            step(learner)
            learner.count_gradient_step()

    four_steps()
    assert not learner.target_flat.equal(learner.flat)
    start = learner.target_flat.clone()
    four_steps()  # 8: past 6
    assert not learner.target_flat.equal(start)


def test_noise_is_drawn_at_every_replay(device):
    losses = {}
    for name, config in {"noisy": RAINBOW, "noiseless": NOISELESS}.items():
        learner = filled(dataclasses.replace(config, **FIXED_WEIGHTS), device, reward=1.0)  # all rows are equal
        losses[name] = [round(float(step(learner).row_losses.mean()), 4) for _ in range(8)]
    assert len(set(losses["noiseless"])) == 1
    assert len(set(losses["noisy"])) >= 6


def test_steps_stored_after_the_capture_are_drawn(device):
    learner = filled(dataclasses.replace(NATURE, **FIXED_WEIGHTS), device, reward=0.0)
    before = max(float(step(learner).row_losses.max()) for _ in range(4))
    captured = learner.captured[False]
    for _ in range(3):
        learner.replay.add(constant(1.9, device), constant(1.9, device).rewards)
    after = max(float(step(learner).row_losses.max()) for _ in range(4))
    assert learner.captured[False] is captured
    assert after > before + 0.5


def test_steps_stored_after_the_capture_are_drawn_by_priority(device):
    learner = filled(NOISELESS, device)
    step(learner)
    captured = learner.captured[False]
    for seed in range(4, 7):
        rollout = make_rollout(seed, device)
        learner.replay.add(rollout, rollout.rewards)
    newest = slice(4 * STEPS * NUM_ENVS, learner.replay.num_ready)
    before = learner.replay.tree.weights[newest].clone()
    for _ in range(4):
        step(learner)
    assert learner.captured[False] is captured
    assert int((learner.replay.tree.weights[newest] != before).sum()) >= 8


def test_priorities_and_the_largest_follow_the_losses(device):
    learner = filled(NOISELESS, device)
    before = learner.replay.tree.weights.clone()
    learner.replay.largest.fill_(1e-3)
    terms = step(learner)
    assert int((learner.replay.tree.weights != before).sum()) >= 8
    expected = (terms.row_losses.double() + 1e-6).sqrt()
    assert float(learner.replay.largest) == pytest.approx(float(expected.max()))
    assert bool(torch.isin(expected, learner.replay.tree.weights).all())
    total = learner.replay.tree.weights.sum()
    torch.testing.assert_close(learner.replay.tree.total, total)


def test_importance_exponent_is_read_at_every_replay(device):
    config = dataclasses.replace(NOISELESS, importance_exponent=0.0, importance_exponent_final=1.0, **FIXED_WEIGHTS)
    learner = filled(config, device)
    for _ in range(10):
        step(learner)  # priorities differ
    terms = step(learner)
    assert float(terms.td) == pytest.approx(float(terms.row_losses.mean()), rel=1e-5)
    learner.set_schedules(1.0)
    terms = step(learner)
    assert float(terms.td) < 0.999 * float(terms.row_losses.mean())


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_learning_rate_is_read_at_every_replay(device, optimizer):
    config = dataclasses.replace(NATURE, optimizer=optimizer, learning_rate_schedule="linear")
    learner = filled(config, device)
    before = learner.flat.detach().clone()
    step(learner)
    after = learner.flat.detach().clone()
    assert not after.equal(before)
    learner.set_schedules(1.0)
    step(learner)
    assert learner.flat.equal(after)


@pytest.mark.parametrize(
    "config", [NATURE, MODERN, NOISELESS, RAINBOW], ids=["nature", "modern", "noiseless", "rainbow"]
)
def test_restored_learner_continues_as_the_original(device, config):
    """Bit for bit on a CPU. On a GPU closely for two updates: later a last digit may change which row is drawn."""
    original, used = make(config, device, opr=OPR), make(config, device, opr=OPR)
    stream = make_rollouts(device)
    for rollout in stream[:6]:
        original.update(rollout)
        used.update(rollout)
    saved = original.state_dict()
    restored = {"new": make(config, device, opr=OPR), "used": used}  # the second one has captured graphs
    for name, learner in restored.items():
        learner.load_state_dict(copy.deepcopy(saved))
        assert not differences(tensors_of(learner), tensors_of(original)), name
    for number, rollout in enumerate(stream[6:]):
        expected = original.update(rollout)
        for name, learner in restored.items():
            found = learner.update(rollout)
            unequal = differences(tensors_of(learner), tensors_of(original))
            if device == "cpu":
                assert found == pytest.approx(expected, rel=0, abs=0, nan_ok=True), (name, number, unequal)
                assert not unequal, (name, number)
            elif number < 2:
                for loss in ("loss/td", "loss/anchor"):
                    close = pytest.approx(expected[loss], rel=(1e-2, 5e-2)[number], abs=1e-3)
                    assert found[loss] == close, (name, number, loss, unequal)


@needs_cuda
def test_targets_do_not_depend_on_the_streams_that_torch_hands_out():
    """After 32 streams a learner's own may be the one that captures."""
    learners = [make(NOISELESS, "cuda") for _ in range(2)]
    for rollout in make_rollouts("cuda")[:4]:
        expected = learners[0].update(rollout)
        learners[1].streams["next values"].stream = torch.cuda.graph.default_capture_stream
        assert learners[1].update(rollout) == pytest.approx(expected, rel=1e-3, abs=1e-5)


def make_actor(network, device, num_envs: int = 256) -> BatchActor:
    images = torch.randint(256, (num_envs, STACK, SIDE, SIDE), dtype=torch.uint8)
    return BatchActor(
        network,
        torch.Generator(device).manual_seed(3),
        host_obs=images.pin_memory() if device == "cuda" else images,
        rollout_obs=torch.zeros((16 * num_envs + 1, STACK, SIDE, SIDE), dtype=torch.uint8, device=device),
        rollout_actions=torch.zeros(16 * num_envs + 1, dtype=torch.int64, device=device),
        batch_size=num_envs,
        graphs=True,
    )


def actions_of(actor: BatchActor, steps: int = 16) -> np.ndarray:
    """The actions of a rollout's first steps on the same observations, [steps, N]."""
    slots = np.arange(len(actor.host_obs))
    actor.start_rollout()
    return np.stack([act(actor, slots, t * len(slots) + slots) for t in range(steps)])


def test_captured_actions_follow_epsilon(device):
    network = make_network(NATURE, device)
    network.epsilon = 1.0
    actor = make_actor(network, device)
    greedy = network.act_greedily(actor.host_obs.to(device)).cpu().numpy()

    def share_of_greedy() -> float:
        return float((actions_of(actor, 8) == greedy).mean())

    assert share_of_greedy() == pytest.approx(1 / ACTIONS, abs=0.05)
    network.epsilon = 0.4
    assert share_of_greedy() == pytest.approx(0.6 + 0.4 / ACTIONS, abs=0.05)
    network.epsilon = 0.0
    assert share_of_greedy() > 0.98  # rounding may differ


def test_captured_actions_have_noise_of_their_own(device):
    network = make_network(RAINBOW, device)
    network.epsilon = 0.0
    actions = actions_of(make_actor(network, device))
    assert ((actions != actions[0]).any(0)).mean() > 0.2
    noiseless = make_actor(make_network(NOISELESS, device), device)
    noiseless.policy.epsilon = 0.0
    actions = actions_of(noiseless, 4)
    assert (actions == actions[0]).all()
