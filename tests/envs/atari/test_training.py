"""Short Atari runs: header, memory, evaluation of whole episodes, exact resume, GIF."""

from __future__ import annotations

import dataclasses
from contextlib import closing

import numpy as np
import pytest
import torch
from PIL import Image

from optimist.cli.main import main
from optimist.config import DQNConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.envs.atari.collector import AtariCollector
from optimist.envs.atari.subprocess_emulators import SUPPORTED
from optimist.errors import WorkerDied
from optimist.presets import get_preset
from optimist.rollout.collector import Collector
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from optimist.training.evaluate import play
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from optimist.training.watch import film_memory
from tests.envs.atari.test_memory import RandomPolicy
from tests.metrics import without_time

ATARI = RunConfig(
    total_steps=480,
    # An episode ends every 20 steps, so that the memory fills.
    env=EnvConfig(
        id="optimist/Atari-v0",
        num_envs=2,
        kwargs={"game": "Breakout", "sticky": 0.25, "emulator": "ale", "worker_type": "none", "max_frames": 80},
        clip_rewards=True,
        frame_stack=4,
    ),
    network=NetworkConfig(kind="nature_cnn", cnn_features=32),
    algorithm=PPOConfig(rollout_steps=24, minibatch_size=24, epochs=1),
    opr=OPRConfig(capacity_transitions=100, capacity_episodes=20, bc_batch_size=8, max_episode_steps=50),
    checkpoint_every=96,
    final_episodes=2,
    tensorboard=False,
)


def lines(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("atari") / "run"
    return path, train(ATARI, path, progress=False)


def test_run_fills_its_memory_and_evaluates_whole_episodes(run):
    _, summary = run
    assert summary["env_kwargs"]["sticky"] == 0.25
    assert summary["final_evaluation"]["episodes"] == 2
    assert summary["final_evaluation"]["mean_length"] == 20
    found = lines(run[0])
    assert found[-1]["opr/memory_episodes"] == 5  # of 20 steps each
    assert found[-1]["opr/memory_bytes"] < 6_000_000  # single frames: 100 steps in M, 75 of each unfinished episode


def test_run_stopped_between_checkpoints_resumes_exactly(run, tmp_path, monkeypatch):
    update, calls = Trainer.one_update, []

    def stop_twice(self):
        calls.append(self.update)
        if len(calls) in (2, 7):
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop_twice)
    with pytest.raises(KeyboardInterrupt):
        train(ATARI, tmp_path / "run", progress=False)
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "run", progress=False)
    summary = resume(tmp_path / "run", progress=False)
    assert lines(tmp_path / "run") == lines(run[0])
    assert summary["final_evaluation"] == run[1]["final_evaluation"]
    assert (tmp_path / "run/final.safetensors").read_bytes() == (run[0] / "final.safetensors").read_bytes()


def test_evaluation_episodes_are_whole_episodes_with_raw_scores():
    env = dataclasses.replace(
        ATARI.env, kwargs={"game": "Breakout", "sticky": 0.0, "emulator": "ale", "worker_type": "none"}
    )
    torch.manual_seed(0)
    found = play(RandomPolicy(4), env, 2, greedy=False, seed=1, task_seed=0)
    assert len(found) == 2
    assert all(game["length"] > 80 for game in found)  # five lives; the first is over after about 25 steps
    assert all(float(game["return"]).is_integer() for game in found)


def test_fire_that_replaced_an_action_is_stored_or_masked_as_configured(tmp_path):
    rollouts = []
    stock = dataclasses.replace(get_preset("atari/ppo")(game="Breakout").env, num_envs=2)
    for executed in (False, True):
        env = stock if not executed else dataclasses.replace(stock, forced_actions="masked")
        learner = dataclasses.replace(ATARI.algorithm, rollout_steps=200)
        config = dataclasses.replace(ATARI, env=env, algorithm=learner, opr=OPRConfig(enabled=False))
        with RunDir.create(tmp_path / str(executed), config) as folder, closing(Trainer(config, folder)) as trainer:
            rollouts.append(trainer.collector.collect())
    drawn, played = rollouts
    assert drawn.obs.equal(played.obs)  # the same games
    pressed = drawn.actions != played.actions
    assert drawn.forced is None
    assert played.forced is not None
    assert not (pressed & ~played.forced).any()
    behind_lost_lives = torch.cat([torch.zeros(1, 2, dtype=torch.bool), (drawn.dones & ~drawn.episode_ends)[:-1]])
    assert pressed.any()
    assert (played.actions[behind_lost_lives] == 1).all()  # FIRE
    assert not (pressed & ~behind_lost_lives).any()


def test_header_states_the_sticky_probability(tmp_path, capsys):
    arguments = ["--game", "Pong", "--sticky", "0.25", "--total-steps", "16", "--env.num-envs", "1"]
    arguments += ["--algorithm.rollout-steps", "16", "--final-episodes", "0", "--no-tensorboard", "--json"]
    assert main(["train", "atari/ppo", *arguments, "--out", str(tmp_path / "run")]) == 0
    assert "PPO on optimist/Atari-v0(game=Pong, sticky=0.25): 16 steps, 1 envs" in capsys.readouterr().err


def test_unknown_game_is_a_one_line_error_and_leaves_no_folder(tmp_path, capsys):
    assert main(["train", "atari/ppo", "--game", "Brekout", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == "optimist: error: no Atari game 'Brekout'; did you mean 'Breakout'?\n"
    assert not (tmp_path / "run").exists()


def test_agent_and_memory_can_be_watched(run, tmp_path, capsys):
    out = tmp_path / "agent.gif"
    assert main(["watch", str(run[0]), "--out", str(out)]) == 0
    assert "final policy, sampled actions: return " in capsys.readouterr().out
    with Image.open(out) as film:
        assert film.size == (320, 420)
        assert film.n_frames > 5
    film = film_memory(run[0], 1)
    assert (len(film.pictures), film.pictures[0].shape) == (20, (84, 84))
    memory = RunDir.read(run[0]).load_checkpoint()["algorithm"]["anchor"]["memory"]
    stored = memory["pools"]["frames"].numpy()
    assert any(np.array_equal(film.pictures[0], frame) for frame in stored)
    assert not any(np.array_equal(picture, np.zeros((84, 84))) for picture in film.pictures)


def test_delayed_rewards_are_paid_when_due(tmp_path):
    """AtariCollector would bypass the wrapper that delays rewards."""
    env = dataclasses.replace(
        ATARI.env, reward_delay=50, kwargs={"game": "Pong", "sticky": 0.0, "emulator": "ale", "worker_type": "none"}
    )
    config = dataclasses.replace(ATARI, env=env)
    with RunDir.create(tmp_path / "delayed", config) as run:
        trainer = Trainer(config, run)
        rewards = torch.cat([trainer.collector.collect().raw_rewards for _ in range(10)])
        trainer.close()
    paid_at = rewards.any(1).nonzero().flatten()
    assert len(paid_at) > 0
    assert (paid_at % 50 == 49).all()


def test_checkpoints_change_nothing_and_the_memory_keeps_episodes_across_them(run, tmp_path):
    """An episode has 20 steps and an update 24, so nearly all episodes are in play at a checkpoint."""
    summary = train(dataclasses.replace(ATARI, checkpoint_every=48), tmp_path / "often", progress=False)
    train(dataclasses.replace(ATARI, checkpoint_every=10**9), tmp_path / "never", progress=False)
    assert lines(tmp_path / "often") == lines(tmp_path / "never") == lines(run[0])
    assert summary["episodes"] == 2 * (480 // 2 // 20)
    weights = [(path / "final.safetensors").read_bytes() for path in (tmp_path / "often", tmp_path / "never", run[0])]
    assert weights[0] == weights[1] == weights[2]


def test_run_uses_the_collector_of_its_environment(tmp_path):
    with RunDir.create(tmp_path / "run", ATARI) as run, closing(Trainer(ATARI, run)) as trainer:
        assert isinstance(trainer.collector, AtariCollector)


def test_group_keys_use_the_plain_collector(tmp_path):
    config = dataclasses.replace(ATARI, env=dataclasses.replace(ATARI.env, group_key="lives"))
    with RunDir.create(tmp_path / "run", config) as run, closing(Trainer(config, run)) as trainer:
        assert type(trainer.collector) is Collector
        groups = trainer.collector.collect().groups
        assert groups is not None
        assert 0 <= int(groups.min()) <= int(groups.max()) <= 5


def test_a_run_that_does_not_save_its_replay_restarts_games_only_when_it_is_resumed(tmp_path, monkeypatch):
    learner = DQNConfig(rollout_steps=24, gradient_steps=1, learning_starts=48, replay_capacity=400, save_replay=False)
    config = dataclasses.replace(ATARI, algorithm=learner, total_steps=288, checkpoint_every=96, final_episodes=0)
    train(config, tmp_path / "often", progress=False)
    train(dataclasses.replace(config, checkpoint_every=10**9), tmp_path / "never", progress=False)
    assert lines(tmp_path / "often") == lines(tmp_path / "never")
    one_update = Trainer.one_update

    def stop(self):
        if self.step == 192:
            monkeypatch.setattr(Trainer, "one_update", one_update)
            raise KeyboardInterrupt
        return one_update(self)

    monkeypatch.setattr(Trainer, "one_update", stop)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "cut", progress=False)
    assert resume(tmp_path / "cut", progress=False)["steps"] == 288


@pytest.mark.skipif(not SUPPORTED, reason="worker processes need Linux")
def test_run_that_loses_a_worker_names_the_resume_command_and_resumes_exactly(tmp_path, monkeypatch):
    config = dataclasses.replace(
        ATARI,
        env=dataclasses.replace(ATARI.env, kwargs=ATARI.env.kwargs | {"worker_type": "processes", "num_workers": 2}),
    )
    train(config, tmp_path / "whole", progress=False)
    one_update = Trainer.one_update

    def kill_supervisor(self):
        if self.step == 288:
            self.envs.unwrapped.emulators.supervisor.kill()
        return one_update(self)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "one_update", kill_supervisor)
        with pytest.raises(WorkerDied) as caught:
            train(config, tmp_path / "run", progress=False)
    error = "an emulator process of Breakout exited unexpectedly: killed by signal 9; "
    assert str(caught.value) == f"{error}`optimist resume {tmp_path / 'run'}` continues at step 288"
    assert resume(tmp_path / "run", progress=False)["steps"] == 480
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")
