"""Names of families, environments and methods from configs."""

from dataclasses import replace

import pytest

from optimist.config.toml import to_dict
from optimist.envs.family import families
from optimist.presets import all_presets, get_preset
from optimist.report.identify import identify, name_method


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
def test_method_is_named_after_its_preset(preset, name):
    assert name_method(preset) == name


def test_environment_name_excludes_the_interface_of_the_method():
    assert named("atari/ppo", game="Qbert").env == "Qbert"
    assert named("deepsea/ppo", size=8).env == "DeepSea-8"
    assert named("cage2/ppo", red="Meander").env == named("cage2/cardiff", red="Meander").env
    assert named("cage2/ppo", horizon=50).env == "B_line, final rules, 50 steps"


def test_every_preset_has_no_changes_and_a_known_family():
    for preset in all_presets():
        identity = identify(to_dict(preset()))
        assert identity.changes == (), preset.name
        assert identity.family in {family.name for family in families()}


def test_presets_of_one_environment_have_different_names():
    names = [(identity.env, identity.method) for preset in all_presets() if (identity := identify(to_dict(preset())))]
    assert len(set(names)) == len(names)


def test_changed_settings_are_part_of_the_name():
    config = get_preset("deepsea/opr")()
    changed = replace(config, opr=replace(config.opr, bc_coef=1.0, sampling="uniform"), seed=7, total_steps=5)
    assert identify(to_dict(changed)).method == "PPO+OPR · bc_coef=1.0 · sampling=uniform"


def test_without_opr_the_method_is_the_plain_learner():
    config = get_preset("atari/fast")()
    plain = replace(config, opr=replace(config.opr, enabled=False))
    assert identify(to_dict(plain)).method == "PPO, fast"


def test_settings_of_a_disabled_anchor_do_not_change_the_method():
    config = get_preset("deepsea/ppo")()
    same = replace(config, opr=replace(config.opr, bc_coef=1.0))
    assert identify(to_dict(same)) == identify(to_dict(config))
    on = replace(config, opr=replace(config.opr, enabled=True, bc_coef=1.0))
    assert identify(to_dict(on)).method == "PPO · bc_coef=1.0 · opr.enabled=True"


def test_configs_of_an_unknown_preset_are_distinguished():
    config = get_preset("deepsea/opr")()
    mine = to_dict(replace(config, preset="mine/x", seed=3))
    same = to_dict(replace(config, preset="mine/x", seed=4))
    other = to_dict(replace(config, preset="mine/x", opr=replace(config.opr, bc_coef=0.5)))
    assert identify(mine) == identify(same) != identify(other)


def test_settings_without_effect_do_not_change_the_method():
    config = get_preset("deepsea/opr")()
    assert not config.opr.shapes
    recorded = to_dict(config)
    recorded["opr"]["shaping_scale"] = 0.5  # shapes replayed rows only, of which there are none
    assert identify(recorded) == identify(to_dict(config))
    recorded["opr"]["augment_share"] = 1.0
    assert identify(recorded).changes == ("augment_share=1.0", "shaping_scale=0.5")
    literal = to_dict(get_preset("deepsea/opr-paper")())
    literal["opr"]["shaping_scale"] = 0.0
    assert identify(literal).changes == ("shaping_scale=0.0",)
