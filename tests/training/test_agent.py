"""The agent of a run: its final policy, or its newest checkpoint while the run is in progress."""

import dataclasses

import pytest

from optimist.api import load
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.config.toml import to_toml
from optimist.errors import CheckpointError, RunFolderError
from optimist.tracking.run_dir import RunDir
from optimist.training.agent import newest_agent
from optimist.training.evaluate import evaluate
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
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
    """A function that trains a run and interrupts its second update."""
    update = Trainer.one_update

    def stop_at_second_update(self):
        if self.update == 1:
            raise KeyboardInterrupt
        return update(self)

    def train_and_stop(config, path):
        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "one_update", stop_at_second_update)
            with pytest.raises(KeyboardInterrupt):
                train(config, path, progress=False)
        return path

    return train_and_stop


def test_a_run_in_progress_acts_with_its_newest_checkpoint(stopped, tmp_path):
    run = stopped(CONFIG, tmp_path / "run")
    agent, which = newest_agent(run)
    assert which == "policy at step 128"
    saved = RunDir.read(run).load_checkpoint()["algorithm"]["policy"]
    for name, weight in agent.policy.state_dict().items():
        assert weight.equal(saved[name])
    assert film_agent(run).title.startswith("policy at step 128, sampled")
    assert evaluate(run, episodes=3)["statistic"].endswith("3 fresh episodes (sampled actions), policy at step 128")


def test_a_finished_run_acts_with_its_final_policy(tmp_path):
    train(CONFIG, tmp_path / "run", progress=False)
    agent, which = newest_agent(tmp_path / "run")
    assert which == "final policy"
    last = load(tmp_path / "run").policy.state_dict()
    checkpoint = RunDir.read(tmp_path / "run").load_checkpoint()["algorithm"]["policy"]
    assert all(weight.equal(last[name]) for name, weight in agent.policy.state_dict().items())
    assert all(weight.equal(checkpoint[name]) for name, weight in last.items())
    assert evaluate(tmp_path / "run", episodes=2)["statistic"].endswith("final policy")


def test_a_run_without_a_checkpoint_has_no_agent(stopped, tmp_path):
    run = stopped(dataclasses.replace(CONFIG, checkpoint_every=10_000), tmp_path / "run")
    for use in (film_agent, evaluate):
        with pytest.raises(RunFolderError, match="has no checkpoint yet; the first is saved at 256 steps"):
            use(run)


def test_weights_that_do_not_fit_the_config_are_an_error(stopped, tmp_path):
    run = stopped(CONFIG, tmp_path / "run")
    config = run / "config.toml"
    config.write_text(config.read_text().replace("hidden = [\n    8,\n]", "hidden = [\n    9,\n]"))
    with pytest.raises(CheckpointError, match=r"policy at step 128 of .*run does not fit its config: .*size mismatch"):
        evaluate(run)


def test_a_run_that_is_extended_acts_with_its_newest_checkpoint_again(tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(CONFIG, run, progress=False)
    assert newest_agent(run)[1] == "final policy"
    (run / "config.toml").write_text(to_toml(dataclasses.replace(CONFIG, total_steps=512)))
    (run / "summary.json").unlink()
    assert newest_agent(run)[1] == "final policy"  # until the first new checkpoint
    update = Trainer.one_update

    def stop_after_one_update(self):
        if self.update == 3:
            raise KeyboardInterrupt
        return update(self)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "one_update", stop_after_one_update)
        with pytest.raises(KeyboardInterrupt):
            resume(run, progress=False)
    assert newest_agent(run)[1] == "policy at step 384"
    with pytest.raises(RunFolderError, match="the run is not finished"):
        load(run)
    resume(run, progress=False)
    assert newest_agent(run)[1] == "final policy"
    assert load(run).policy.state_dict().keys() == newest_agent(run)[0].policy.state_dict().keys()
