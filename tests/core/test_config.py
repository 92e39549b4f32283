import dataclasses
import math
import typing

import pytest

from optimist.core.config import OPRConfig
from optimist.errors import ConfigError, UnknownName

AT_LEAST_1 = ["capacity_transitions", "capacity_episodes", "max_episode_steps", "return_window", "bc_batch_size"]
AT_LEAST_1 += ["bc_phase_epochs", "reference_interval", "reference_epochs", "max_age_updates"]
AT_LEAST_0 = ["shaping_scale", "shaping_bound", "bc_coef", "bc_phase_interval", "priority_exponent", "augment_share"]
ABOVE_0 = ["augment_weight_cap", "bc_advantage_scale", "reference_learning_rate"]
RANGES = {"percentile": (-0.1, 100.1), "snapshot_decay": (1.0, -0.1), "augment_share": (10.5,)}
CHOICES = {
    name: typing.get_args(hint)
    for name, hint in typing.get_type_hints(OPRConfig).items()
    if typing.get_origin(hint) is typing.Literal
}


@pytest.mark.parametrize("name", AT_LEAST_1)
def test_counts_of_0_are_refused_by_name(name):
    OPRConfig(**{name: 1})
    for bad in (0, -3):
        with pytest.raises(ConfigError, match=rf"opr\.{name} must be at least 1.*got {bad}"):
            OPRConfig(**{name: bad})


@pytest.mark.parametrize("name", [*AT_LEAST_1, "bc_phase_interval"])
def test_counts_that_are_not_whole_are_refused_by_name(name):
    for bad in (1.5, 2.0, True, "3"):
        with pytest.raises(ConfigError, match=rf"opr\.{name} must be a whole number"):
            OPRConfig(**{name: bad})


@pytest.mark.parametrize("name", AT_LEAST_0)
def test_strengths_below_0_are_refused_by_name(name):
    OPRConfig(**{name: 0})
    with pytest.raises(ConfigError, match=rf"opr\.{name} must be"):
        OPRConfig(**{name: -1})


@pytest.mark.parametrize("name", ABOVE_0)
def test_scales_of_0_are_refused_by_name(name):
    for bad in (0.0, -0.1):
        with pytest.raises(ConfigError, match=rf"opr\.{name} must be above 0"):
            OPRConfig(**{name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name, out in RANGES.items() for bad in out],
)
def test_values_outside_their_range_are_refused(name, bad):
    with pytest.raises(ConfigError, match=rf"opr\.{name} must be in .*got {bad}"):
        OPRConfig(**{name: bad})


@pytest.mark.parametrize(
    "name", ["percentile", "snapshot_decay", "shaping_scale", "bc_coef", "augment_share", "admission_floor", *ABOVE_0]
)
def test_nan_is_refused(name):
    with pytest.raises(ConfigError, match=rf"opr\.{name}"):
        OPRConfig(**{name: math.nan})


@pytest.mark.parametrize("name", CHOICES)
def test_every_word_of_a_choice_is_taken_and_any_other_refused_with_a_suggestion(name):
    for word in CHOICES[name]:
        assert getattr(OPRConfig(**{name: word}), name) == word
    with pytest.raises(UnknownName, match=rf"no opr\.{name} called '{CHOICES[name][0]}x'; did you mean"):
        OPRConfig(**{name: CHOICES[name][0] + "x"})


def test_the_choices_are_those_of_the_method():
    assert CHOICES == {
        "admission": ("paper", "gated"),
        "deciding_return": ("raw", "learner"),
        "thresholds": ("shared", "per_group"),
        "retention": ("fifo", "ranked"),
        "sampling": ("uniform", "prioritized"),
        "reference": ("recorded", "cloned", "snapshot"),
        "shaping": ("multiplicative", "sign_aware", "additive"),
        "augment_ratio": ("decoupled", "recorded"),
        "augment_value": ("off", "upward"),
        "bc_schedule": ("constant", "linear"),
        "bc_weights": ("uniform", "advantage"),
        "bc_advantage_unit": ("reward", "deviation"),
        "bc_phase_unit": ("updates", "episodes", "steps"),
    }


def test_a_floor_contradicts_the_papers_admission():
    with pytest.raises(ConfigError, match="admission_floor belongs to admission 'gated'"):
        OPRConfig(admission="paper", admission_floor=0.0)


def test_the_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        OPRConfig().bc_coef = 2.0


def test_the_papers_atari_numbers():
    paper = OPRConfig.paper("atari")
    assert (paper.capacity_transitions, paper.percentile) == (100, 75.0)
    assert (paper.shaping_scale, paper.shaping_bound, paper.bc_coef) == (0.5, 0.01, 1.0)
    assert (paper.bc_phase_epochs, paper.bc_phase_interval, paper.bc_phase_unit) == (3, 50 * 100_000, "steps")


def test_the_papers_cage2_numbers():
    paper = OPRConfig.paper("cage2")
    assert (paper.capacity_episodes, paper.capacity_transitions) == (1_000, 30 * 1_000)
    assert (paper.bc_phase_interval, paper.bc_phase_unit) == (50, "episodes")


@pytest.mark.parametrize("task", ["atari", "cage2"])
def test_the_papers_method_is_the_literal_one(task):
    paper = OPRConfig.paper(task)
    assert (paper.admission, paper.admission_floor, paper.retention) == ("paper", None, "fifo")
    assert (paper.thresholds, paper.max_age_updates, paper.sampling) == ("shared", None, "uniform")
    assert (paper.reference, paper.shaping, paper.deciding_return) == ("recorded", "multiplicative", "raw")
    assert (paper.augment_ratio, paper.bc_schedule, paper.bc_weights) == ("recorded", "constant", "uniform")
    assert not paper.bc_filter
    assert paper.augment_share > 0


def test_a_task_the_paper_has_no_numbers_for_gets_a_suggestion():
    with pytest.raises(UnknownName, match="cage2"):
        OPRConfig.paper("cage")


def test_a_recorded_reference_shapes_replayed_steps_only():
    assert not OPRConfig().shapes
    assert OPRConfig(augment_share=0.25).shapes
    assert OPRConfig(reference="cloned").shapes
    assert not OPRConfig(reference="cloned", shaping_scale=0.0).shapes
    assert OPRConfig(bc_coef=0.0).zero_strength


def test_zero_strength_means_that_nothing_reaches_the_learner():
    zero = {"shaping_scale": 0.0, "bc_coef": 0.0, "augment_share": 0.0, "bc_phase_interval": 0}
    assert OPRConfig(**zero).zero_strength
    for name in zero:
        assert not OPRConfig(**(zero | {name: 1}), reference="cloned").zero_strength
