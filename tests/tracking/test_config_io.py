import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.errors import ConfigError, UnknownName
from optimist.tracking.config_io import from_dict, from_toml, merge, parse_toml, read_toml, to_dict, to_toml

CONFIGS = [
    RunConfig(),
    RunConfig(preset="deepsea/opr", env=EnvConfig(id="optimist/DeepSea-v0", kwargs={"size": 12}), opr=OPRConfig()),
    RunConfig(algorithm=A2CConfig(max_grad_norm=None), network=NetworkConfig(hidden=()), seed=2**80),
    RunConfig(
        algorithm=PPOConfig(value_clip=0.2, target_kl=0.01, adam_betas=(0.9, 0.99)), opr=OPRConfig.paper("cage2")
    ),
    RunConfig(opr=OPRConfig(admission_floor=-math.inf, max_age_updates=7)),
    RunConfig(env=EnvConfig(kwargs={"nested": {"a": [1, 2.5, "x", True]}, "text": "none"})),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_a_config_comes_back_from_toml_and_from_a_dict(config):
    assert from_toml(RunConfig, to_toml(config)) == config
    assert from_dict(RunConfig, to_dict(config)) == config


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_floats_come_back_from_toml_exactly(rate):
    config = RunConfig(algorithm=PPOConfig(learning_rate=rate))
    assert from_toml(RunConfig, to_toml(config)).algorithm.learning_rate == rate


def test_every_field_of_every_config_is_written():
    written = parse_toml(to_toml(RunConfig()))
    for name, cls in {"env": EnvConfig, "network": NetworkConfig, "algorithm": PPOConfig, "opr": OPRConfig}.items():
        assert set(written[name]) == {field.name for field in dataclasses.fields(cls)}
    assert set(written) == {field.name for field in dataclasses.fields(RunConfig)}


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("totalsteps = 5", "no setting 'totalsteps'; did you mean 'total_steps'?"),
        ("[opr]\npercntile = 50", "no setting 'opr.percntile'; did you mean 'opr.percentile'?"),
        ("[opr]\nshaping = 'aditive'", "no opr.shaping called 'aditive'; did you mean 'additive'?"),
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
        ("[opr]\npercentile = 101", r"opr.percentile must be in \[0, 100\], got 101"),
        ("total_steps =", "TOML is not valid TOML: .*"),
    ],
)
def test_a_wrong_value_is_one_line(toml, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        from_toml(RunConfig, toml)


def test_merge_changes_what_is_named_and_keeps_the_rest():
    base = RunConfig(env=EnvConfig(num_envs=16, kwargs={"height": 6, "apple": False}), algorithm=PPOConfig(epochs=7))
    merged = merge(base, {"env": {"kwargs": {"apple": True}}, "algorithm": {"gamma": 1}, "seed": 3})
    assert merged.env == EnvConfig(num_envs=16, kwargs={"height": 6, "apple": True})
    assert merged.algorithm == PPOConfig(epochs=7, gamma=1.0)
    assert type(merged.algorithm.gamma) is float
    assert merged.seed == 3


def test_merging_another_algorithm_starts_from_its_defaults():
    merged = merge(RunConfig(algorithm=PPOConfig(gamma=0.5)), {"algorithm": {"name": "a2c", "rollout_steps": 9}})
    assert merged.algorithm == A2CConfig(rollout_steps=9)


def test_what_toml_cannot_hold_is_refused():
    with pytest.raises(ConfigError, match=r"env.kwargs.* None"):
        to_toml(RunConfig(env=EnvConfig(kwargs={"a": None})))
    with pytest.raises(ConfigError, match=r"kwargs.f is <function"):
        to_toml(RunConfig(env=EnvConfig(kwargs={"f": lambda: None})))


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read config file .*absent.toml: No such file or directory"):
        read_toml(tmp_path / "absent.toml")
