"""OPR in Stable-Baselines3 stores whole episodes only, also across interruptions."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor, VecNormalize

from optimist.core import OPRConfig
from optimist.errors import ConfigError
from optimist.integrations.sb3 import OPRCallback
from tests.integrations.tasks import Game, OneLifeAnEpisode

ALL = OPRConfig(percentile=0.0)


class Stop(BaseCallback):
    """Stops training after some steps, by its return value or by an error."""

    def __init__(self, after, error=False):
        super().__init__()
        self.after, self.error = after, error

    def _on_step(self):
        if self.n_calls == self.after and self.error:
            raise KeyboardInterrupt
        return self.n_calls != self.after


def make(env, algorithm=PPO, **settings):
    sizes = {"batch_size": 8, "n_epochs": 1} if algorithm is PPO else {}
    return algorithm("MlpPolicy", env, seed=0, device="cpu", **({"n_steps": 16} | sizes | settings))


def stored(callback):
    """Return the states of each stored episode as step numbers."""
    memory = callback.opr.memory
    return [(memory.pools["frames"][e.frames].flatten() * 6).round().int().tolist() for e in memory.episodes]


def games(n=2, monitored=True):
    return make_vec_env(Game, n) if monitored else DummyVecEnv([Game] * n)


@pytest.mark.parametrize("monitored", [True, False])
@pytest.mark.parametrize("error", [True, False])
def test_a_rollout_stopped_in_the_middle_stores_no_partial_episode(monitored, error):
    callback = OPRCallback(ALL)
    model = make(games(monitored=monitored))
    stop = Stop(after=20, error=error)  # two steps into a game, four into a rollout
    try:
        model.learn(1000, callback=CallbackList([callback, stop]))
    except KeyboardInterrupt:
        assert error
    assert len(stored(callback)) == 4
    model.learn(64, callback=callback, reset_num_timesteps=False)
    assert len(stored(callback)) == 4 + 8  # 32 steps of each: the rest of one game, then four
    assert {tuple(states) for states in stored(callback)} == {(0, 1, 2, 3, 4, 5)}


@pytest.mark.parametrize("wrap", [lambda: games(), lambda: VecMonitor(games(monitored=False))])
def test_steps_of_other_code_are_detected(wrap):
    callback, env = OPRCallback(ALL), wrap()
    model = make(env)
    model.learn(32, callback=callback)  # ends four steps into a game
    before = len(stored(callback))
    evaluate_policy(model, env, n_eval_episodes=3, warn=False)
    model.learn(64, callback=callback, reset_num_timesteps=False)
    assert len(stored(callback)) > before
    whole = {tuple(states) for states in stored(callback)}
    assert whole == {(0, 1, 2, 3, 4, 5)}


@pytest.mark.parametrize("monitored", [True, False])
def test_the_first_partial_episode_of_a_trained_model_is_dropped(monitored):
    callback, model = OPRCallback(ALL), make(games(monitored=monitored))
    model.learn(32)  # ends four steps into a game
    model.learn(32, callback=callback, reset_num_timesteps=False)
    assert stored(callback) == [[0, 1, 2, 3, 4, 5]] * 2 * 2  # of 16 steps of each two are the rest of that game


def test_a_second_learn_continues_the_unfinished_episodes():
    callback = OPRCallback(ALL)
    model = make(games())
    model.learn(32, callback=callback)
    model.learn(32, callback=callback, reset_num_timesteps=False)
    assert len(stored(callback)) == 2 * (32 // 6)


@pytest.mark.parametrize("ends_by", ["truncated", "terminated"])
def test_a_wrapper_that_ends_episodes_unseen_by_the_monitor_is_an_error(ends_by):
    class Short(gym.Wrapper):
        def step(self, action):
            obs, reward, terminated, truncated, info = super().step(action)
            short = self.unwrapped.time == 4 and self.np_random.random() < 0.5
            return obs, reward, terminated or short, truncated, info

    wrapper = (lambda env: gym.wrappers.TimeLimit(env, 4)) if ends_by == "truncated" else Short
    model = make(make_vec_env(Game, 1, wrapper_class=wrapper))
    with pytest.raises(ConfigError, match="a wrapper outside the Monitor ends episodes"):
        model.learn(128, callback=OPRCallback(ALL))


def test_lost_lives_do_not_end_an_episode_of_the_monitor():
    callback = OPRCallback(ALL)
    make(make_vec_env(Game, 1, wrapper_class=OneLifeAnEpisode)).learn(64, callback=callback)
    assert {len(states) for states in stored(callback)} == {6}


class Film(Game):
    """The task as images that show the time."""

    observation_space = gym.spaces.Box(0, 255, (1, 40, 40), np.uint8)

    def _seen(self):
        return np.full((1, 40, 40), 1 + self.time, np.uint8)


@pytest.mark.parametrize("frame_stack", [1, 2])
def test_stacks_cleared_at_a_lost_life_are_stored_whole_or_an_error(frame_stack):
    env = VecFrameStack(make_vec_env(Film, 1, wrapper_class=OneLifeAnEpisode), 2, channels_order="first")
    callback, model = OPRCallback(ALL, frame_stack=frame_stack), make(env)
    if frame_stack == 2:
        with pytest.raises(ConfigError, match="where a life is lost"):
            model.learn(16, callback=callback)
        return
    model.learn(16, callback=callback)
    memory = callback.opr.memory
    seen = memory.pools["frames"][memory.rows][:, :, 0, 0].tolist()
    assert seen == [[0, 1], [1, 2], [2, 3], [0, 4], [4, 5], [5, 6]] * 2


def test_a_new_model_starts_with_an_empty_memory_and_a_loaded_one_keeps_it(tmp_path):
    callback = OPRCallback(ALL)
    model = make(games())
    model.learn(32, callback=callback)
    model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", games(3), device="cpu")
    before = len(stored(callback))
    loaded.learn(48, callback=callback, reset_num_timesteps=False)
    assert len(stored(callback)) > before
    first = callback.opr
    make(games(), gamma=0.5).learn(32, callback=callback)
    assert callback.opr is not first
    assert (callback.opr.gamma, len(stored(callback))) == (0.5, before)


def test_the_memory_is_saved_and_loaded_for_a_resumed_model(tmp_path):
    callback = OPRCallback(OPRConfig(percentile=0.0, reference="cloned", shaping_scale=0.5, shaping_bound=0.5))
    model = make(games())
    model.learn(32, callback=callback)
    torch.save(callback.state_dict(), tmp_path / "memory.pt")
    model.save(tmp_path / "model")
    again, loaded = OPRCallback(callback.config), PPO.load(tmp_path / "model", games(3), device="cpu")
    again.load_state_dict(torch.load(tmp_path / "memory.pt"), loaded)
    assert stored(again) == stored(callback)
    loaded.learn(96, callback=again, reset_num_timesteps=False)
    assert again.opr.updates == callback.opr.updates + 2
    assert len(stored(again)) > len(stored(callback))


def test_two_callbacks_on_one_model_are_an_error():
    with pytest.raises(ConfigError, match="two OPRCallbacks act on one model"):
        make(games()).learn(32, callback=[OPRCallback(ALL), OPRCallback(ALL)])


def test_a_callback_that_misses_steps_is_an_error():
    with pytest.raises(ConfigError, match="missed a rollout's start; pass it to learn directly"):
        make(games()).learn(64, callback=EveryNTimesteps(8, OPRCallback(ALL)))


def test_after_an_error_within_a_rollout_the_model_trains_without_opr():
    def weights(model):
        return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])

    model, plain = make(games()), make(games())
    for one, callbacks in ((model, [OPRCallback(OPRConfig(bc_coef=10.0))]), (plain, [])):
        with pytest.raises(KeyboardInterrupt):
            one.learn(1000, callback=CallbackList([*callbacks, Stop(after=4, error=True)]))
        one.set_random_seed(0)
        one.learn(64, reset_num_timesteps=False)
    assert weights(model).equal(weights(plain))


def test_returns_of_normalised_rewards_are_an_error():
    env = VecMonitor(VecNormalize(games(monitored=False)))
    with pytest.raises(
        ConfigError, match="VecMonitor outside VecNormalize sums normalised rewards: put VecMonitor inside"
    ):
        make(env).learn(32, callback=OPRCallback(ALL))
    make(VecNormalize(VecMonitor(games(monitored=False)))).learn(32, callback=OPRCallback(ALL))


class Foreign(OnPolicyAlgorithm):
    """An on-policy algorithm that is neither PPO nor A2C."""

    policy_aliases = A2C.policy_aliases


def test_other_on_policy_algorithms_are_an_error():
    settings = {
        "learning_rate": 1e-3,
        "n_steps": 16,
        "gamma": 0.9,
        "gae_lambda": 0.9,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "use_sde": False,
        "sde_sample_freq": -1,
    }
    model = Foreign("MlpPolicy", games(), device="cpu", **settings)
    with pytest.raises(ConfigError, match="the model is Foreign; OPRCallback needs PPO, A2C"):
        model.learn(32, callback=OPRCallback())
