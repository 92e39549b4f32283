"""Runs with `policy_lag`: the same numbers whatever the speed, exact resume, and no lag where nothing changes."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from optimist.algorithms.ppo import PPO
from optimist.algorithms.value_based_config import DQNConfig
from optimist.config import A2CConfig, EnvConfig
from optimist.envs.make import make_envs
from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.report.identify import identify
from optimist.rollout.collector import Collector
from optimist.rollout.lagged import LaggedCollector
from optimist.tracking.config_io import to_dict
from optimist.training.loop import Trainer, resume, train
from tests.envs.atari.test_training import ATARI
from tests.training.test_loop import DEEPSEA, lines, weights

LAGGED = replace(DEEPSEA, policy_lag=1, checkpoint_every=768)  # every third of the eight updates
VALUES = replace(LAGGED, algorithm=DQNConfig(rollout_steps=16, learning_starts=200, epsilon_steps=1_000))
RESTARTING = replace(LAGGED, env=EnvConfig(id="CartPole-v1", num_envs=8))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("lagged") / "run"
    train(LAGGED, path, progress=False)
    return path


def test_a_lagged_run_is_another_run_and_always_the_same(run, tmp_path, monkeypatch):
    train(replace(LAGGED, policy_lag=0), tmp_path / "in turn", progress=False)
    assert lines(tmp_path / "in turn")[0] == lines(run)[0]  # the first rollout is followed by no older one
    assert lines(tmp_path / "in turn")[1:] != lines(run)[1:]
    update, collect = PPO.update, Collector.collect
    # Now one is slower, now the other.
    monkeypatch.setattr(PPO, "update", lambda self, r: (time.sleep(0.05 * (r.progress < 0.5)), update(self, r))[1])
    monkeypatch.setattr(Collector, "collect", lambda self, *a: (time.sleep(0.02), collect(self, *a))[1])
    train(LAGGED, tmp_path / "slow", progress=False)
    assert lines(tmp_path / "slow") == lines(run)
    assert all(value.equal(weights(run)[name]) for name, value in weights(tmp_path / "slow").items())


def test_every_rollout_but_those_behind_a_pause_is_one_update_old(tmp_path, monkeypatch):
    ages, versions = [], []
    update, collect = PPO.update, Collector.collect

    def noted(self, *arguments):
        versions.append(self.policy.state_dict()["actor.0.weight"].clone())
        return collect(self, *arguments)

    def compared(self, rollout):
        now = self.policy.state_dict()["actor.0.weight"]
        ages.append(0 if now.equal(versions[len(ages)]) else 1)
        return update(self, rollout)

    monkeypatch.setattr(Collector, "collect", noted)
    monkeypatch.setattr(PPO, "update", compared)
    train(LAGGED, tmp_path / "run", progress=False)
    assert ages == [0, 1, 1, 0, 1, 1, 0, 1]
    assert len(versions) == 8  # none is collected in vain


def test_where_nothing_is_learnt_the_lag_makes_no_difference(tmp_path):
    config = replace(LAGGED, algorithm=replace(LAGGED.algorithm, learning_rate=1e-30))
    train(config, tmp_path / "lagged", progress=False)
    train(replace(config, policy_lag=0), tmp_path / "in turn", progress=False)
    assert lines(tmp_path / "lagged") == lines(tmp_path / "in turn")


@pytest.mark.parametrize(
    "config",
    [LAGGED, RESTARTING, replace(ATARI, policy_lag=1, total_steps=240, checkpoint_every=144, final_episodes=0), VALUES],
    ids=["saves its state", "restarts", "lanes", "dqn"],
)
def test_a_lagged_run_resumed_at_any_checkpoint_ends_as_if_never_stopped(config, tmp_path, monkeypatch):
    train(config, tmp_path / "whole", progress=False)
    update, calls = Trainer.one_update, []

    def stop_now_and_then(self):
        calls.append(self.update)
        if len(calls) in (2, 7):
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop_now_and_then)
    for go in (train, None, None):
        try:
            go(config, tmp_path / "cut", progress=False) if go else resume(tmp_path / "cut", progress=False)
        except KeyboardInterrupt:
            continue
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")
    assert (tmp_path / "cut/final.safetensors").read_bytes() == (tmp_path / "whole/final.safetensors").read_bytes()


@pytest.mark.parametrize("stop_after", [2, 3])  # with a rollout under way, and just behind a checkpoint
def test_an_interrupt_leaves_a_run_that_goes_on_exactly(run, tmp_path, monkeypatch, capsys, stop_after):
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
    told = f"`optimist resume {tmp_path / 'run'}` goes on from step {saved:,}" if saved else "nothing is saved yet"
    assert f"stopped at step {stop_after * LAGGED.batch_size:,}; {told}" in capsys.readouterr().err
    monkeypatch.setattr(Trainer, "one_update", update)
    resume(tmp_path / "run")
    assert f"{'goes on' if saved else 'no checkpoint'}: from step {saved:,}" in capsys.readouterr().err
    assert lines(tmp_path / "run") == lines(run)


def test_environments_are_closed_after_the_rollout_that_uses_them(tmp_path, monkeypatch):
    collect, closed = Collector.collect, []
    kind = type(make_envs(LAGGED.env, seed=0).unwrapped)
    close = kind.close

    def slow(self, *arguments):
        time.sleep(0.1)
        found = collect(self, *arguments)
        assert not closed
        return found

    def fail(self, rollout):
        raise ArithmeticError("nothing learnt")

    monkeypatch.setattr(Collector, "collect", slow)
    monkeypatch.setattr(PPO, "update", fail)
    monkeypatch.setattr(kind, "close", lambda self, **kwargs: (closed.append(True), close(self, **kwargs))[1])
    with pytest.raises(ArithmeticError, match="nothing learnt"):
        train(LAGGED, tmp_path / "run", progress=False)
    assert closed


def test_the_acting_copy_of_a_q_network_explores_as_much_as_the_one_that_learns(tmp_path, monkeypatch):
    begin, shares = LaggedCollector.begin, []

    def noted(self):
        begin(self)
        shares.append((self.acting.epsilon, self.policy.epsilon))

    monkeypatch.setattr(LaggedCollector, "begin", noted)
    train(VALUES, tmp_path / "run", progress=False)
    assert all(acting == learning for acting, learning in shares)
    assert shares[0][0] == 1.0
    assert shares[-1][0] < 0.5


def test_a_report_keeps_lagged_runs_and_other_backends_apart():
    config = get_preset("atari/ppo")(game="Pong")
    found = {
        identify(to_dict(changed)).method
        for changed in (
            config,
            replace(config, policy_lag=1),
            replace(config, env=replace(config.env, kwargs=config.env.kwargs | {"backend": "envpool"})),
        )
    }
    assert found == {"PPO", "PPO · policy_lag=1", "PPO · backend=envpool"}


def test_a_lag_is_of_one_update_and_for_learners_that_can_take_it():
    with pytest.raises(ConfigError, match="policy_lag must be 0 or 1, got 2"):
        replace(DEEPSEA, policy_lag=2)
    with pytest.raises(ConfigError, match="policy_lag must be 0 for a2c"):
        replace(DEEPSEA, policy_lag=1, algorithm=A2CConfig())
