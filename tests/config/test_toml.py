import dataclasses
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.config.toml import (
    differences,
    from_dict,
    from_saved,
    from_toml,
    merge,
    nested,
    parse_toml,
    read_toml,
    to_dict,
    to_toml,
)
from optimist.core.config import OPRConfig
from optimist.core.settings import REMOVED
from optimist.errors import ConfigError, UnknownName
from optimist.presets import get_preset

CONFIGS = [
    RunConfig(),
    RunConfig(preset="deepsea/opr", env=EnvConfig(id="optimist/DeepSea-v0", kwargs={"size": 12}), opr=OPRConfig()),
    RunConfig(algorithm=A2CConfig(max_grad_norm=None), network=NetworkConfig(hidden=()), seed=2**80),
    RunConfig(
        algorithm=PPOConfig(value_clip=0.2, target_kl=0.01, adam_betas=(0.9, 0.99)), opr=OPRConfig.paper("cage2")
    ),
    RunConfig(opr=OPRConfig(bc_luck=math.inf, max_age_updates=7)),
    RunConfig(env=EnvConfig(kwargs={"nested": {"a": [1, 2.5, "x", True]}, "text": "none"})),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_a_config_survives_toml_and_a_dict(config):
    assert from_toml(RunConfig, to_toml(config)) == config
    assert from_dict(RunConfig, to_dict(config)) == config


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_floats_survive_toml_exactly(rate):
    config = RunConfig(algorithm=PPOConfig(learning_rate=rate))
    assert from_toml(RunConfig, to_toml(config)).algorithm.learning_rate == rate


def test_every_setting_with_an_effect_is_written_and_no_other():
    written = parse_toml(to_toml(RunConfig(opr=OPRConfig())))
    for name, cls in {"env": EnvConfig, "network": NetworkConfig, "algorithm": PPOConfig}.items():
        assert set(written[name]) == {field.name for field in dataclasses.fields(cls)}
    idle = {"shaping_scale", "shaping_bound", "reference", "augment_rows", "bc_phase_unit", "bc_phase_epochs"}
    assert set(written["opr"]) == {field.name for field in dataclasses.fields(OPRConfig)} - idle
    assert written["sil"] == {"enabled": False}
    assert set(written) == {field.name for field in dataclasses.fields(RunConfig)} - {"anchors"}


@pytest.mark.parametrize(
    "opr",
    [
        OPRConfig(enabled=False, bc_coef=0.3),
        OPRConfig(reference="cloned"),
        OPRConfig(shaping_scale=0.5),
        OPRConfig(bc_phase_unit="steps"),
        OPRConfig.paper("atari"),
    ],
)
def test_settings_without_an_effect_survive_a_round_trip_where_they_were_changed(opr):
    config = RunConfig(opr=opr)
    assert from_toml(RunConfig, to_toml(config)) == config


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("totalsteps = 5", "no setting 'totalsteps'; did you mean 'total_steps'?"),
        ("[opr]\npercntile = 50", "no setting 'opr.percntile'; did you mean 'opr.percentile'?"),
        ("[opr]\nretention = 'rankd'", "no opr.retention called 'rankd'; did you mean 'ranked'?"),
        ("[algorithm]\nname = 'pp'", "no algorithm called 'pp'; did you mean 'ppo'?"),
    ],
)  # fmt: skip
def test_unknown_names_get_a_suggestion(toml, message):
    with pytest.raises(UnknownName) as caught:
        from_toml(RunConfig, toml)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("total_steps = 1.5", "total_steps must be a whole number, got 1.5"),
        ("total_steps = true", "total_steps must be a whole number, got True"),
        ("wandb = 1", "wandb must be true or false, got 1"),
        ("device = 3", "device must be text, got 3"),
        ("env = 3", "env must be a table of settings, got 3"),
        ("[algorithm]\nlearning_rate = 'fast'", "algorithm.learning_rate must be a number, got 'fast'"),
        ("[algorithm]\nadam_betas = [0.9]", r"algorithm.adam_betas must be a list of 2, got \[0.9\]"),
        ("[network]\nhidden = [64, 1.5]", "network.hidden must be a whole number, got 1.5"),
        ("[network]\nhidden = 64", "network.hidden must be a list, got 64"),
        ("[env]\nkwargs = 1", "env.kwargs must be a table, got 1"),
        ("algorithm = 'ppo'", "algorithm must be a table of settings, got 'ppo'"),
        ("total_steps = 0", "total_steps must be at least 1, got 0"),
        ("[opr]\npercentile = 101", r"opr.percentile must be between 0 and 100, got 101"),
        ("total_steps =", "TOML is not valid TOML: .*"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(toml, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        from_toml(RunConfig, toml)


def test_merge_changes_the_named_fields_only():
    base = RunConfig(env=EnvConfig(num_envs=16, kwargs={"height": 6, "apple": False}), algorithm=PPOConfig(epochs=7))
    merged = merge(base, {"env": {"kwargs": {"apple": True}}, "algorithm": {"gamma": 1}, "seed": 3})
    assert merged.env == EnvConfig(num_envs=16, kwargs={"height": 6, "apple": True})
    assert merged.algorithm == PPOConfig(epochs=7, gamma=1.0)
    assert type(merged.algorithm.gamma) is float
    assert merged.seed == 3


def test_merging_another_algorithm_starts_from_its_defaults():
    merged = merge(RunConfig(algorithm=PPOConfig(gamma=0.5)), {"algorithm": {"name": "a2c", "rollout_steps": 9}})
    assert merged.algorithm == A2CConfig(rollout_steps=9)
    assert merge(merged, {"algorithm": PPOConfig(gamma=0.5)}).algorithm == PPOConfig(gamma=0.5)


def test_values_that_toml_cannot_hold_are_refused():
    with pytest.raises(ConfigError, match=r"env.kwargs.* None"):
        to_toml(RunConfig(env=EnvConfig(kwargs={"a": None})))
    with pytest.raises(ConfigError, match=r"kwargs.f is <function"):
        to_toml(RunConfig(env=EnvConfig(kwargs={"f": lambda: None})))


def test_a_missing_file_is_refused_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read config file .*absent.toml: No such file or directory"):
        read_toml(tmp_path / "absent.toml")


@pytest.fixture
def removed(monkeypatch):
    monkeypatch.setitem(REMOVED, "opr.gone", "set opr.bc_coef instead")
    monkeypatch.setitem(REMOVED, "opr.reference = average", "it scored worse (docs/paper.md)")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("gone = 3", "opr.gone no longer exists: set opr.bc_coef instead"),
        ("reference = 'average'", "opr.reference = average no longer exists: it scored worse (docs/paper.md)"),
    ],
)
def test_a_removed_setting_in_a_file_is_answered_with_its_successor(setting, message, removed):
    with pytest.raises(UnknownName) as caught:
        from_toml(RunConfig, f"[opr]\n{setting}")
    assert str(caught.value) == message


def test_a_saved_run_with_removed_settings_is_not_resumed_and_its_policy_can_be_used(removed):
    text = to_toml(RunConfig(seed=3)).replace("[opr]", '[opr]\nreference = "average"\ngone = 3')
    line = "^run/config.toml, saved by optimist .*, cannot be resumed: opr.reference = average no longer exists"
    with pytest.raises(ConfigError, match=line):
        from_saved(text, "run/config.toml", to_resume=True)
    assert from_saved(text, "run/config.toml", to_resume=False) == RunConfig(seed=3)


def test_removed_keyword_belongs_to_one_environment():
    def run(env_id):
        return f"[env]\nid = '{env_id}'\n[env.kwargs]\ngame = 'Pong'\nlanes = 2\n"

    with pytest.raises(ConfigError, match=r"cannot be resumed: env.kwargs.lanes of optimist/Atari-v0 no longer exists"):
        from_saved(run("optimist/Atari-v0"), "run/config.toml", to_resume=True)
    assert from_saved(run("optimist/Atari-v0"), "run/config.toml", to_resume=False).env.kwargs == {"game": "Pong"}
    assert from_saved(run("Other-v0"), "run/config.toml", to_resume=False).env.kwargs == {"game": "Pong", "lanes": 2}


def test_a_saved_run_with_an_unknown_setting_names_the_version(removed):
    text = "# optimist 0.0.9\nsed = 3\n"
    for to_resume in (True, False):
        with pytest.raises(UnknownName, match=r"^config.toml, saved by optimist 0.0.9: no setting 'sed'; did you mean"):
            from_saved(text, "config.toml", to_resume=to_resume)


def test_every_removed_setting_is_gone_and_has_an_answer():
    for key, answer in REMOVED.items():
        name, _, value = key.partition(" = ")
        setting, _, env = name.partition(" of ")
        values = {setting: value or 1, **({"env.id": env} if env else {})}
        with pytest.raises(UnknownName, match=re.escape(f"{key} no longer exists: {answer}")):
            merge(RunConfig(), values)


def test_full_names_are_tables_and_keywords_of_environments_keep_theirs():
    values = {"opr.percentile": 90, "opr": {"bc_coef": 0.3}, "env.kwargs": {"a.b": 1}, "env": {"id": "X"}}
    assert nested(values) == {"opr": {"percentile": 90, "bc_coef": 0.3}, "env": {"kwargs": {"a.b": 1}, "id": "X"}}


def test_a_run_saved_before_opr_lost_settings_can_be_read_but_not_resumed():
    path = Path(__file__).parents[1] / "data/config/deepsea-opr-0.1.0.toml"
    text, preset = path.read_text(encoding="utf-8"), get_preset("deepsea/opr")()
    read = from_saved(text, str(path), to_resume=False)
    assert differences(preset, read) == ["opr.shaping_scale 0.0 → 0.5", "sil.entropy_coef None → 0.01"]
    refused = r"0\.1\.0\.toml, saved by optimist 0\.1\.0, cannot be resumed: env\.store_executed"
    with pytest.raises(ConfigError, match=refused):
        from_saved(text, str(path), to_resume=True)
