import subprocess
import sys
from itertools import groupby

import pytest

from optimist.config import A2CConfig, EnvConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.errors import UnknownName
from optimist.presets import all_presets, get_preset, preset
from optimist.tracking.config_io import from_toml, to_toml

METHODS = ("ppo", "opr", "opr-paper", "a2c", "a2c-opr")
OURS = [f"{family}/{method}" for family in ("deepsea", "keydoor", "gym") for method in METHODS]


def test_each_family_has_the_five_methods():
    assert set(OURS) <= {known.name for known in all_presets()}


@pytest.mark.parametrize("known", all_presets(), ids=lambda known: known.name)
def test_every_preset_builds_survives_toml_and_says_what_it_is(known):
    config = known()
    assert config.preset == known.name
    assert from_toml(RunConfig, to_toml(config)) == config
    assert known.description.endswith(".")
    assert all(parameter.meaning for parameter in known.parameters)


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
def test_opr_presets_are_the_default_and_plain_ones_are_off(family):
    for method in ("ppo", "a2c"):
        assert get_preset(f"{family}/{method}")().opr.enabled is False
    for method in ("opr", "a2c-opr"):
        assert get_preset(f"{family}/{method}")().opr == OPRConfig()


@pytest.mark.parametrize(("family", "capacity"), [("deepsea", 5_000), ("keydoor", 5_000), ("gym", 50_000)])
def test_the_paper_presets_differ_from_the_literal_method_in_the_size_of_the_memory_only(family, capacity):
    ours, paper = get_preset(f"{family}/opr-paper")().opr, OPRConfig.paper("atari")
    different = {name for name in vars(paper) if getattr(paper, name) != getattr(ours, name)}
    assert different <= {"capacity_transitions", "capacity_episodes"}
    assert ours.capacity_transitions == capacity


def test_parameters_reach_the_environment():
    assert get_preset("deepsea/opr")(size=7).env.kwargs == {"size": 7}
    assert get_preset("keydoor/opr")(height=4, apple=True).env.kwargs == {"height": 4, "apple": True}
    assert get_preset("gym/ppo")(env="Pendulum-v1").env == EnvConfig(id="Pendulum-v1", num_envs=8)


def test_an_environment_without_settings_of_its_own_gets_the_robust_ones():
    config = get_preset("gym/ppo")(env="BipedalWalker-v3")
    assert config.env.id == "BipedalWalker-v3"
    assert config.batch_size == 2048


def test_unknown_names_get_a_suggestion():
    with pytest.raises(UnknownName, match="no preset 'deepsea/orp'; did you mean 'deepsea/opr'"):
        get_preset("deepsea/orp")
    with pytest.raises(UnknownName, match="no parameter of preset deepsea/opr 'sise'; did you mean 'size'"):
        get_preset("deepsea/opr")(sise=3)


def test_presets_of_a_family_stand_together():
    families = [family for family, _ in groupby(all_presets(), key=lambda known: known.name.partition("/")[0])]
    assert len(set(families)) == len(families)


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="registered twice"):
        preset("deepsea/opr")(RunConfig)


def test_presets_import_neither_torch_nor_gymnasium():
    code = (
        "import sys, optimist.presets; print([name for name in ('torch', 'tyro', 'gymnasium') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
