import dataclasses

import pytest

from optimist.core.config import OPRConfig
from optimist.envs.make import make_envs
from optimist.errors import ConfigError, UnknownName
from optimist.presets import get_preset
from optimist.training.loop import train

CARDIFF = ["cage2/cardiff", "cage2/cardiff-opr-paper", "cage2/cardiff-opr"]


@pytest.mark.parametrize("name", [*CARDIFF, "cage2/ppo"])
def test_a_run_has_the_paper_s_size_and_cardiff_s_settings(name):
    config = get_preset(name)()
    assert config.total_steps == 3_000_000
    assert config.total_updates == 150
    assert config.batch_size == 19_980  # whole games, at most Cardiff's 20,000 steps
    learner = config.algorithm
    assert (learner.epochs, learner.learning_rate, learner.adam_betas, learner.clip_eps) == (
        6,
        0.002,
        (0.9, 0.990),
        0.2,
    )
    assert (learner.entropy_coef, learner.value_coef, learner.max_grad_norm, learner.gamma) == (0.01, 0.5, None, 0.99)
    assert (config.network.hidden, config.network.activation) == ((64, 64), "relu")


def test_games_of_100_steps_give_cardiff_s_own_updates():
    config = get_preset("cage2/cardiff")(horizon=100)
    assert (config.batch_size, config.total_updates) == (20_000, 500)


def test_the_network_has_the_published_number_of_weights(tmp_path):
    config = dataclasses.replace(get_preset("cage2/cardiff")(), total_steps=1)
    train(
        dataclasses.replace(config, env=dataclasses.replace(config.env, num_envs=4), tensorboard=False),
        tmp_path / "run",
        progress=False,
    )
    from optimist.door import load

    assert sum(p.numel() for p in load(tmp_path / "run").policy.parameters()) == 18_789


def test_faithful_presets_have_cardiff_s_habits_and_ours_has_not():
    habits = {name: (get_preset(name)().env.truncation, get_preset(name)().env.store_executed) for name in CARDIFF}
    assert habits == {
        "cage2/cardiff": ("ignored", False),
        "cage2/cardiff-opr-paper": ("ignored", False),
        "cage2/cardiff-opr": ("end", True),
    }
    assert not get_preset("cage2/cardiff")().opr.enabled
    assert get_preset("cage2/cardiff-opr-paper")().opr == OPRConfig.paper("cage2")
    assert get_preset("cage2/cardiff-opr")().opr == OPRConfig()


@pytest.mark.parametrize(
    ("name", "space"), [("cage2/cardiff", (62, 36)), ("cage2/cardiff-opr", (62, 36)), ("cage2/ppo", (52, 145))]
)
def test_the_interface(name, space):
    config = get_preset(name)(red="mixed", rules="competition", table="official", horizon=7, green="GreenAgent")
    envs = make_envs(dataclasses.replace(config.env, num_envs=2))
    assert (envs.single_observation_space.shape[0], envs.single_action_space.n) == space
    settings = envs.unwrapped.settings
    assert (settings.competition, settings.cardiff_table, settings.green, settings.horizon) == (True, False, True, 7)
    envs.close()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"red": "Bline"}, UnknownName, "did you mean 'B_line'"),
        ({"rules": "finals"}, UnknownName, "did you mean 'final'"),
        ({"table": "cardif"}, UnknownName, "did you mean 'cardiff'"),
        ({"green": "Green"}, UnknownName, "did you mean 'GreenAgent'"),
        ({"horizon": 0}, ConfigError, "horizon must be a whole number of steps above 0"),
        ({"horizon": -5}, ConfigError, "horizon must be a whole number of steps above 0"),
    ],
)
def test_bad_parameters_are_one_clear_line(parameters, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train(get_preset("cage2/cardiff")(**parameters), tmp_path / "run", progress=False)
