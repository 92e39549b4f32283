"""Presets of Atari: settings and their origin."""

import pytest

from optimist.config import NetworkConfig, PPOConfig
from optimist.core.config import OPRConfig
from optimist.presets import get_preset

NAMES = ("ppo", "opr", "paper", "fast", "smoke")


@pytest.mark.parametrize("name", NAMES)
def test_game_and_sticky_reach_the_environment(name):
    config = get_preset(f"atari/{name}")(game="Breakout", sticky=0.25)
    assert config.env.id == "optimist/Atari-v0"
    assert config.env.kwargs | {"game": "Breakout", "sticky": 0.25} == config.env.kwargs
    assert get_preset(f"atari/{name}")().env.kwargs["sticky"] == 0.0
    assert (config.env.clip_rewards, config.env.frame_stack, config.env.truncation) == (True, 4, "bootstrap")
    assert config.network.kind == "nature_cnn"
    assert config.final_episodes > 0


def test_ppo_has_cleanrls_settings_and_opr_adds_its_default():
    ppo, opr = get_preset("atari/ppo")(), get_preset("atari/opr")()
    assert (ppo.env.num_envs, ppo.total_steps, ppo.batch_size) == (8, 10_000_000, 1024)
    assert ppo.algorithm == PPOConfig(
        rollout_steps=128, epochs=4, minibatch_size=256, learning_rate=2.5e-4, learning_rate_schedule="linear",
        clip_eps=0.1, value_clip=0.1, value_coef=0.25, entropy_coef=0.01, max_grad_norm=0.5, adam_eps=1e-5,
    )  # fmt: skip
    assert (opr.algorithm, opr.env, opr.network) == (ppo.algorithm, ppo.env, ppo.network)
    assert (ppo.opr.enabled, opr.opr) == (False, OPRConfig())


def test_paper_preset_has_the_papers_numbers_and_tianshous_where_it_gives_none():
    config = get_preset("atari/paper")()
    ppo = config.algorithm
    assert (config.env.num_envs, ppo.rollout_steps, ppo.epochs) == (10, 100, 4)
    assert (ppo.minibatch_size, ppo.last_minibatch) == (256, "merged")  # 256 + 256 + 488
    assert config.total_updates == 10_000
    assert config.network == NetworkConfig(kind="nature_cnn", initialization="default_heads")
    assert (config.evaluate_every, config.evaluate_episodes) == (100_000, 10)
    paper = OPRConfig.paper("atari")
    changed = {name for name in vars(paper) if getattr(paper, name) != getattr(config.opr, name)}
    assert changed == {"max_episode_steps"}
    assert config.opr.max_episode_steps == config.opr.capacity_transitions == 100


def changed_from_paper(name):
    paper, other = get_preset("atari/paper")(), get_preset(f"atari/{name}")()
    assert (other.algorithm, other.env, other.network) == (paper.algorithm, paper.env, paper.network)
    assert other.evaluate_every == paper.evaluate_every
    return {
        field: getattr(other.opr, field)
        for field, value in vars(paper.opr).items()
        if value != getattr(other.opr, field)
    }


def test_other_readings_of_the_paper_differ_from_it_in_one_thing_each():
    assert changed_from_paper("paper-ppo")["enabled"] is False
    assert changed_from_paper("paper-episodes") == {"capacity_transitions": 400_000, "max_episode_steps": 4_000}
    assert changed_from_paper("paper-phases") == {
        "bc_coef": 0.0, "bc_phase_interval": 50, "bc_phase_unit": "updates",
    }  # fmt: skip
    assert changed_from_paper("paper-rows") == {"augment_rows": "full"}


@pytest.mark.parametrize("name", ["ppo", "opr", "paper", "fast"])
def test_long_gives_fifty_million_steps(name):
    short, long = get_preset(f"atari/{name}")(), get_preset(f"atari/{name}")(long=True)
    assert (short.total_steps, long.total_steps) == (10_000_000, 50_000_000)
    assert short.algorithm == long.algorithm
