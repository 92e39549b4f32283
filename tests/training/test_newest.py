"""A run that has not ended is watched and evaluated as it stands."""

import dataclasses

import pytest

from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.door import load
from optimist.errors import CheckpointError, RunFolderError
from optimist.tracking.config_io import to_toml
from optimist.tracking.run_dir import RunDir
from optimist.training.evaluate import evaluate
from optimist.training.loop import Trainer, resume, train
from optimist.training.newest import newest_agent
from optimist.training.watch import film_agent

CONFIG = RunConfig(
    total_steps=256,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 4}),
    network=NetworkConfig(hidden=(8,)),
    algorithm=PPOConfig(rollout_steps=16, minibatch_size=64, epochs=1),
    checkpoint_every=128,
    tensorboard=False,
)


@pytest.fixture
def stopped(monkeypatch):
    """Trains until the second update, which is interrupted."""
    update = Trainer.one_update

    def stop(self):
        if self.update == 1:
            raise KeyboardInterrupt
        return update(self)

    def until_stopped(config, path):
        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "one_update", stop)
            with pytest.raises(KeyboardInterrupt):
                train(config, path, progress=False)
        return path

    return until_stopped


def test_a_run_in_progress_plays_with_its_newest_checkpoint(stopped, tmp_path):
    run = stopped(CONFIG, tmp_path / "run")
    agent, which = newest_agent(run)
    assert which == "policy at step 128"
    saved = RunDir.read(run).load_checkpoint()["algorithm"]["policy"]
    for name, weight in agent.policy.state_dict().items():
        assert weight.equal(saved[name])
    assert film_agent(run).title.startswith("policy at step 128, sampled")
    assert evaluate(run, episodes=3)["statistic"].endswith("3 fresh episodes (sampled actions), policy at step 128")


def test_a_finished_run_plays_with_its_last_policy(tmp_path):
    train(CONFIG, tmp_path / "run", progress=False)
    agent, which = newest_agent(tmp_path / "run")
    assert which == "final policy"
    last = load(tmp_path / "run").policy.state_dict()
    checkpoint = RunDir.read(tmp_path / "run").load_checkpoint()["algorithm"]["policy"]
    assert all(weight.equal(last[name]) for name, weight in agent.policy.state_dict().items())
    assert all(weight.equal(checkpoint[name]) for name, weight in last.items())
    assert evaluate(tmp_path / "run", episodes=2)["statistic"].endswith("final policy")


def test_before_the_first_checkpoint_there_is_nothing_to_play_with(stopped, tmp_path):
    run = stopped(dataclasses.replace(CONFIG, checkpoint_every=10_000), tmp_path / "run")
    for look in (film_agent, evaluate):
        with pytest.raises(RunFolderError, match="has no checkpoint yet; the first comes at 256 steps"):
            look(run)


def test_weights_that_do_not_fit_the_config_are_one_line(stopped, tmp_path):
    run = stopped(CONFIG, tmp_path / "run")
    config = run / "config.toml"
    config.write_text(config.read_text().replace("hidden = [\n    8,\n]", "hidden = [\n    9,\n]"))
    with pytest.raises(CheckpointError, match=r"policy at step 128 of .*run does not fit its config: .*size mismatch"):
        evaluate(run)


def test_a_run_that_is_trained_further_plays_with_its_newest_checkpoint_again(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(CONFIG, run, progress=False)
    assert newest_agent(run)[1] == "final policy"
    (run / "config.toml").write_text(to_toml(dataclasses.replace(CONFIG, total_steps=512)))
    (run / "summary.json").unlink()
    assert newest_agent(run)[1] == "final policy"  # still what it has
    update = Trainer.one_update

    def stop_after_one(self):
        if self.update == 3:
            raise KeyboardInterrupt
        return update(self)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "one_update", stop_after_one)
        with pytest.raises(KeyboardInterrupt):
            resume(run, progress=False)
    assert newest_agent(run)[1] == "policy at step 384"
    with pytest.raises(RunFolderError, match="the run has not ended"):
        load(run)
    resume(run, progress=False)
    assert newest_agent(run)[1] == "final policy"
    assert load(run).policy.state_dict().keys() == newest_agent(run)[0].policy.state_dict().keys()
