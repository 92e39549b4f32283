"""Runs with `policy_lag`: results do not depend on timing, runs resume exactly, and constant weights show no lag."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from optimist.algorithms.ppo import PPO
from optimist.config import A2CConfig, EnvConfig
from optimist.config.toml import to_dict
from optimist.config.value_based import DQNConfig
from optimist.envs.make import make_envs
from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.report.identify import identify
from optimist.rollout.collector import Collector
from optimist.rollout.lag import LaggedCollector
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.envs.atari.test_training import ATARI
from tests.training.test_trainer import DEEPSEA, lines, weights

LAGGED = replace(DEEPSEA, policy_lag=1, checkpoint_every=768)  # every third of the eight updates
VALUES = replace(LAGGED, algorithm=DQNConfig(rollout_steps=16, learning_starts=200, epsilon_steps=1_000))
RESTARTING = replace(LAGGED, env=EnvConfig(id="CartPole-v1", num_envs=8))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("lagged") / "run"
    train(LAGGED, path, progress=False)
    return path


def test_a_lagged_run_differs_from_one_without_lag_and_does_not_depend_on_timing(run, tmp_path, monkeypatch):
    train(replace(LAGGED, policy_lag=0), tmp_path / "no lag", progress=False)
    assert lines(tmp_path / "no lag")[0] == lines(run)[0]  # no policy is older than the first
    assert lines(tmp_path / "no lag")[1:] != lines(run)[1:]
    update, collect = PPO.update, Collector.collect
    # First the update is slower, later the collector.
    monkeypatch.setattr(PPO, "update", lambda self, r: (time.sleep(0.05 * (r.progress < 0.5)), update(self, r))[1])
    monkeypatch.setattr(Collector, "collect", lambda self, *a: (time.sleep(0.02), collect(self, *a))[1])
    train(LAGGED, tmp_path / "slow", progress=False)
    assert lines(tmp_path / "slow") == lines(run)
    assert all(value.equal(weights(run)[name]) for name, value in weights(tmp_path / "slow").items())


def test_every_rollout_is_one_update_old_except_after_a_checkpoint(tmp_path, monkeypatch):
    ages, versions = [], []
    update, collect = PPO.update, Collector.collect

    def record_version(self, *arguments):
        versions.append(self.policy.state_dict()["actor.0.weight"].clone())
        return collect(self, *arguments)

    def compare_version(self, rollout):
        now = self.policy.state_dict()["actor.0.weight"]
        ages.append(0 if now.equal(versions[len(ages)]) else 1)
        return update(self, rollout)

    monkeypatch.setattr(Collector, "collect", record_version)
    monkeypatch.setattr(PPO, "update", compare_version)
    train(LAGGED, tmp_path / "run", progress=False)
    assert ages == [0, 1, 1, 0, 1, 1, 0, 1]
    assert len(versions) == 8  # no rollout is discarded


def test_the_lag_has_no_effect_if_the_weights_do_not_change(tmp_path):
    config = replace(LAGGED, algorithm=replace(LAGGED.algorithm, learning_rate=1e-30))
    train(config, tmp_path / "lagged", progress=False)
    train(replace(config, policy_lag=0), tmp_path / "no lag", progress=False)
    assert lines(tmp_path / "lagged") == lines(tmp_path / "no lag")


@pytest.mark.parametrize(
    "config",
    [LAGGED, RESTARTING, replace(ATARI, policy_lag=1, total_steps=240, checkpoint_every=144, final_episodes=0), VALUES],
    ids=["saved", "restarted", "atari", "dqn"],
)
def test_a_lagged_run_resumed_at_any_checkpoint_ends_as_if_never_stopped(config, tmp_path, monkeypatch):
    train(config, tmp_path / "whole", progress=False)
    update, calls = Trainer.one_update, []

    def stop_twice(self):
        calls.append(self.update)
        if len(calls) in (2, 7):
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop_twice)
    for start in (train, None, None):
        try:
            start(config, tmp_path / "cut", progress=False) if start else resume(tmp_path / "cut", progress=False)
        except KeyboardInterrupt:
            continue
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")
    assert (tmp_path / "cut/final.safetensors").read_bytes() == (tmp_path / "whole/final.safetensors").read_bytes()


@pytest.mark.parametrize("stop_after", [2, 3])  # with a rollout in progress, and just after a checkpoint
def test_an_interrupted_lagged_run_resumes_exactly(run, tmp_path, monkeypatch, capsys, stop_after):
    update = Trainer.one_update

    def interrupted(self):
        metrics = update(self)
        if self.update == stop_after:
            os.kill(os.getpid(), signal.SIGINT)
        return metrics

    monkeypatch.setattr(Trainer, "one_update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(LAGGED, tmp_path / "run")
    saved = stop_after // 3 * 3 * LAGGED.batch_size
    hint = f"`optimist resume {tmp_path / 'run'}` continues at step {saved:,}" if saved else "nothing is saved yet"
    assert f"stopped at step {stop_after * LAGGED.batch_size:,}; {hint}" in capsys.readouterr().err
    monkeypatch.setattr(Trainer, "one_update", update)
    resume(tmp_path / "run")
    assert f"{'resumed' if saved else 'no checkpoint'}: from step {saved:,}" in capsys.readouterr().err
    assert lines(tmp_path / "run") == lines(run)


def test_environments_are_closed_after_the_rollout_in_progress(tmp_path, monkeypatch):
    collect, closed = Collector.collect, []
    env_class = type(make_envs(LAGGED.env, seed=0).unwrapped)
    close = env_class.close

    def collect_slowly(self, *arguments):
        time.sleep(0.1)
        found = collect(self, *arguments)
        assert not closed
        return found

    def fail(self, rollout):
        raise ArithmeticError("the update failed")

    monkeypatch.setattr(Collector, "collect", collect_slowly)
    monkeypatch.setattr(PPO, "update", fail)
    monkeypatch.setattr(env_class, "close", lambda self, **kwargs: (closed.append(True), close(self, **kwargs))[1])
    with pytest.raises(ArithmeticError, match="the update failed"):
        train(LAGGED, tmp_path / "run", progress=False)
    assert closed


def test_the_acting_copy_of_a_q_network_has_the_epsilon_of_the_learner(tmp_path, monkeypatch):
    on_update_start, epsilons = LaggedCollector.on_update_start, []

    def record_epsilon(self):
        on_update_start(self)
        epsilons.append((self.acting.epsilon, self.policy.epsilon))

    monkeypatch.setattr(LaggedCollector, "on_update_start", record_epsilon)
    train(VALUES, tmp_path / "run", progress=False)
    assert all(acting == learning for acting, learning in epsilons)
    assert epsilons[0][0] == 1.0
    assert epsilons[-1][0] < 0.5


def test_report_separates_lagged_runs_and_ignores_performance_keywords():
    config = get_preset("atari/ppo")(game="Pong")
    other = to_dict(config)
    other["env"]["kwargs"] |= {"num_workers": 3, "lanes": 2}
    found = {identify(run).method for run in (to_dict(config), to_dict(replace(config, policy_lag=1)), other)}
    assert found == {"PPO", "PPO · policy_lag=1"}


def test_a_lag_above_one_update_or_for_another_learner_is_refused():
    with pytest.raises(ConfigError, match="policy_lag must be 0 or 1, got 2"):
        replace(DEEPSEA, policy_lag=2)
    with pytest.raises(ConfigError, match="policy_lag=1 supports ppo, dqn and rainbow; got a2c"):
        replace(DEEPSEA, policy_lag=1, algorithm=A2CConfig())
