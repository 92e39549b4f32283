"""`save_when_stopped`: a signal costs no step, also where environments must restart and a rollout is under way."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from optimist.training.loop import Trainer, resume, train
from tests.envs.atari.test_training import ATARI
from tests.training.test_loop import lines
from tests.training.test_policy_lag import RESTARTING

STOPPED = {
    "atari": replace(ATARI, total_steps=240, checkpoint_every=10_000, final_episodes=0),
    "atari, lagged": replace(ATARI, policy_lag=1, total_steps=240, checkpoint_every=10_000, final_episodes=0),
    "CartPole, lagged": replace(RESTARTING, checkpoint_every=10_000),
}


@pytest.mark.parametrize("name", STOPPED)
def test_save_when_stopped_loses_no_step_and_another_run_does_the_same(name, tmp_path, monkeypatch, capsys):
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
        last = (3 if config.policy_lag else 2) * config.batch_size  # with the rollout that was under way
        told = f"stopped at step {last:,}; `optimist resume {path}` goes on from step {last:,}"
        assert told in capsys.readouterr().err
        resume(path, progress=False)
    assert [line["step"] for line in lines(tmp_path / "one")] == [
        config.batch_size * number for number in range(1, config.total_updates + 1)
    ]
    assert lines(tmp_path / "one") == lines(tmp_path / "other")


@pytest.mark.parametrize("checkpoint_every", [10_000, RESTARTING.batch_size])
def test_whoever_loses_steps_by_stopping_is_told_of_it(checkpoint_every, tmp_path, monkeypatch, capsys):
    config, update = replace(RESTARTING, policy_lag=0, checkpoint_every=checkpoint_every), Trainer.one_update
    monkeypatch.setattr(Trainer, "one_update", lambda self: os.kill(os.getpid(), signal.SIGTERM) or update(self))
    with pytest.raises(SystemExit):
        train(config, tmp_path / "run")
    begins = f"nothing is saved yet: `optimist resume {tmp_path / 'run'}` begins at step 0"
    told = f"{begins} (--save-when-stopped would have saved here)"
    assert (told in capsys.readouterr().err) == (checkpoint_every == 10_000)
    if checkpoint_every == 10_000:
        monkeypatch.setattr(Trainer, "one_update", update)
        assert resume(tmp_path / "run", progress=False)["steps"] == config.total_steps
