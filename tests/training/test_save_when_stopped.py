"""`save_when_stopped`: a signal loses no step, also if environments must restart or a rollout is in progress."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.envs.atari.test_training import ATARI
from tests.training.test_policy_lag import RESTARTING
from tests.training.test_trainer import lines

STOPPED = {
    "atari": replace(ATARI, total_steps=240, checkpoint_every=10_000, final_episodes=0),
    "atari, lagged": replace(ATARI, policy_lag=1, total_steps=240, checkpoint_every=10_000, final_episodes=0),
    "CartPole, lagged": replace(RESTARTING, checkpoint_every=10_000),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_run_saved_when_stopped_loses_no_step_and_is_reproducible(name, tmp_path, monkeypatch, capsys):
    config, update = replace(STOPPED[name], save_when_stopped=True), Trainer.one_update

    def interrupted(self):
        metrics = update(self)
        if self.update == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return metrics

    monkeypatch.setattr(Trainer, "one_update", interrupted)
    for path in (tmp_path / "one", tmp_path / "other"):
        with pytest.raises(SystemExit):
            train(config, path)
        last = (3 if config.policy_lag else 2) * config.batch_size  # including the rollout that was in progress
        message = f"stopped at step {last:,}; `optimist resume {path}` continues at step {last:,}"
        assert message in capsys.readouterr().err
        resume(path, progress=False)
    assert [line["step"] for line in lines(tmp_path / "one")] == [
        config.batch_size * number for number in range(1, config.total_updates + 1)
    ]
    assert lines(tmp_path / "one") == lines(tmp_path / "other")


@pytest.mark.parametrize("checkpoint_every", [10_000, RESTARTING.batch_size])
def test_a_stop_that_loses_steps_recommends_save_when_stopped(checkpoint_every, tmp_path, monkeypatch, capsys):
    config, update = replace(RESTARTING, policy_lag=0, checkpoint_every=checkpoint_every), Trainer.one_update
    monkeypatch.setattr(Trainer, "one_update", lambda self: os.kill(os.getpid(), signal.SIGTERM) or update(self))
    with pytest.raises(SystemExit):
        train(config, tmp_path / "run")
    restart = f"nothing is saved yet: `optimist resume {tmp_path / 'run'}` restarts at step 0"
    message = f"{restart} (--save-when-stopped would have saved here)"
    assert (message in capsys.readouterr().err) == (checkpoint_every == 10_000)
    if checkpoint_every == 10_000:
        monkeypatch.setattr(Trainer, "one_update", update)
        assert resume(tmp_path / "run", progress=False)["steps"] == config.total_steps
