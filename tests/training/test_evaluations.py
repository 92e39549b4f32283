"""Evaluations beside the training: the same numbers at the same place, however fast they come."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.envs.make import make_envs
from optimist.errors import OptimistError
from optimist.tracking.metrics import without_time
from optimist.tracking.metrics_log import read_metrics
from optimist.tracking.run_dir import RunDir
from optimist.training.build import make_policy
from optimist.training.evaluations import BackgroundPlayer
from optimist.training.loop import Trainer, resume, train

RUN = RunConfig(
    total_steps=640,
    env=EnvConfig(id="CartPole-v1", num_envs=2),
    algorithm=PPOConfig(rollout_steps=32, minibatch_size=64, epochs=1),
    evaluate_every=128,
    evaluate_episodes=3,
    checkpoint_every=192,
    tensorboard=False,
)
BESIDE = replace(RUN, evaluate_in="background")


def lines(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


def evaluations(path):
    """Step an evaluation is of → its mean return."""
    return {
        int(line["evaluation/step"]): line["evaluation/mean_return"]
        for line in lines(path)
        if "evaluation/step" in line
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluations")
    summaries = {"turn": train(RUN, folder / "turn", progress=False)}
    summaries["background"] = train(BESIDE, folder / "background", progress=False)
    return folder, summaries


def test_beside_the_training_they_are_the_same_evaluations(runs):
    folder, summaries = runs
    in_turn, beside = evaluations(folder / "turn"), evaluations(folder / "background")
    assert list(in_turn) == [128, 256, 384, 512, 640]
    assert beside == in_turn
    assert summaries["turn"]["best_evaluation"] == summaries["background"]["best_evaluation"]
    assert summaries["turn"]["last_100_return"] == summaries["background"]["last_100_return"]


def test_a_result_is_logged_when_the_next_begins_and_the_last_at_the_end(runs):
    told = {
        line["step"]: line["evaluation/step"] for line in lines(runs[0] / "background") if "evaluation/step" in line
    }
    assert told == {256: 128, 384: 256, 512: 384, 576: 512, 640: 640}


def test_one_due_just_before_the_end_does_not_displace_the_one_before_it(tmp_path):
    # 10 updates of 64 steps: due at 192, 384 and, with one update left, at 576, when that of 384 has to be told too.
    summary = train(replace(BESIDE, evaluate_every=192, checkpoint_every=640), tmp_path / "run", progress=False)
    told = [(line["step"], line["evaluation/step"]) for line in lines(tmp_path / "run") if "evaluation/step" in line]
    assert told == [(384, 192), (576, 384), (576, 576)]
    assert summary["best_evaluation"]["mean_return"] == max(evaluations(tmp_path / "run").values())


@pytest.mark.parametrize("config", [RUN, BESIDE], ids=["turn", "background"])
def test_sparse_lines_hold_every_evaluation(config, tmp_path):
    train(replace(config, log_every=7, checkpoint_every=640), tmp_path / "run", progress=False)
    assert list(evaluations(tmp_path / "run")) == [128, 256, 384, 512, 640]


def test_a_checkpoint_does_not_wait_for_an_evaluation(tmp_path, monkeypatch):
    monkeypatch.setattr(BackgroundPlayer, "result", lambda self: pytest.fail("waited"))
    with RunDir.create(tmp_path / "run", BESIDE) as run:
        trainer = Trainer(BESIDE, run)
        for _ in range(3):
            trainer.one_update()
        trainer._save()
        trainer.evaluations.close()
        trainer.envs.close()
    assert RunDir.read(tmp_path / "run").load_checkpoint()["evaluation"]["step"] == 128


@pytest.mark.skipif(not hasattr(os, "nice"), reason="a process of this system cannot be nice")
def test_the_process_beside_the_training_steps_back_behind_it(tmp_path):
    with RunDir.create(tmp_path / "run", BESIDE) as run:
        trainer = Trainer(BESIDE, run)
        for _ in range(4):
            trainer.one_update()  # the first result is there
        beside = os.getpriority(os.PRIO_PROCESS, trainer.evaluations.player.process.pid)
        assert beside > os.getpriority(os.PRIO_PROCESS, 0)
        trainer.evaluations.close()
        trainer.envs.close()


def test_a_cut_off_run_goes_on_with_the_pending_result(runs, tmp_path):
    with RunDir.create(tmp_path / "cut", BESIDE) as run:
        trainer = Trainer(BESIDE, run)
        for _ in range(3):  # to step 192: the evaluation of step 128 is under way and goes into the checkpoint
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


def test_environments_in_processes_of_their_own_can_be_evaluated_beside_the_training(tmp_path):
    config = replace(RUN, total_steps=192, evaluate_every=64, env=replace(RUN.env, vectorization="async"))
    for name, where in (("turn", "turn"), ("beside", "background")):
        train(replace(config, evaluate_in=where), tmp_path / name, progress=False)
    assert evaluations(tmp_path / "beside") == evaluations(tmp_path / "turn")
    assert list(evaluations(tmp_path / "turn")) == [64, 128, 192]


def test_a_player_that_died_is_told_in_one_line():
    player = BackgroundPlayer(BESIDE)
    player.process.kill()
    player.process.join()
    with pytest.raises(OptimistError, match=r"exit code -9.*evaluate_in = 'turn'"):
        player.result()
    player.close()


def test_a_signal_that_also_ends_the_player_leaves_a_run_that_goes_on_exactly(tmp_path, monkeypatch):
    config = replace(BESIDE, env=EnvConfig(id="optimist/DeepSea-v0", num_envs=2, kwargs={"size": 4}))
    train(config, tmp_path / "whole", progress=False)
    update = Trainer.one_update

    def signalled(self):
        metrics = update(self)
        if self.step == 320:  # an evaluation is being played, and the last checkpoint is behind
            player = self.evaluations.player
            player.process.kill()
            player.process.join()
            with suppress(EOFError, ConnectionError):  # a result that was already on its way is lost too
                while True:
                    player.ours.recv()
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
def test_the_player_ends_quietly_when_the_training_is_gone(read):
    """As a killed training leaves it: the connection is closed, and reset where a result lay unread."""
    player, policy = BackgroundPlayer(BESIDE), make_policy(BESIDE, make_envs(BESIDE.env))
    player.begin({name: tensor.numpy() for name, tensor in policy.state_dict().items()}, 0)
    assert player.ours.poll(60)
    if read:
        player.result()
    player.ours.close()
    player.process.join(60)
    assert player.process.exitcode == 0


def test_signals_that_reach_the_whole_group_are_for_the_training():
    player, policy = BackgroundPlayer(BESIDE), make_policy(BESIDE, make_envs(BESIDE.env))
    weights = {name: tensor.numpy() for name, tensor in policy.state_dict().items()}
    player.begin(weights, 0)
    first = player.result()  # it has started
    player.begin(weights, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(player.process.pid, number)
    assert player.result() == first
    player.close()
    assert not player.process.is_alive()


def test_the_player_starts_with_the_run_if_it_will_be_needed(tmp_path):
    for config, needed in ((BESIDE, True), (RUN, False), (replace(BESIDE, evaluate_every=10_000), False)):
        with (
            RunDir.create(tmp_path / str(config.evaluate_every + needed), config) as run,
            closing(Trainer(config, run)) as t,
        ):
            t.evaluations.prepare()
            assert (t.evaluations.player is not None) == needed


def test_a_player_that_fails_says_why():
    player = BackgroundPlayer(BESIDE)
    player.begin({}, 0)
    with pytest.raises(OptimistError, match="beside the training failed: RuntimeError"):
        player.result()
    player.close()


def test_a_player_that_cannot_start_says_why():
    """For example on a GPU that has no memory left for it; here, on one that does not exist."""
    player = BackgroundPlayer(replace(BESIDE, device="cuda:99"))
    player.begin({}, 0)
    with pytest.raises(OptimistError, match=r"beside the training failed: ConfigError: device 'cuda:99'"):
        player.result()
    player.close()
