"""The training loop: summary, metrics, reproducibility, exact resume, and errors."""

import dataclasses
import json
import math

import pytest

from optimist import api
from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.errors import NonFiniteLoss, OptimistError, RunFolderError
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from optimist.training.evaluate import evaluate
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.metrics import undocumented, without_time
from tests.training import broken

DEEPSEA = RunConfig(
    total_steps=2048,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 4}),
    network=NetworkConfig(hidden=(16,)),
    algorithm=PPOConfig(rollout_steps=32, minibatch_size=64, epochs=2, learning_rate=1e-3),
    opr=OPRConfig(bc_batch_size=32),
    checkpoint_every=1024,
    tensorboard=False,
)
BROKEN = dataclasses.replace(
    DEEPSEA, env=EnvConfig(id="tests/Broken-v0", num_envs=2), algorithm=PPOConfig(rollout_steps=4), checkpoint_every=8
)


def lines(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


def weights(path):
    return RunDir.read(path).read_final()[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("loop") / "run"
    return path, train(DEEPSEA, path, progress=False)


def test_the_summary_states_the_run_and_its_results(run):
    path, summary = run
    expected = {"env": "optimist/DeepSea-v0", "env_kwargs": {"size": 4}, "algorithm": "ppo+opr", "seed": 0}
    assert {key: summary[key] for key in expected} == expected
    assert (summary["steps"], summary["updates"], summary["episodes"]) == (2048, 8, 512)
    assert summary["statistic"].startswith("mean raw return of the last 100 training episodes")
    assert {"goal_seen", "first_goal_step", "goal_rate", "solved", "last_100_return"} <= summary.keys()
    assert summary["time/steps_per_second"] > 0
    assert json.loads((path / "summary.json").read_text()) == summary


def test_every_update_is_a_line_and_every_metric_is_documented(run):
    found = read_metrics(run[0] / "metrics.jsonl")
    assert [line["step"] for line in found] == list(range(256, 2049, 256))
    assert undocumented({name for line in found for name in line}) == []
    for name in ("policy/entropy", "loss/anchor", "loss/bc", "opr/memory_fill", "opr/bc_coef", "rollout/goal_rate"):
        assert name in found[-1], name
    assert all(line["time/collect"] > 0 and line["time/update"] > 0 for line in found)


def test_the_last_two_checkpoints_are_kept(run):
    assert sorted(p.name for p in (run[0] / "checkpoints").iterdir()) == ["step-1024", "step-2048"]


def test_runs_with_the_same_seed_are_equal_and_with_another_seed_differ(run, tmp_path):
    train(DEEPSEA, tmp_path / "same", progress=False)
    train(dataclasses.replace(DEEPSEA, seed=1), tmp_path / "other", progress=False)
    assert lines(tmp_path / "same") == lines(run[0]) != lines(tmp_path / "other")
    same, other = weights(tmp_path / "same"), weights(tmp_path / "other")
    assert all(value.equal(same[name]) for name, value in weights(run[0]).items())
    assert not all(value.equal(same[name]) for name, value in other.items())


def test_the_intervals_of_saving_logging_and_evaluating_do_not_change_the_policy(run, tmp_path):
    quiet = dataclasses.replace(DEEPSEA, checkpoint_every=10**9, log_every=3, evaluate_every=512, evaluate_episodes=4)
    train(quiet, tmp_path / "quiet", progress=False)
    found = read_metrics(tmp_path / "quiet" / "metrics.jsonl")
    evaluated = {line["step"]: math.isfinite(line.get("evaluation/mean_return", math.nan)) for line in found}
    # each evaluation has a line at its own step
    assert evaluated == {512: True, 768: False, 1024: True, 1536: True, 2048: True}
    assert all(value.equal(weights(run[0])[name]) for name, value in weights(tmp_path / "quiet").items())


def test_evaluations_are_named_in_the_summary_and_do_not_change_the_training(run, tmp_path):
    config = dataclasses.replace(DEEPSEA, evaluate_every=512, evaluate_episodes=20, final_episodes=30)
    summary = train(config, tmp_path / "run", progress=False)
    assert summary["last_100_return"] == run[1]["last_100_return"]
    final = summary["final_evaluation"]
    assert final["statistic"] == "mean raw return of 30 fresh episodes (sampled actions), final policy"
    assert final["episodes"] == 30
    assert final["mean_return"] != evaluate(tmp_path / "run", episodes=30)["mean_return"]  # other seeds
    evaluations = {
        line["step"]: line["evaluation/mean_return"]
        for line in read_metrics(tmp_path / "run/metrics.jsonl")
        if "evaluation/mean_return" in line
    }
    assert list(evaluations) == [512, 1024, 1536, 2048]
    best = summary["best_evaluation"]
    assert best["mean_return"] == max(evaluations.values()) == evaluations[best["step"]]
    assert "biased upwards" in best["statistic"]
    assert "final_evaluation" not in run[1]
    assert "best_evaluation" not in run[1]


def test_a_run_stopped_in_its_final_evaluation_ends_as_if_never_stopped(tmp_path, monkeypatch):
    config = dataclasses.replace(DEEPSEA, final_episodes=10)
    whole = train(config, tmp_path / "whole", progress=False)

    def stop(self, interrupt):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_final_evaluation", stop)
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "stopped", progress=False)
    assert resume(tmp_path / "stopped", progress=False)["final_evaluation"] == whole["final_evaluation"]
    assert lines(tmp_path / "stopped") == lines(tmp_path / "whole")


def test_resume_does_not_change_a_finished_run(run):
    before = {p: p.read_bytes() for p in run[0].rglob("*") if p.is_file()}
    assert resume(run[0], progress=False) == run[1]
    assert {p: p.read_bytes() for p in run[0].rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("config", [DEEPSEA, dataclasses.replace(DEEPSEA, env=EnvConfig(id="CartPole-v1", num_envs=8))])
def test_a_run_resumed_at_any_checkpoint_ends_as_if_never_stopped(config, tmp_path, monkeypatch):
    config = dataclasses.replace(config, checkpoint_every=512)
    train(config, tmp_path / "whole", progress=False)
    update, calls = Trainer.one_update, []

    def stop_three_times(self):
        calls.append(self.update)
        if len(calls) in (1, 4, 9):  # before the first checkpoint, between two, and later
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop_three_times)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "stopped", progress=False)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            resume(tmp_path / "stopped", progress=False)
    resume(tmp_path / "stopped", progress=False)
    assert lines(tmp_path / "stopped") == lines(tmp_path / "whole")
    assert (tmp_path / "stopped/final.safetensors").read_bytes() == (tmp_path / "whole/final.safetensors").read_bytes()


def test_no_episode_spans_a_restart_of_its_environment(tmp_path):
    env = EnvConfig(id="CartPole-v1", num_envs=4)
    config = dataclasses.replace(DEEPSEA, env=env, checkpoint_every=128, opr=OPRConfig(return_window=10_000))
    with RunDir.create(tmp_path / "run", config) as run_dir:
        trainer = Trainer(config, run_dir)
        returns, add = [], trainer.scores.add
        trainer.scores.add = lambda records: (returns.extend(r.raw_return for r in records), add(records))
        trainer.run(progress=False)
    assert len(returns) > 20
    assert list(trainer.algorithm.anchor.windows.windows[0].returns) == returns


@pytest.mark.parametrize("what", ["reward", "observation"])
def test_nan_from_the_environment_is_a_named_error_and_keeps_the_checkpoints(what, tmp_path):
    config = dataclasses.replace(BROKEN, env=dataclasses.replace(BROKEN.env, kwargs={"what": what}))
    with pytest.raises(NonFiniteLoss, match=f"tests/Broken-v0 gave an? {what} that is nan"):
        train(config, tmp_path / "run", progress=False)
    assert [line["step"] for line in lines(tmp_path / "run")] == [8, 16, 24, 32]
    assert sorted(p.name for p in (tmp_path / "run/checkpoints").iterdir()) == ["step-24", "step-32"]
    assert not (tmp_path / "run/final.safetensors").exists()
    assert not (tmp_path / "run/summary.json").exists()
    with pytest.raises(RunFolderError, match="is not finished"):
        api.load(tmp_path / "run")


def test_weights_that_are_not_finite_are_never_saved(tmp_path, monkeypatch):
    update = Trainer.one_update

    def spoil_weights(self):
        metrics = update(self)
        if self.update == 6:  # the losses were finite; the last gradient was not
            next(self.policy.parameters()).data[0] = math.inf
        return metrics

    monkeypatch.setattr(Trainer, "one_update", spoil_weights)
    config = dataclasses.replace(DEEPSEA, checkpoint_every=512)
    with pytest.raises(NonFiniteLoss, match="weights became nan or infinite by update 6"):
        train(config, tmp_path / "run", progress=False)
    assert sorted(p.name for p in (tmp_path / "run/checkpoints").iterdir()) == ["step-1024", "step-512"]


def test_the_environments_are_closed_after_an_error(tmp_path, monkeypatch):
    closed = []
    monkeypatch.setattr(broken.Broken, "close", lambda self: closed.append(self))
    config = dataclasses.replace(BROKEN, env=dataclasses.replace(BROKEN.env, kwargs={"what": "reward"}))
    with pytest.raises(NonFiniteLoss):
        train(config, tmp_path / "run", progress=False)
    assert len(closed) == 2


def test_a_run_with_zero_strength_saves_the_same_policy_as_plain_ppo(tmp_path):
    zero = OPRConfig(shaping_scale=0.0, bc_coef=0.0, augment_share=0.0, bc_phase_interval=0)
    train(dataclasses.replace(DEEPSEA, opr=zero), tmp_path / "zero", progress=False)
    train(dataclasses.replace(DEEPSEA, opr=OPRConfig(enabled=False)), tmp_path / "plain", progress=False)
    assert (tmp_path / "zero/final.safetensors").read_bytes() == (tmp_path / "plain/final.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("env", "algorithm"),
    [
        (EnvConfig(id="CartPole-v1", num_envs=4), A2CConfig()),
        (EnvConfig(id="CartPole-v1", num_envs=2, vectorization="sync"), PPOConfig(rollout_steps=16)),
        (EnvConfig(id="Pendulum-v1", num_envs=2), PPOConfig(rollout_steps=16)),
        (EnvConfig(id="optimist/KeyDoorTreasure-v0", num_envs=4), PPOConfig(rollout_steps=16)),
    ],
    ids=["a2c", "sync", "gaussian", "keydoor"],
)
def test_other_tasks_and_learners_run_end_to_end(env, algorithm, tmp_path):
    config = dataclasses.replace(DEEPSEA, env=env, algorithm=algorithm, total_steps=512)
    assert train(config, tmp_path / "run", progress=False)["steps"] == 512 // config.batch_size * config.batch_size
    assert evaluate(tmp_path / "run", episodes=2)["episodes"] == 2


def test_environments_in_processes_run_too(tmp_path):
    env = EnvConfig(id="CartPole-v1", num_envs=2, vectorization="async")
    config = dataclasses.replace(DEEPSEA, env=env, algorithm=PPOConfig(rollout_steps=8), total_steps=32)
    assert train(config, tmp_path / "run", progress=False)["updates"] == 2


def test_an_evaluation_is_reproducible_and_depends_on_its_seed(run):
    first, again = evaluate(run[0], episodes=40), evaluate(run[0], episodes=40)
    assert first == again
    assert first["actions"] == "sampled"
    assert evaluate(run[0], episodes=40, seed=1)["mean_return"] != first["mean_return"]
    assert evaluate(run[0], episodes=2, greedy=True)["statistic"].endswith("(greedy actions), final policy")


def test_a_folder_without_a_run_is_an_error(tmp_path):
    for call in (api.load, resume, evaluate):
        with pytest.raises(OptimistError, match="is not a run folder"):
            call(tmp_path)
