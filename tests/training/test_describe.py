"""A run in words: its header line, and notes on settings without effect."""

from __future__ import annotations

from dataclasses import replace

from optimist.config import EnvConfig, OPRConfig, PPOConfig, RunConfig, SILConfig
from optimist.envs.make import make_envs
from optimist.training.describe import describe_run, notes_before_start
from tests.training.test_signals import RUN


def notes(word, **settings):
    config = replace(RUN, **settings)
    return [note for note in notes_before_start(config, make_envs(config.env), saves_envs=True) if word in note]


def test_the_header_names_method_task_budget_environments_and_seed():
    config = RunConfig(
        total_steps=1000,
        seed=3,
        env=EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 12}),
        algorithm=PPOConfig(rollout_steps=25),
        opr=OPRConfig(),
    )
    assert describe_run(config) == "PPO+OPR on optimist/DeepSea-v0(size=12): 1,000 steps, 8 envs, seed 3"
    assert describe_run(RunConfig(total_steps=100_000)).startswith("PPO on CartPole-v1: 99,328 steps")  # whole updates
    delayed = replace(config, env=replace(RunConfig().env, reward_delay=20), sil=SILConfig(enabled=True))
    assert describe_run(delayed).startswith("PPO+OPR+SIL on CartPole-v1, rewards every 20 steps: ")


def test_shaping_settings_without_effect_are_named():
    def about_shaping(**settings):
        return notes("opr.shaping", opr=OPRConfig(**settings))

    assert about_shaping() == about_shaping(shaping_scale=0.0) == []
    assert about_shaping(shaping_scale=0.5, reference="cloned") == []
    assert about_shaping(shaping_scale=0.5, augment_share=0.25) == []
    for name in ("shaping_scale", "shaping_bound"):
        (note,) = about_shaping(**{name: 0.5})
        assert note == f"OPR: opr.{name} has no effect with the other settings as they are"


def test_a_budget_that_is_rounded_to_whole_updates_is_noted():
    size = RUN.batch_size
    update = f"{size:,} steps ({RUN.env.num_envs} envs × {RUN.algorithm.rollout_steps})"
    for budget, rounded in ((size - 1, f"up to {size:,}"), (3 * size + 1, f"down to {3 * size:,}")):
        (note,) = notes("rounded", total_steps=budget)
        assert note == f"total_steps = {budget:,} is rounded {rounded}: whole updates of {update}"
    assert notes("rounded", total_steps=2 * size) == []


def test_settings_of_a_disabled_anchor_are_named():
    off = OPRConfig(enabled=False)
    assert notes("is off", opr=off) == notes("is off") == []
    assert notes("is off", opr=replace(off, bc_coef=0.3)) == ["OPR is off: its settings have no effect (--opr.enabled)"]
    assert notes("is off", sil=SILConfig(coef=0.3)) == ["SIL is off: its settings have no effect (--sil.enabled)"]


def test_the_cost_of_a_stop_is_noted_where_a_stop_cannot_be_saved_exactly():
    def about_stops(*, saves_envs, **settings):
        config = replace(RUN, **settings)
        found = notes_before_start(config, make_envs(config.env), saves_envs=saves_envs)
        return [note for note in found if note.startswith("a stop loses")]

    (note,) = about_stops(saves_envs=False, checkpoint_every=5_000)
    assert note == (
        "a stop loses the steps since the last checkpoint, one every 5,000; --save-when-stopped saves them, "
        "and environments restart"
    )
    assert about_stops(saves_envs=True) == about_stops(saves_envs=False, save_when_stopped=True) == []
