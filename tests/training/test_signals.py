"""SIGINT and SIGTERM sent to a whole group of processes, as terminals and job schedulers do, and runs stopped early."""

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
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train

RUN = RunConfig(
    total_steps=512,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=4, kwargs={"size": 4}),
    network=NetworkConfig(hidden=(8,)),
    algorithm=PPOConfig(rollout_steps=16, minibatch_size=64),
    checkpoint_every=10_000,
    tensorboard=False,
)


def test_processes_of_async_environments_ignore_ctrl_c():
    before = signal.getsignal(signal.SIGINT)
    with closing(make_envs(EnvConfig(id="CartPole-v1", num_envs=2, vectorization="async"))) as envs:
        assert signal.getsignal(signal.SIGINT) is before
        envs.reset(seed=0)
        for process in envs.unwrapped.processes:
            os.kill(process.pid, signal.SIGINT)
        for _ in range(3):
            envs.step(np.zeros(2, np.int64))


@pytest.mark.parametrize("signalled", [True, False])
def test_a_signal_that_also_ends_the_environments_is_distinguished_from_their_failure(
    signalled, tmp_path, monkeypatch, capsys
):
    def environments_ended(self):
        if signalled:
            os.kill(os.getpid(), signal.SIGTERM)
        raise EOFError

    monkeypatch.setattr(Trainer, "one_update", environments_ended)
    with pytest.raises(SystemExit if signalled else EOFError):
        train(RUN, tmp_path / "run")
    assert ("stopped at step 0; nothing is saved yet" in capsys.readouterr().err) == signalled


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
@pytest.mark.parametrize("within", [True, False])
def test_a_signal_stops_a_final_evaluation_at_once_and_resume_plays_it(
    number, raised, within, tmp_path, monkeypatch, capsys
):
    config = replace(RUN, final_episodes=40)
    expected = train(config, tmp_path / "uninterrupted", progress=False)

    def signalled(*given, **more):
        os.kill(os.getpid(), number)
        if within:
            return play(*given, **more)
        raise AssertionError("the signal did not stop the run")

    monkeypatch.setattr("optimist.training.trainer.play", signalled)
    with pytest.raises(raised):
        train(config, tmp_path / "run")
    assert "stopped at step 512; " in capsys.readouterr().err
    monkeypatch.undo()
    assert resume(tmp_path / "run", progress=False)["final_evaluation"] == expected["final_evaluation"]


def test_environments_whose_processes_died_can_be_closed(tmp_path):
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


def test_tensorboard_drops_the_events_of_a_run_stopped_before_its_first_checkpoint(tmp_path, monkeypatch):
    update = Trainer.one_update

    def stop_at_sixth_update(self):
        if self.update == 5:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop_at_sixth_update)
    with pytest.raises(KeyboardInterrupt):
        train(replace(RUN, tensorboard=True), tmp_path / "run", progress=False)
    monkeypatch.setattr(Trainer, "one_update", update)
    resume(tmp_path / "run", progress=False)
    shown = EventAccumulator(str(tmp_path / "run"))
    shown.Reload()
    assert [point.step for point in shown.Scalars("rollout/episodes")] == list(range(64, 513, 64))
