"""Environments of cage2 in Stable-Baselines3 and in Gymnasium's wrappers, by the new ids and the old ones."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers.vector import NormalizeReward, RecordEpisodeStatistics
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

import cage2
import optimist.envs  # noqa: F401 (registers)

OLD = ["optimist/CAGE2-v0", "optimist/CAGE2Cardiff-v0", "optimist/CAGE2Expert-v0"]
NEW = ["cage2/Scenario2-v0", "cage2/Scenario2Cardiff-v0", "cage2/Scenario2Expert-v0"]


@pytest.mark.parametrize("env_id", OLD + NEW)
def test_make_vec_env_works_for_every_id(env_id: str) -> None:
    envs = make_vec_env(env_id, n_envs=8, seed=0)
    envs.reset()
    observations, rewards, dones, _ = envs.step([envs.action_space.sample() for _ in range(8)])
    assert len(observations) == len(rewards) == len(dones) == 8
    assert envs.render("rgb_array").shape[-1] == 3
    envs.close()


@pytest.mark.parametrize(("old", "new"), list(zip(OLD, NEW, strict=True)))
def test_old_ids_are_the_same_games(old: str, new: str) -> None:
    one, other = (gymnasium.make_vec(env_id, num_envs=4, red="mixed", horizon=10) for env_id in (old, new))
    assert (one.reset(seed=1)[0] == other.reset(seed=1)[0]).all()
    for action in range(12):
        ours, theirs = one.step(np.full(4, action)), other.step(np.full(4, action))
        assert all((a == b).all() for a, b in zip(ours[:4], theirs[:4], strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env_id", NEW)
def test_check_env_passes(env_id: str) -> None:
    check_env(gymnasium.make(env_id, horizon=20).unwrapped)


def test_normalized_worker_processes_step() -> None:
    # a worker process imports the package that is named before the colon
    envs = VecNormalize(make_vec_env("cage2:cage2/Scenario2-v0", n_envs=2, seed=0, vec_env_cls=SubprocVecEnv))
    envs.reset()
    observations, *_ = envs.step([0, 1])
    assert np.isfinite(observations).all()
    envs.close()


def test_ppo_trains_in_three_lines_and_its_model_is_scored() -> None:
    envs = make_vec_env("cage2/Scenario2-v0", n_envs=4, vec_env_cls=DummyVecEnv, env_kwargs={"red": "Meander"})
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, device="cpu").learn(256)
    score = cage2.score(model, episodes=2)
    assert (score.mode, len(score.cells)) == ("agent", 9)


def test_vector_wrappers_of_gymnasium_take_the_vector_environment() -> None:
    envs = NormalizeReward(RecordEpisodeStatistics(gymnasium.make_vec("cage2/Scenario2-v0", num_envs=3, horizon=5)))
    envs.reset(seed=0)
    for _ in range(5):
        *_, infos = envs.step(np.zeros(3, np.int64))
    assert "episode" in infos or "episode" in infos["final_info"]
