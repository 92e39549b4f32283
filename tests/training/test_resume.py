"""Resuming a run with a changed config.toml: a larger budget, another learning rate, another replay capacity."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from optimist.config import A2CConfig, ACPERConfig, CardiffPPOConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.config.sil import SILConfig
from optimist.config.toml import to_toml
from optimist.config.value_based import DQNConfig
from optimist.core.config import OPRConfig
from optimist.errors import ConfigError, RunFolderError
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.metrics import without_time

LENGTH = 200  # of every episode of Pendulum-v1
PENDULUM = RunConfig(
    total_steps=640,  # 320 of each environment: the run ends within an episode
    env=EnvConfig(id="Pendulum-v1", num_envs=2),
    network=NetworkConfig(hidden=(8,)),
    algorithm=PPOConfig(rollout_steps=32, minibatch_size=64, epochs=1),
    opr=OPRConfig(return_window=2),
    tensorboard=False,
)
CARTPOLE = dataclasses.replace(
    PENDULUM,
    env=EnvConfig(id="CartPole-v1", num_envs=2, truncation="end"),
    opr=OPRConfig(enabled=False),
    total_steps=1_024,
)
DQN = DQNConfig(rollout_steps=4, learning_starts=64, replay_capacity=256, minibatch_size=16)


def extend(config: RunConfig, run: Path, **changes: Any) -> dict[str, Any]:
    """Change a finished run's config.toml and resume it."""
    (run / "config.toml").write_text(to_toml(dataclasses.replace(config, **changes)))
    (run / "summary.json").unlink(missing_ok=True)
    return resume(run, progress=False)


def test_episodes_cut_off_by_the_end_of_a_run_are_not_joined_to_new_ones(tmp_path, monkeypatch):
    train(PENDULUM, tmp_path / "run", progress=False)
    lengths, stored, update = [], [], Trainer.one_update

    def recorded(self: Trainer) -> dict[str, float]:
        metrics = update(self)
        lengths.extend(record.length for record in self.collector.finished)
        stored.extend(len(episode.rows) for episode in self.algorithm.anchor.memory.episodes)
        return metrics

    monkeypatch.setattr(Trainer, "one_update", recorded)
    summary = extend(PENDULUM, tmp_path / "run", total_steps=1_920)
    assert summary["time/since_step"] == 640
    assert summary["changes"] == ["at step 640: total_steps 640 → 1920"]
    assert set(lengths) == {LENGTH}
    assert set(stored) == {LENGTH}


@pytest.mark.parametrize(
    "algorithm",
    [
        CARTPOLE.algorithm,
        A2CConfig(rollout_steps=8),
        ACPERConfig(rollout_steps=8, replay_start=64),
        CardiffPPOConfig(rollout_steps=32),
        DQN,
    ],
    ids=lambda algorithm: algorithm.name,
)
def test_a_changed_learning_rate_takes_effect(algorithm, tmp_path, monkeypatch):
    config = dataclasses.replace(CARTPOLE, algorithm=algorithm)
    train(config, tmp_path / "run", progress=False)
    rates, update = set(), Trainer.one_update

    def recorded(self: Trainer) -> dict[str, float]:
        metrics = update(self)
        rates.update(group["lr"] for group in self.algorithm.optimizer.param_groups)
        return metrics

    monkeypatch.setattr(Trainer, "one_update", recorded)
    faster = dataclasses.replace(algorithm, learning_rate=0.0125, learning_rate_schedule="constant")
    extend(config, tmp_path / "run", algorithm=faster, total_steps=1_280)
    assert rates == {0.0125}


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ({"algorithm": DQN}, {"algorithm": dataclasses.replace(DQN, replay_capacity=4_096)}),
        (
            {"algorithm": ACPERConfig(rollout_steps=8, replay_start=64, replay_capacity=128)},
            {"algorithm": ACPERConfig(rollout_steps=8, replay_start=64, replay_capacity=512)},
        ),
        (
            {"sil": SILConfig(enabled=True, capacity_transitions=256, start_transitions=32, admission="any")},
            {"sil": SILConfig(enabled=True, capacity_transitions=4_096, start_transitions=32, admission="any")},
        ),
    ],
    ids=["dqn", "acper", "sil"],
)
def test_another_capacity_of_a_full_replay_is_refused(config, changes, tmp_path):
    before = dataclasses.replace(CARTPOLE, **config)
    train(before, tmp_path / "run", progress=False)
    with pytest.raises(ConfigError, match=r"cannot resume: config.toml was changed \(.*capacity"):
        extend(before, tmp_path / "run", **changes, total_steps=2_048)


def test_the_capacity_of_a_replay_that_is_not_full_may_grow(tmp_path):
    config = dataclasses.replace(CARTPOLE, algorithm=dataclasses.replace(DQN, replay_capacity=4_096))
    train(config, tmp_path / "run", progress=False)
    larger = dataclasses.replace(DQN, replay_capacity=8_192)
    assert extend(config, tmp_path / "run", algorithm=larger, total_steps=2_048)["steps"] == 2_048


def test_a_run_resumed_at_its_end_does_not_change_its_last_checkpoint(tmp_path):
    config = dataclasses.replace(
        CARTPOLE,
        algorithm=dataclasses.replace(CARTPOLE.algorithm, learning_rate_schedule="linear"),
        opr=OPRConfig(return_window=2),
        checkpoint_every=512,
    )
    train(config, tmp_path / "run", progress=False)
    checkpoint = tmp_path / "run" / "checkpoints" / "step-1024"
    before = {file.name: file.read_bytes() for file in checkpoint.iterdir()}
    (tmp_path / "run" / "summary.json").unlink()
    resume(tmp_path / "run", progress=False)
    assert {file.name: file.read_bytes() for file in checkpoint.iterdir()} == before


def test_a_signal_in_the_last_update_loses_no_step(tmp_path, monkeypatch):
    """Also with environments that cannot save their state, where an earlier signal returns to the last checkpoint."""
    config = dataclasses.replace(CARTPOLE, checkpoint_every=10_000, final_episodes=2)
    update = Trainer.one_update

    def signalled_in_last_update(self: Trainer) -> dict[str, float]:
        metrics = update(self)
        if self.update == config.total_updates:
            os.kill(os.getpid(), signal.SIGINT)
        return metrics

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "one_update", signalled_in_last_update)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "run", progress=False)
    monkeypatch.setattr(Trainer, "one_update", None)  # nothing is trained again
    assert resume(tmp_path / "run", progress=False)["final_evaluation"]["episodes"] == 2


def test_a_trained_run_plays_its_final_episodes_on_another_device(tmp_path, monkeypatch):
    """The state of a generator fits one device only, and final episodes need none of the run's generators."""
    config = dataclasses.replace(PENDULUM, final_episodes=2)
    whole = train(config, tmp_path / "run", progress=False)
    saved = {path: path.read_bytes() for path in (tmp_path / "run/checkpoints").rglob("*") if path.is_file()}
    load = RunDir.load_checkpoint

    def from_another_device(run: RunDir) -> Any:
        state: Any = load(run)
        assert len(state["algorithm"]["generator"]) > 16
        state["algorithm"]["generator"] = state["algorithm"]["generator"][:16]  # the length of a GPU's
        state["collector"]["generator"] = state["collector"]["generator"][:16]
        state["algorithm"]["anchor"]["generator"] = state["algorithm"]["anchor"]["generator"][:16]
        return state

    monkeypatch.setattr(RunDir, "load_checkpoint", from_another_device)
    assert extend(config, tmp_path / "run")["final_evaluation"] == whole["final_evaluation"]
    assert {path: path.read_bytes() for path in saved} == saved
    with pytest.raises(ConfigError, match=r"cannot resume.*total_steps"):
        extend(config, tmp_path / "run", total_steps=1_920)


def test_a_finished_run_without_checkpoints_is_refused_and_not_changed(tmp_path):
    train(PENDULUM, tmp_path / "run", progress=False)
    shutil.rmtree(tmp_path / "run/checkpoints")
    before = (tmp_path / "run/metrics.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match="has no checkpoint to continue from"):
        extend(PENDULUM, tmp_path / "run", total_steps=1_920)
    assert (tmp_path / "run/metrics.jsonl").read_bytes() == before


def test_a_run_can_be_resumed_with_another_number_of_workers(tmp_path):
    """Action noise is drawn for each step of each environment, so workers affect speed only."""
    kwargs = {"game": "Pong", "sticky": 0.0, "emulator": "ale", "worker_type": "none", "num_workers": 2}
    env = EnvConfig(id="optimist/Atari-v0", num_envs=2, kwargs=kwargs, frame_stack=4)
    config = dataclasses.replace(PENDULUM, env=env, network=NetworkConfig(kind="nature_cnn", cnn_features=8))
    config = dataclasses.replace(config, total_steps=16, algorithm=PPOConfig(rollout_steps=8, epochs=1))
    train(config, tmp_path / "run", progress=False)
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    extend(config, tmp_path / "run", total_steps=32)
    other = dataclasses.replace(env, kwargs={**kwargs, "num_workers": 1})
    summary = extend(config, tmp_path / "other", env=other, total_steps=32)
    assert summary["steps"] == 32
    one, two = (read_metrics(tmp_path / name / "metrics.jsonl")[-1] for name in ("run", "other"))
    for name, value in without_time(one).items():
        assert two[name] == pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True), name


def test_the_summary_of_a_moved_run_names_its_present_folder(tmp_path):
    train(PENDULUM, tmp_path / "run", progress=False)
    (tmp_path / "run").rename(tmp_path / "moved")
    assert resume(tmp_path / "moved", progress=False)["run"] == str(tmp_path / "moved")
