"""Runs of the value-based learners: equal runs bit for bit, the effect of each setting, resuming, and learning."""

import dataclasses
import shutil

import pytest

from optimist.algorithms.dqn import DQN as DQNLearner  # noqa: N811
from optimist.config import EnvConfig, NetworkConfig, RunConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.config import OPRConfig
from optimist.envs.make import make_envs
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from optimist.training.build import make_anchor, make_collector, make_policy
from optimist.training.evaluate import evaluate
from optimist.training.resume import resume
from optimist.training.trainer import train
from tests.metrics import undocumented, without_time

PLAIN = OPRConfig(enabled=False)
ZERO = OPRConfig(bc_coef=0.0)
OFF = {"double": False, "dueling": False, "noisy": False, "atoms": 1, "n_step": 1, "priority_exponent": 0.0}
EPSILON = {"epsilon_start": 1.0, "epsilon_final": 0.05, "epsilon_steps": 400}
COMMON = {
    "rollout_steps": 4, "gradient_steps": 2, "minibatch_size": 16, "learning_starts": 64, "learning_rate": 1e-3,
    "target_interval": 100, "replay_capacity": 600,
}  # fmt: skip
DQN = DQNConfig(**COMMON, **EPSILON)
RAINBOW = RainbowConfig(**COMMON, value_min=-1.0, value_max=2.0, atoms=11)
TASKS = {
    "DeepSea": EnvConfig(id="optimist/DeepSea-v0", num_envs=4, kwargs={"size": 4}),
    "CartPole": EnvConfig(id="CartPole-v1", num_envs=4),  # next-step autoreset: reset steps
    "CartPole, time limits": EnvConfig(
        id="CartPole-v1", num_envs=4, vectorization="sync", kwargs={"max_episode_steps": 9}
    ),
}


def config(task: str, learner, opr: OPRConfig = PLAIN, **changes) -> RunConfig:
    network = NetworkConfig(hidden=(16, 16))
    base = RunConfig(
        total_steps=960, env=TASKS[task], algorithm=learner, opr=opr, network=network, seed=3, checkpoint_every=400,
        tensorboard=False,
    )  # fmt: skip
    return dataclasses.replace(base, **changes)


def run(settings: RunConfig, path):
    train(settings, path, progress=False)
    lines = [without_time(line) for line in read_metrics(path / "metrics.jsonl")]
    losses = [{k: v for k, v in line.items() if not k.startswith("opr/")} for line in lines]
    return RunDir.read(path).read_final()[0], losses


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Weights and losses of a plain run, trained once for all tests."""
    known = {}

    def find(task: str, learner):
        if (task, learner) not in known:
            known[task, learner] = run(config(task, learner), tmp_path_factory.mktemp("plain") / "run")
        return known[task, learner]

    return find


def same(ours, theirs) -> bool:
    return all(ours[name].equal(theirs[name]) for name in theirs)


@pytest.mark.parametrize("task", TASKS)
def test_rainbow_with_everything_off_is_dqn_bit_for_bit(task, plain, tmp_path):
    weights, losses = plain(task, DQN)
    off, off_losses = run(config(task, RainbowConfig(**COMMON, **EPSILON, **OFF)), tmp_path / "off")
    assert off.keys() == weights.keys()
    assert same(off, weights)
    assert off_losses == losses


@pytest.mark.parametrize("part", OFF)
def test_every_part_of_rainbow_makes_a_difference(part, plain, tmp_path):
    on = {"atoms": 11, "n_step": 3, "priority_exponent": 0.5}.get(part, True)
    dqn, _ = plain("DeepSea", DQN)
    settings = COMMON | EPSILON | OFF | {part: on, "value_min": -1.0, "value_max": 2.0}
    other, _ = run(config("DeepSea", RainbowConfig(**settings)), tmp_path / "part")
    assert dqn.keys() != other.keys() or not same(dqn, other)


@pytest.mark.parametrize("learner", [DQN, RAINBOW], ids=["dqn", "rainbow"])
@pytest.mark.parametrize("task", TASKS)
def test_opr_at_zero_strength_is_the_plain_learner_bit_for_bit(learner, task, plain, tmp_path):
    weights, losses = plain(task, learner)
    zero, zero_losses = run(config(task, learner, ZERO), tmp_path / "zero")
    assert same(zero, weights)
    assert zero_losses == losses


@pytest.mark.parametrize(
    "strength",
    [{"bc_coef": 0.1}, {"bc_phase_interval": 1}, {"shaping_scale": 0.5, "reference": "cloned"}],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("cloning", ["margin", "cross_entropy"])
def test_every_strength_on_its_own_makes_a_difference(strength, cloning, plain, tmp_path):
    learner = dataclasses.replace(DQN, cloning=cloning)
    weights, _ = plain("DeepSea", DQN)  # without cloning
    anchored, lines = run(config("DeepSea", learner, dataclasses.replace(ZERO, **strength)), tmp_path / "opr")
    assert not same(anchored, weights)
    if "bc_coef" in strength:
        assert lines[-1]["loss/anchor"] > 0


@pytest.mark.parametrize("opr", [PLAIN, OPRConfig()], ids=["plain", "opr"])
def test_the_collector_evaluates_a_q_network_for_an_anchor_only(opr):
    settings = config("DeepSea", DQN, opr)
    envs = make_envs(settings.env, seed=0)
    collector = make_collector(settings, envs, make_policy(settings, envs), make_anchor(settings))
    collector.restart(0)
    rollout = collector.collect()
    assert bool(rollout.logp.any()) == bool(rollout.values.any()) == opr.enabled


@pytest.mark.parametrize("learner", [DQN, RAINBOW], ids=["dqn", "rainbow"])
@pytest.mark.parametrize("task", TASKS)
def test_a_run_resumes_exactly(learner, task, tmp_path, monkeypatch):
    settings = config(task, learner, OPRConfig(bc_batch_size=32))  # checkpoints at 400, 800 and the end
    train(settings, tmp_path / "whole", progress=False)
    update, calls = DQNLearner.update, iter(range(10**9))

    def stop(self, rollout):
        if next(calls) in (10, 50):  # before the first checkpoint, and after it
            raise KeyboardInterrupt
        return update(self, rollout)

    monkeypatch.setattr(DQNLearner, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        train(settings, tmp_path / "stopped", progress=False)
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "stopped", progress=False)
    resume(tmp_path / "stopped", progress=False)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert (stopped / "final.safetensors").read_bytes() == (whole / "final.safetensors").read_bytes()
    lines = [[repr(without_time(line)) for line in read_metrics(run / "metrics.jsonl")] for run in (stopped, whole)]
    assert lines[0] == lines[1]
    newest = "checkpoints/step-960/tensors.safetensors"
    assert (stopped / newest).read_bytes() == (whole / newest).read_bytes()


def test_a_run_without_a_saved_replay_resumes_with_an_empty_one(tmp_path):
    learner = dataclasses.replace(DQN, save_replay=False)
    settings = config("DeepSea", learner, total_steps=960)
    train(settings, tmp_path / "run", progress=False)
    newest = tmp_path / "run/checkpoints/step-960"
    assert newest.is_dir()
    (tmp_path / "run/summary.json").unlink()  # like a run stopped at its last checkpoint
    assert resume(tmp_path / "run", progress=False)["steps"] == 960
    with_replay = config("DeepSea", DQN, total_steps=960)
    train(with_replay, tmp_path / "whole", progress=False)
    sizes = [(tmp_path / name / "checkpoints/step-960/tensors.safetensors").stat().st_size for name in ("run", "whole")]
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("saved", [True, False])
def test_a_resumed_run_without_a_saved_replay_fills_it_before_it_learns(saved, tmp_path):
    learner = dataclasses.replace(DQN, save_replay=saved, learning_starts=160)
    settings = config("DeepSea", learner, total_steps=960, checkpoint_every=480)
    train(settings, tmp_path / "run", progress=False)
    (tmp_path / "run/summary.json").unlink()
    shutil.rmtree(tmp_path / "run/checkpoints/step-960")
    resume(tmp_path / "run", progress=False)
    lines = read_metrics(tmp_path / "run/metrics.jsonl")
    updated = [line["step"] for line in lines if "loss/td" in line]
    first_again = 480 + (16 if saved else 160)
    assert updated == [*range(160, 481, 16), *range(first_again, 961, 16)]


def test_every_metric_is_documented(tmp_path):
    _, lines = run(config("DeepSea", RAINBOW, OPRConfig(bc_batch_size=32)), tmp_path / "run")
    assert undocumented({name for line in lines for name in line}) == []
    expected = {"loss/td", "loss/anchor", "loss/bc", "q/mean", "policy/epsilon", "replay/transitions", "replay/bytes"}
    assert expected <= lines[-1].keys()
    assert lines[-1]["replay/transitions"] == 600  # full


SMALL_DEEPSEA = {
    "rollout_steps": 2, "gradient_steps": 4, "minibatch_size": 32, "learning_starts": 200, "learning_rate": 1e-3,
    "target_interval": 200,
}  # fmt: skip
LEARNING = {
    "dqn": DQNConfig(**SMALL_DEEPSEA, epsilon_steps=1_500, epsilon_final=0.01),
    "double dqn": DQNConfig(**SMALL_DEEPSEA, epsilon_steps=1_500, epsilon_final=0.01, double=True),
    "rainbow": RainbowConfig(**SMALL_DEEPSEA, value_min=-1.0, value_max=2.0, atoms=21),
}
GOOD = OPRConfig(bc_batch_size=32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "opr", "seed"),
    [
        *[(name, opr, seed) for name in ("dqn", "rainbow") for opr in (PLAIN, GOOD) for seed in (0, 1)],
        ("dqn", PLAIN, 2),
        ("rainbow", PLAIN, 2),
        ("double dqn", PLAIN, 0),
    ],
    ids=lambda value: ("opr" if value.enabled else "plain") if isinstance(value, OPRConfig) else str(value),
)
def test_deepsea_of_size_4_is_solved(name, opr, seed, tmp_path):
    env = EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 4})
    settings = RunConfig(
        total_steps=3_000, env=env, algorithm=LEARNING[name], opr=opr, seed=seed,
        network=NetworkConfig(hidden=(32, 32)),
        checkpoint_every=10**9, log_every=50, tensorboard=False,
    )  # fmt: skip
    summary = train(settings, tmp_path / "run", progress=False)
    assert summary["solved"], summary
    assert evaluate(tmp_path / "run", episodes=4, greedy=True)["mean_return"] == pytest.approx(0.99)
