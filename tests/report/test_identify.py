"""Configs → names of families, environments and methods."""

from dataclasses import replace

import pytest

from optimist.presets import all_presets, get_preset
from optimist.report.identify import FAMILIES, identify, name_method, split_changes
from optimist.tracking.config_io import to_dict


def named(preset, **parameters):
    return identify(to_dict(get_preset(preset)(**parameters)))


@pytest.mark.parametrize(
    ("preset", "name"),
    [
        ("deepsea/ppo", "PPO"), ("deepsea/opr", "PPO+OPR"), ("deepsea/opr-paper", "PPO+OPR, literal"),
        ("atari/paper", "PPO+OPR, literal"), ("atari/fast", "PPO+OPR, fast"), ("cage2/cardiff-opr", "Cardiff+OPR"),
        ("cage2/ppo", "PPO, 145 actions"), ("deepsea/a2c-opr", "A2C+OPR"), ("mine/odd", "odd"),
    ],
)  # fmt: skip
def test_methods_are_named_after_their_preset(preset, name):
    assert name_method(preset) == name


def test_environments_are_named_without_the_interface_that_belongs_to_the_method():
    assert named("atari/ppo", game="Qbert").env == "Qbert"
    assert named("deepsea/ppo", size=8).env == "DeepSea-8"
    assert named("cage2/ppo", red="Meander").env == named("cage2/cardiff", red="Meander").env
    assert named("cage2/ppo", horizon=50).env == "B_line, final rules, 50 steps"


def test_every_preset_is_itself_unchanged_and_of_a_known_family():
    for preset in all_presets():
        identity = identify(to_dict(preset()))
        assert identity.changes == (), preset.name
        assert identity.family in FAMILIES


def test_presets_of_one_environment_never_share_a_name():
    names = [(identity.env, identity.method) for preset in all_presets() if (identity := identify(to_dict(preset())))]
    assert len(set(names)) == len(names)


def test_what_differs_from_the_preset_is_part_of_the_name():
    config = get_preset("deepsea/opr")()
    changed = replace(config, opr=replace(config.opr, bc_coef=1.0, sampling="uniform"), seed=7, total_steps=5)
    assert identify(to_dict(changed)).method == "PPO+OPR · bc_coef=1.0 · sampling=uniform"
    assert split_changes("opr:sampling=uniform,bc_coef=1.0") == ("opr", ("bc_coef=1.0", "sampling=uniform"))
    assert split_changes("cardiff:env.store_executed=true")[1] == ("store_executed=True",)


def test_without_opr_the_method_is_the_plain_learner():
    config = get_preset("atari/fast")()
    plain = replace(config, opr=replace(config.opr, enabled=False))
    assert identify(to_dict(plain)).method == "PPO, fast"


def test_settings_of_what_is_off_make_no_other_method():
    config = get_preset("deepsea/ppo")()
    same = replace(config, opr=replace(config.opr, bc_coef=1.0))
    assert identify(to_dict(same)) == identify(to_dict(config))
    on = replace(config, opr=replace(config.opr, enabled=True, bc_coef=1.0))
    assert identify(to_dict(on)).method == "PPO · bc_coef=1.0 · opr.enabled=True"


def test_configs_of_an_unknown_preset_are_told_apart():
    config = get_preset("deepsea/opr")()
    mine = to_dict(replace(config, preset="mine/x", seed=3))
    same = to_dict(replace(config, preset="mine/x", seed=4))
    other = to_dict(replace(config, preset="mine/x", opr=replace(config.opr, bc_coef=0.5)))
    assert identify(mine) == identify(same) != identify(other)
