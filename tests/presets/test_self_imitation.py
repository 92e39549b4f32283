"""Presets of self-imitation, ACPER and MuJoCo: shared settings and their origin."""

from __future__ import annotations

import dataclasses

import pytest

from optimist.config import A2CConfig, ACPERConfig, CardiffPPOConfig, PPOConfig
from optimist.config.sil import SILConfig
from optimist.core.config import OPRConfig
from optimist.presets import all_presets, get_preset
from optimist.training.build import with_entropy_of
from optimist.training.trainer import train

METHODS = {
    "deepsea": ("ppo-sil", "ppo-opr-sil", "a2c-sil", "a2c-sil-opr", "acper", "acper-opr"),
    "keydoor": ("ppo-sil", "ppo-opr-sil", "a2c-sil", "a2c-sil-opr", "acper", "acper-opr"),
    "gym": ("ppo-sil", "ppo-opr-sil", "a2c-sil", "acper", "acper-opr"),
    "cage2": ("sil", "opr-sil", "a2c", "a2c-opr", "a2c-sil", "acper", "acper-opr"),
    "atari": ("ppo-sil", "a2c", "a2c-opr", "a2c-sil", "acper"),
    "mujoco": ("ppo", "ppo-opr", "ppo-sil", "ppo-opr-sil"),
}
NAMES = [f"{family}/{method}" for family, methods in METHODS.items() for method in methods]


def test_every_method_is_registered():
    assert set(NAMES) <= {known.name for known in all_presets()}


@pytest.mark.parametrize("name", NAMES)
def test_names_state_the_learner_and_its_anchors(name):
    config, words = get_preset(name)(), name.partition("/")[2].split("-")
    assert config.sil.enabled is ("sil" in words)
    assert config.opr == (OPRConfig() if "opr" in words else OPRConfig(enabled=False))
    learners = {"a2c": A2CConfig, "acper": ACPERConfig, "ppo": PPOConfig}
    assert isinstance(config.algorithm, learners.get(words[0], CardiffPPOConfig))


@pytest.mark.parametrize("family", ["deepsea", "keydoor"])
def test_a_learner_has_the_same_settings_on_grids_with_any_anchor(family):
    configs = {method: get_preset(f"{family}/{method}")() for method in ("ppo", "a2c", *METHODS[family])}
    for method, config in configs.items():
        base = configs[method.split("-")[0]]
        assert config.algorithm == base.algorithm
        assert dataclasses.replace(config, preset="", opr=base.opr, sil=base.sil) == dataclasses.replace(
            base, preset=""
        )
    acper, a2c = configs["acper"].algorithm, configs["a2c"].algorithm
    shared = ("rollout_steps", "learning_rate", "entropy_coef", "gamma", "gae_lambda", "max_grad_norm")
    assert [getattr(acper, name) for name in shared] == [getattr(a2c, name) for name in shared]


def changed_from_authors(name: str, learner: str) -> set[str]:
    ours, stock = get_preset(name)().sil, SILConfig.stock(learner)
    return {field for field in vars(stock) if getattr(stock, field) != getattr(ours, field)}


def test_self_imitation_differs_from_its_authors_settings_only_as_stated():
    for family in ("deepsea", "keydoor"):
        assert changed_from_authors(f"{family}/ppo-sil", "ppo") == {"start_transitions"}
        assert changed_from_authors(f"{family}/a2c-sil", "a2c") == {"start_transitions"}
    assert changed_from_authors("cage2/sil", "ppo") == changed_from_authors("cage2/a2c-sil", "a2c") == {"admission"}
    assert changed_from_authors("gym/a2c-sil", "a2c") == {"admission", "time_limit"}
    for name, learner in (("atari/a2c-sil", "a2c"), ("atari/ppo-sil", "ppo"), ("mujoco/ppo-sil", "ppo")):
        assert changed_from_authors(name, learner) == set()


def test_self_imitation_has_the_entropy_bonus_of_its_learner():
    found = {}
    for name in ("atari/a2c-sil", "mujoco/ppo-sil", "gym/a2c-sil", "cage2/sil"):
        config = get_preset(name)()
        assert config.sil.entropy_coef is None
        found[name] = with_entropy_of(config.algorithm, config.sil).entropy_coef
    assert found == {"atari/a2c-sil": 0.01, "mujoco/ppo-sil": 0.0, "gym/a2c-sil": 0.0, "cage2/sil": 0.01}
    own = dataclasses.replace(SILConfig.stock("ppo"), entropy_coef=0.02)
    assert with_entropy_of(get_preset("mujoco/ppo")().algorithm, own).entropy_coef == 0.02


def test_atari_presets_of_the_sil_authors_play_whole_games():
    for method in ("a2c", "a2c-sil", "acper"):
        env = get_preset(f"atari/{method}")(game="Breakout").env
        assert (env.num_envs, env.clip_rewards, env.kwargs["life_loss_ends"]) == (16, True, False)
        assert env.kwargs["game"] == "Breakout"


def test_mujoco_has_cleanrls_sizes_and_the_delay_reaches_the_environment():
    config = get_preset("mujoco/ppo-opr")(env="HalfCheetah-v5", delay=20)
    assert (config.batch_size, config.batch_size // config.algorithm.minibatch_size) == (2048, 32)
    assert (config.env.id, config.env.reward_delay) == ("HalfCheetah-v5", 20)
    assert config.network.normalize_observations
    assert get_preset("mujoco/ppo")().env.reward_delay == 1


SMALL = {
    "deepsea/a2c-sil-opr": {"size": 5},
    "keydoor/acper-opr": {"height": 3},
    "gym/ppo-opr-sil": {"env": "Pendulum-v1"},
    "gym/acper": {"env": "CartPole-v1"},
    "cage2/sil": {"horizon": 20},
    "cage2/opr-sil": {"red": "mixed", "horizon": 20},
    "cage2/acper": {"horizon": 20},
    "mujoco/ppo-opr-sil": {"env": "Hopper-v5", "delay": 20},
}


@pytest.mark.parametrize("name", SMALL)
def test_preset_trains(name, tmp_path):
    if name.startswith("mujoco"):
        pytest.importorskip("mujoco")
    config = get_preset(name)(**SMALL[name])
    env = dataclasses.replace(config.env, num_envs=min(config.env.num_envs, 64))
    config = dataclasses.replace(config, env=env, tensorboard=False)
    config = dataclasses.replace(config, total_steps=2 * config.batch_size, checkpoint_every=config.batch_size)
    summary = train(config, tmp_path / "run", progress=False)
    assert summary["updates"] == 2
    assert summary["algorithm"].endswith("+sil") is config.sil.enabled
