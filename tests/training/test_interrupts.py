"""Signals that reach a whole group of processes, as Ctrl-C and job schedulers send them, and runs cut off early."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.envs.make import make_envs
from optimist.tracking.run_dir import RunDir
from optimist.training.evaluate import play
from optimist.training.loop import Trainer, resume, train

RUN = RunConfig(
    total_steps=512,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=4, kwargs={"size": 4}),
    network=NetworkConfig(hidden=(8,)),
    algorithm=PPOConfig(rollout_steps=16, minibatch_size=64),
    checkpoint_every=10_000,
    tensorboard=False,
)


def test_environments_in_processes_of_their_own_do_not_mind_ctrl_c():
    before = signal.getsignal(signal.SIGINT)
    with closing(make_envs(EnvConfig(id="CartPole-v1", num_envs=2, vectorization="async"))) as envs:
        assert signal.getsignal(signal.SIGINT) is before
        envs.reset(seed=0)
        for process in envs.unwrapped.processes:
            os.kill(process.pid, signal.SIGINT)
        for _ in range(3):
            envs.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("signalled", [True, False])
def test_a_signal_that_ends_the_environments_too_is_told_from_their_failure(signalled, tmp_path, monkeypatch, capsys):
    def ended(self):
        if signalled:
            os.kill(os.getpid(), signal.SIGTERM)
        raise EOFError

    monkeypatch.setattr(Trainer, "one_update", ended)
    with pytest.raises(SystemExit if signalled else EOFError):
        train(RUN, tmp_path / "run")
    assert ("stopped at step 0; nothing is saved yet" in capsys.readouterr().err) == signalled


@pytest.mark.parametrize(("number", "ends_by"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
@pytest.mark.parametrize("within", [True, False])
def test_a_final_evaluation_stops_at_once_and_is_played_by_resume(
    number, ends_by, within, tmp_path, monkeypatch, capsys
):
    config = replace(RUN, final_episodes=40)
    expected = train(config, tmp_path / "calm", progress=False)

    def signalled(*given, **more):
        os.kill(os.getpid(), number)
        if within:
            return play(*given, **more)
        raise AssertionError("goes on")

    monkeypatch.setattr("optimist.training.loop.play", signalled)
    with pytest.raises(ends_by):
        train(config, tmp_path / "run")
    assert "stopped at step 512; " in capsys.readouterr().err
    monkeypatch.undo()
    assert resume(tmp_path / "run", progress=False)["final_evaluation"] == expected["final_evaluation"]


def test_environments_that_are_gone_can_be_closed(tmp_path):
    config = replace(RUN, env=EnvConfig(id="CartPole-v1", num_envs=2, vectorization="async"))
    with RunDir.create(tmp_path / "run", config) as run:
        trainer = Trainer(config, run)
        for process in trainer.envs.unwrapped.processes:
            process.kill()
            process.join()
        with pytest.raises((EOFError, ConnectionError)):
            trainer.one_update()
        trainer.close()
        assert trainer.envs.unwrapped.closed


def test_tensorboard_forgets_a_try_that_left_no_checkpoint(tmp_path, monkeypatch):
    update = Trainer.one_update

    def stop(self):
        if self.update == 5:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop)
    with pytest.raises(KeyboardInterrupt):
        train(replace(RUN, tensorboard=True), tmp_path / "run", progress=False)
    monkeypatch.setattr(Trainer, "one_update", update)
    resume(tmp_path / "run", progress=False)
    shown = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    shown.Reload()
    assert [point.step for point in shown.Scalars("rollout/episodes")] == list(range(64, 513, 64))
