"""OPR in Stable-Baselines3: real models, small tasks."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import FakeImageEnv
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from optimist.core import OPRConfig
from optimist.errors import ConfigError
from optimist.integrations.sb3 import ModelPolicy, OPRCallback
from tests.integrations.tasks import Game, OneLifeAnEpisode

NOTHING = OPRConfig(bc_coef=0.0, shaping_scale=0.0)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()])


def learn(algorithm, callback, steps=1024, **settings):
    model = algorithm("MlpPolicy", "CartPole-v1", seed=0, device="cpu", **settings)
    return model.learn(steps, callback=callback)


@pytest.mark.parametrize(("algorithm", "settings"), [(PPO, {"n_steps": 256, "n_epochs": 2}), (A2C, {})])
def test_zero_strength_equals_the_plain_model_bit_for_bit(algorithm, settings):
    plain = learn(algorithm, None, **settings)
    nothing, default = OPRCallback(NOTHING), OPRCallback()
    assert weights(learn(algorithm, nothing, **settings)).equal(weights(plain))
    assert nothing.opr.memory.num_transitions > 0
    assert not weights(learn(algorithm, default, **settings)).equal(weights(plain))


def test_one_step_takes_the_sum_of_model_and_cloning_gradients(monkeypatch):
    gradients = {}

    def capture(name, callback):
        model = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=64, batch_size=64, n_epochs=1)
        model.max_grad_norm = 1e9
        step = model.policy.optimizer.step

        def see(*arguments, **options):
            found = [parameter.grad.clone().flatten() for parameter in model.policy.parameters()]
            gradients.setdefault(name, torch.cat(found))
            return step(*arguments, **options)

        model.policy.optimizer.step = see
        model.learn(64, callback=callback)

    fixed = torch.linspace(-1, 1, 32).reshape(8, 4), torch.arange(8) % 2

    def fixed_loss(self, policy):
        return -policy.log_prob(*fixed).mean()

    fresh = PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", n_steps=64)
    fixed_loss(None, ModelPolicy(fresh.policy)).backward()
    added = torch.cat(
        [(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in fresh.policy.parameters()]
    )
    capture("alone", None)
    monkeypatch.setattr("optimist.core.regularizer.OptimisticRegularizer.loss", fixed_loss)
    capture("both", OPRCallback())
    torch.testing.assert_close(gradients["both"], gradients["alone"] + added)


def test_the_optimiser_is_restored_when_training_ends():
    callback = OPRCallback()
    model = learn(PPO, callback, n_steps=256)
    assert "zero_grad" not in vars(model.policy.optimizer)
    updates = callback.opr.updates
    model.learn(512, callback=callback, reset_num_timesteps=False)
    assert callback.opr.updates == updates + 2


def first_observed(env, steps, monkeypatch, gamma=0.9):
    """Return the model and the steps that OPR observes in one rollout."""
    observed = []
    monkeypatch.setattr(
        "optimist.core.regularizer.OptimisticRegularizer.observe", lambda _, given: observed.append(given)
    )
    model = PPO("MlpPolicy", env, seed=0, device="cpu", n_steps=steps, batch_size=steps, n_epochs=1, gamma=gamma)
    model.learn(steps, callback=OPRCallback(NOTHING))
    return model, observed[0]


def test_the_monitor_gives_episode_ends_and_returns(monkeypatch):
    env = make_vec_env(Game, 1, wrapper_class=OneLifeAnEpisode)
    _, steps = first_observed(env, 12, monkeypatch)
    assert steps.dones[:, 0].tolist() == [False, False, True] * 4
    assert steps.episode_ends[:, 0].tolist() == [*[False] * 5, True] * 2
    assert steps.rewards[:, 0].tolist() == steps.actions[:, 0].tolist()
    totals = 2 * steps.actions[:, 0].view(2, 6).sum(1)
    assert steps.raw_rewards[:, 0].view(2, 6).sum(1).tolist() == totals.tolist()
    assert not steps.bootstraps.any()


def test_without_a_monitor_the_models_rewards_and_ends_are_used(monkeypatch):
    env = DummyVecEnv([lambda: OneLifeAnEpisode(Game())])
    _, steps = first_observed(env, 12, monkeypatch)
    assert steps.raw_rewards is None
    assert steps.episode_ends is None


def test_a_time_limit_bootstraps_the_value_of_the_last_state(monkeypatch):
    after = {}

    class Watched(PPO):
        def train(self):  # before the first update
            last = torch.tensor([[4 / 6]])
            after["value"] = self.policy.predict_values(last).item()
            super().train()

    monkeypatch.setattr("tests.integrations.test_sb3.PPO", Watched)
    _, steps = first_observed(make_vec_env(lambda: Game(limit=4), 1), 8, monkeypatch)
    at_limits = [0, 0, 0, after["value"]] * 2
    assert steps.bootstraps[:, 0].tolist() == pytest.approx(at_limits, abs=1e-5)
    assert steps.rewards[:, 0].tolist() == (2.0 * steps.actions[:, 0]).tolist()


def test_shaped_rewards_reach_the_advantages():
    literal = OPRConfig(bc_coef=0.0, shaping_scale=0.5, shaping_bound=0.5, reference="cloned")
    plain, shaped = OPRCallback(NOTHING), OPRCallback(literal)
    assert not weights(learn(PPO, shaped, n_steps=256)).equal(weights(learn(PPO, plain, n_steps=256)))


def test_cloning_phases_raise_the_probability_of_stored_actions():
    phases = OPRConfig(
        bc_coef=0.0, bc_phase_interval=1, bc_phase_unit="updates", bc_phase_epochs=3, bc_weights="uniform"
    )
    callback = OPRCallback(phases)
    model = learn(PPO, callback, n_steps=256, n_epochs=1)
    plain = learn(PPO, None, n_steps=256, n_epochs=1)
    rows = callback.opr.memory.sample(256, torch.Generator().manual_seed(0))
    with torch.no_grad():
        pulled, left = (ModelPolicy(m.policy).log_prob(rows.obs, rows.actions).mean() for m in (model, plain))
    assert pulled > left


@pytest.mark.parametrize(
    "space", [gym.spaces.Box(-1, 1, (2,)), gym.spaces.MultiDiscrete([2, 3]), gym.spaces.MultiBinary(2)]
)
def test_continuous_and_multi_dimensional_actions_are_cloned(space):
    class Free(Game):
        action_space = space

    callback = OPRCallback()
    PPO("MlpPolicy", Free(), seed=0, device="cpu", n_steps=64, batch_size=64).learn(192, callback=callback)
    assert np.isfinite(callback.opr.metrics()["loss/bc"])


def test_stacked_frames_are_stored_once_and_restored_exactly():
    env = VecFrameStack(make_vec_env(lambda: FakeImageEnv(screen_height=36, screen_width=36, n_channels=1), 1), 4)
    seen = []

    class Watching(OPRCallback):
        def _on_rollout_end(self):
            seen.append(torch.tensor(self.learner.rollout_buffer.observations[:, 0]))
            super()._on_rollout_end()

    callback = Watching(NOTHING, frame_stack=4)
    PPO("CnnPolicy", env, seed=0, device="cpu", n_steps=32, batch_size=32, n_epochs=1).learn(64, callback=callback)
    everything = torch.cat(seen)
    rows = callback.opr.memory.sample(8, torch.Generator().manual_seed(0))
    assert rows.obs.shape[1:] == (4, 36, 36)
    for row in rows.obs:
        assert (everything == row).flatten(1).all(1).any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: DQN("MlpPolicy", "CartPole-v1"), "the model is DQN; OPRCallback needs PPO, A2C"),
        (lambda: PPO("MultiInputPolicy", Seen()), "observations are dictionaries; OPRCallback needs arrays"),
    ],
)
def test_unsupported_models_are_errors(model, message):
    with pytest.raises(ConfigError, match=message):
        model().learn(64, callback=OPRCallback())


class Seen(Game):
    observation_space = gym.spaces.Dict({"time": Game.observation_space})

    def _seen(self):
        return {"time": super()._seen()}


def test_replayed_rows_are_an_error():
    with pytest.raises(ConfigError, match="set augment_share = 0"):
        OPRCallback(OPRConfig.paper("atari"))


def test_without_stable_baselines3_the_error_names_the_extra():
    lines = "import sys; sys.modules['stable_baselines3'] = None\nimport optimist.integrations.sb3"
    result = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "needs stable-baselines3: pip install '.[sb3]'" in result.stderr
