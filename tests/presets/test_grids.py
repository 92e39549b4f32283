"""Presets of the grid tasks and of Gymnasium: PPO, A2C, OPR and its published form."""

import pytest

from optimist.config import A2CConfig, EnvConfig, PPOConfig
from optimist.core.config import OPRConfig
from optimist.presets import all_presets, get_preset

METHODS = ("ppo", "opr", "opr-paper", "a2c", "a2c-opr")
NAMES = [f"{family}/{method}" for family in ("deepsea", "keydoor", "gym") for method in METHODS]


def test_every_family_has_the_five_methods():
    assert set(NAMES) <= {known.name for known in all_presets()}


@pytest.mark.parametrize("family", ["deepsea", "keydoor"])
def test_grids_use_the_same_settings_for_all_methods(family):
    configs = {method: get_preset(f"{family}/{method}")() for method in METHODS}
    ppo = configs["ppo"]
    assert (ppo.env.num_envs, ppo.algorithm.rollout_steps, ppo.total_steps) == (16, 64, 200_000)
    assert ppo.algorithm == PPOConfig(
        rollout_steps=64, epochs=4, minibatch_size=256, learning_rate=1e-3, entropy_coef=0.01
    )
    for method in ("opr", "opr-paper"):
        assert configs[method].algorithm == ppo.algorithm
        assert configs[method].env == ppo.env
    assert configs["a2c"].algorithm == configs["a2c-opr"].algorithm
    assert isinstance(configs["a2c"].algorithm, A2CConfig)


@pytest.mark.parametrize("family", ["deepsea", "keydoor", "gym"])
def test_opr_presets_have_the_default_and_plain_ones_are_off(family):
    for method in ("ppo", "a2c"):
        assert get_preset(f"{family}/{method}")().opr.enabled is False
    for method in ("opr", "a2c-opr"):
        assert get_preset(f"{family}/{method}")().opr == OPRConfig()


@pytest.mark.parametrize(("family", "capacity"), [("deepsea", 5_000), ("keydoor", 5_000), ("gym", 50_000)])
def test_paper_presets_differ_from_the_papers_numbers_in_the_size_of_the_memory_only(family, capacity):
    ours, paper = get_preset(f"{family}/opr-paper")().opr, OPRConfig.paper("atari")
    different = {name for name in vars(paper) if getattr(paper, name) != getattr(ours, name)}
    assert different <= {"capacity_transitions", "capacity_episodes"}
    assert ours.capacity_transitions == capacity


def test_parameters_reach_the_environment():
    assert get_preset("deepsea/opr")(size=7).env.kwargs == {"size": 7}
    assert get_preset("keydoor/opr")(height=4, apple=True).env.kwargs == {"height": 4, "apple": True}
    assert get_preset("gym/ppo")(env="Pendulum-v1").env == EnvConfig(id="Pendulum-v1", num_envs=8)


def test_an_environment_without_tuned_values_gets_the_default_ones():
    config = get_preset("gym/ppo")(env="BipedalWalker-v3")
    assert config.env.id == "BipedalWalker-v3"
    assert config.batch_size == 2048
