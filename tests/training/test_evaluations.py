"""Evaluations during training: those of a background process are the same, and logged at fixed steps."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.envs.make import make_envs
from optimist.errors import OptimistError
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from optimist.training.build import make_policy
from optimist.training.evaluations import EvaluationWorker
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.metrics import without_time

RUN = RunConfig(
    total_steps=640,
    env=EnvConfig(id="CartPole-v1", num_envs=2),
    algorithm=PPOConfig(rollout_steps=32, minibatch_size=64, epochs=1),
    evaluate_every=128,
    evaluate_episodes=3,
    checkpoint_every=192,
    tensorboard=False,
)
BACKGROUND = replace(RUN, evaluate_in="background")


def lines(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


def evaluations(path):
    """Step of the evaluated policy → its mean return."""
    return {
        int(line["evaluation/step"]): line["evaluation/mean_return"]
        for line in lines(path)
        if "evaluation/step" in line
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluations")
    summaries = {"turn": train(RUN, folder / "turn", progress=False)}
    summaries["background"] = train(BACKGROUND, folder / "background", progress=False)
    return folder, summaries


def test_a_background_process_gives_the_same_evaluations(runs):
    folder, summaries = runs
    in_turn, background = evaluations(folder / "turn"), evaluations(folder / "background")
    assert list(in_turn) == [128, 256, 384, 512, 640]
    assert background == in_turn
    assert summaries["turn"]["best_evaluation"] == summaries["background"]["best_evaluation"]
    assert summaries["turn"]["last_100_return"] == summaries["background"]["last_100_return"]


def test_a_background_result_is_logged_when_the_next_evaluation_starts_or_at_the_end(runs):
    logged = {
        line["step"]: line["evaluation/step"] for line in lines(runs[0] / "background") if "evaluation/step" in line
    }
    assert logged == {256: 128, 384: 256, 512: 384, 576: 512, 640: 640}


def test_an_evaluation_before_the_last_update_does_not_drop_the_previous_result(tmp_path):
    # 10 updates of 64 steps: due at 192, 384 and 576. One update is left then, so the result of 384 is logged too.
    summary = train(replace(BACKGROUND, evaluate_every=192, checkpoint_every=640), tmp_path / "run", progress=False)
    logged = [(line["step"], line["evaluation/step"]) for line in lines(tmp_path / "run") if "evaluation/step" in line]
    assert logged == [(384, 192), (576, 384), (576, 576)]
    assert summary["best_evaluation"]["mean_return"] == max(evaluations(tmp_path / "run").values())


@pytest.mark.parametrize("config", [RUN, BACKGROUND], ids=["turn", "background"])
def test_sparse_lines_hold_every_evaluation(config, tmp_path):
    train(replace(config, log_every=7, checkpoint_every=640), tmp_path / "run", progress=False)
    assert list(evaluations(tmp_path / "run")) == [128, 256, 384, 512, 640]


def test_a_checkpoint_does_not_wait_for_an_evaluation(tmp_path, monkeypatch):
    monkeypatch.setattr(EvaluationWorker, "result", lambda self: pytest.fail("waited"))
    with RunDir.create(tmp_path / "run", BACKGROUND) as run:
        trainer = Trainer(BACKGROUND, run)
        for _ in range(3):
            trainer.one_update()
        trainer._save()
        trainer.evaluations.close()
        trainer.envs.close()
    assert RunDir.read(tmp_path / "run").load_checkpoint()["evaluation"]["step"] == 128


@pytest.mark.skipif(not hasattr(os, "nice"), reason="a process of this system cannot be nice")
def test_the_background_process_has_a_lower_priority(tmp_path):
    with RunDir.create(tmp_path / "run", BACKGROUND) as run:
        trainer = Trainer(BACKGROUND, run)
        for _ in range(4):
            trainer.one_update()  # the first result has arrived
        niceness = os.getpriority(os.PRIO_PROCESS, trainer.evaluations.worker.process.pid)
        assert niceness > os.getpriority(os.PRIO_PROCESS, 0)
        trainer.evaluations.close()
        trainer.envs.close()


def test_a_resumed_run_repeats_the_pending_evaluation(runs, tmp_path):
    with RunDir.create(tmp_path / "cut", BACKGROUND) as run:
        trainer = Trainer(BACKGROUND, run)
        for _ in range(3):  # to step 192: the evaluation of step 128 is in progress and part of the checkpoint
            trainer.one_update()
        assert trainer.evaluations.pending == 128
        trainer._save()
        trainer.evaluations.close()
        trainer.envs.close()
    resume(tmp_path / "cut", progress=False)
    late = [line for line in lines(runs[0] / "background") if line["step"] > 192]
    assert [line.get("evaluation/mean_return") for line in lines(tmp_path / "cut")] == [
        line.get("evaluation/mean_return") for line in late
    ]


def test_async_environments_can_be_evaluated_in_the_background(tmp_path):
    config = replace(RUN, total_steps=192, evaluate_every=64, env=replace(RUN.env, vectorization="async"))
    for where in ("turn", "background"):
        train(replace(config, evaluate_in=where), tmp_path / where, progress=False)
    assert evaluations(tmp_path / "background") == evaluations(tmp_path / "turn")
    assert list(evaluations(tmp_path / "turn")) == [64, 128, 192]


def test_an_evaluation_process_that_died_is_reported_with_its_exit_code():
    worker = EvaluationWorker(BACKGROUND)
    worker.process.kill()
    worker.process.join()
    with pytest.raises(OptimistError, match=r"exit code -9.*evaluate_in = 'turn'"):
        worker.result()
    worker.close()


def test_a_run_resumes_exactly_after_a_signal_that_also_killed_the_evaluation_process(tmp_path, monkeypatch):
    config = replace(BACKGROUND, env=EnvConfig(id="optimist/DeepSea-v0", num_envs=2, kwargs={"size": 4}))
    train(config, tmp_path / "whole", progress=False)
    update = Trainer.one_update

    def signalled(self):
        metrics = update(self)
        if self.step == 320:  # an evaluation is in progress, and the last checkpoint is older
            worker = self.evaluations.worker
            worker.process.kill()
            worker.process.join()
            with suppress(EOFError, ConnectionError):  # a result that was already sent is lost too
                while True:
                    worker.connection.recv()
            os.kill(os.getpid(), signal.SIGTERM)
        return metrics

    monkeypatch.setattr(Trainer, "one_update", signalled)
    with pytest.raises(SystemExit) as stopped:
        train(config, tmp_path / "cut", progress=False)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert RunDir.read(tmp_path / "cut").last_saved == 320  # a checkpoint needs no result
    monkeypatch.setattr(Trainer, "one_update", update)
    resume(tmp_path / "cut", progress=False)
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")


@pytest.mark.parametrize("read", [True, False])
def test_the_evaluation_process_exits_when_the_trainer_is_gone(read):
    """A killed trainer leaves a closed connection, or one that is reset because a result was not read."""
    worker, policy = EvaluationWorker(BACKGROUND), make_policy(BACKGROUND, make_envs(BACKGROUND.env))
    worker.send({name: tensor.numpy() for name, tensor in policy.state_dict().items()}, 0)
    assert worker.connection.poll(60)
    if read:
        worker.result()
    worker.connection.close()
    worker.process.join(60)
    assert worker.process.exitcode == 0


def test_the_evaluation_process_ignores_sigint_and_sigterm():
    worker, policy = EvaluationWorker(BACKGROUND), make_policy(BACKGROUND, make_envs(BACKGROUND.env))
    weights = {name: tensor.numpy() for name, tensor in policy.state_dict().items()}
    worker.send(weights, 0)
    first = worker.result()  # it has started
    worker.send(weights, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(worker.process.pid, number)
    assert worker.result() == first
    worker.close()
    assert not worker.process.is_alive()


def test_the_evaluation_process_starts_with_the_run_only_if_it_is_needed(tmp_path):
    for config, needed in ((BACKGROUND, True), (RUN, False), (replace(BACKGROUND, evaluate_every=10_000), False)):
        with (
            RunDir.create(tmp_path / str(config.evaluate_every + needed), config) as run,
            closing(Trainer(config, run)) as trainer,
        ):
            trainer.evaluations.start()
            assert (trainer.evaluations.worker is not None) == needed


def test_the_error_of_a_failed_background_evaluation_is_reported():
    worker = EvaluationWorker(BACKGROUND)
    worker.send({}, 0)
    with pytest.raises(OptimistError, match="background evaluation failed: RuntimeError"):
        worker.result()
    worker.close()


def test_an_evaluation_process_that_cannot_start_is_reported_with_its_error():
    """Here its GPU does not exist; in practice it may be out of memory."""
    worker = EvaluationWorker(replace(BACKGROUND, device="cuda:99"))
    worker.send({}, 0)
    with pytest.raises(OptimistError, match=r"background evaluation failed: ConfigError: device 'cuda:99'"):
        worker.result()
    worker.close()
