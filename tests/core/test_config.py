"""OPRConfig: ranges and choices of its settings, the paper's values, and which settings have an effect."""

import dataclasses
import math
import typing

import pytest

from optimist.core.config import CANDIDATES, OPRConfig
from optimist.core.settings import REMOVED
from optimist.errors import ConfigError, UnknownName

FIELDS = {field.name: field for field in dataclasses.fields(OPRConfig)}
AT_LEAST_1 = ["capacity_transitions", "capacity_episodes", "max_episode_steps", "return_window", "bc_batch_size"]
AT_LEAST_1 += ["bc_phase_epochs", "max_age_updates"]
AT_LEAST_0 = ["shaping_scale", "shaping_bound", "bc_coef", "bc_phase_interval", "augment_share", "bc_luck", "bc_trust"]
RANGES = {"percentile": (-0.1, 100.1), "augment_share": (10.5,)}
CHOICES = {
    name: typing.get_args(hint)
    for name, hint in typing.get_type_hints(OPRConfig).items()
    if typing.get_origin(hint) is typing.Literal
}


def test_opr_has_at_most_22_settings_and_candidates_that_will_be_chosen_from():
    assert set(CANDIDATES) <= FIELDS.keys()
    assert len(FIELDS.keys() - set(CANDIDATES)) <= 22


@pytest.mark.parametrize("name", AT_LEAST_1)
def test_counts_of_0_are_refused_by_name(name):
    OPRConfig(**{name: 1})
    for bad in (0, -3):
        with pytest.raises(ConfigError, match=rf"opr\.{name} must be at least 1.*got {bad}"):
            OPRConfig(**{name: bad})


@pytest.mark.parametrize("name", [*AT_LEAST_1, "bc_phase_interval"])
def test_counts_that_are_not_whole_are_refused_by_name(name):
    for bad in (2.5, "3", True):
        with pytest.raises(ConfigError, match=rf"opr\.{name} must be a whole number"):
            OPRConfig(**{name: bad})


@pytest.mark.parametrize("name", AT_LEAST_0)
def test_strengths_below_0_are_refused_by_name(name):
    OPRConfig(**{name: 0})
    with pytest.raises(ConfigError, match=rf"opr\.{name} must be"):
        OPRConfig(**{name: -1})


@pytest.mark.parametrize(("name", "bad"), [(name, bad) for name, out in RANGES.items() for bad in out])
def test_values_outside_their_range_are_refused(name, bad):
    with pytest.raises(ConfigError, match=rf"opr\.{name} must be between .*got {bad}"):
        OPRConfig(**{name: bad})


@pytest.mark.parametrize(
    "name", ["percentile", "shaping_scale", "shaping_bound", "bc_coef", "augment_share", "bc_luck"]
)
def test_nan_is_refused(name):
    with pytest.raises(ConfigError, match=rf"opr\.{name} must be"):
        OPRConfig(**{name: math.nan})


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_accepted_and_any_other_refused_with_a_suggestion(name):
    for word in CHOICES[name]:
        assert getattr(OPRConfig(**{name: word}), name) == word
    with pytest.raises(UnknownName, match=rf"no opr\.{name} called '{CHOICES[name][0]}x'; did you mean"):
        OPRConfig(**{name: CHOICES[name][0] + "x"})


def test_the_choices_of_the_method():
    assert CHOICES == {
        "admission": ("paper", "gated"),
        "retention": ("fifo", "ranked"),
        "sampling": ("uniform", "prioritized", "advantage"),
        "reference": ("recorded", "cloned"),
        "augment_rows": ("decoupled", "recorded", "full"),
        "bc_weights": ("uniform", "advantage"),
        "bc_phase_unit": ("updates", "episodes", "steps"),
    }


def test_the_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        OPRConfig().bc_coef = 2.0


def test_the_papers_values_for_atari():
    paper = OPRConfig.paper("atari")
    assert (paper.capacity_transitions, paper.percentile) == (100, 75.0)
    assert (paper.shaping_scale, paper.shaping_bound, paper.bc_coef) == (0.5, 0.01, 1.0)
    assert (paper.bc_phase_epochs, paper.bc_phase_interval, paper.bc_phase_unit) == (3, 50 * 100_000, "steps")


def test_the_papers_values_for_cage2():
    paper = OPRConfig.paper("cage2")
    assert (paper.capacity_episodes, paper.capacity_transitions) == (1_000, 30 * 1_000)
    assert (paper.bc_phase_interval, paper.bc_phase_unit) == (50, "episodes")


@pytest.mark.parametrize("task", ["atari", "cage2"])
def test_the_papers_method_is_the_published_one(task):
    paper = OPRConfig.paper(task)
    assert (paper.admission, paper.retention, paper.sampling) == ("paper", "fifo", "uniform")
    assert (paper.max_age_updates, paper.bc_luck) == (None, None)
    assert (paper.reference, paper.augment_rows, paper.bc_weights) == ("recorded", "recorded", "uniform")
    assert paper.augment_share > 0


def test_a_task_without_numbers_in_the_paper_gets_a_suggestion():
    with pytest.raises(UnknownName, match="cage2"):
        OPRConfig.paper("cage")


def test_a_recorded_reference_shapes_replayed_steps_only():
    assert not OPRConfig(shaping_scale=0.5).shapes
    assert OPRConfig(shaping_scale=0.5, augment_share=0.25).shapes
    assert OPRConfig(shaping_scale=0.5, reference="cloned").shapes


def test_the_default_shapes_nothing():
    assert OPRConfig().shaping_scale == 0.0
    assert not OPRConfig(reference="cloned", augment_share=0.25).shapes


SHAPING = {"shaping_scale", "shaping_bound", "reference"}
PHASE = {"bc_phase_unit", "bc_phase_epochs"}
ROWS = {"augment_rows"}


@pytest.mark.parametrize(
    ("settings", "inactive"),
    [
        ({}, SHAPING | PHASE | ROWS),
        ({"shaping_scale": 0.5}, SHAPING | PHASE | ROWS),  # a recorded π_good shapes replayed rows, and there are none
        ({"shaping_scale": 0.5, "augment_share": 0.25}, PHASE),
        ({"shaping_scale": 0.5, "reference": "cloned"}, PHASE | ROWS),
        ({"augment_share": 0.25}, SHAPING | PHASE),
        ({"bc_coef": 0.0}, SHAPING | PHASE | ROWS | {"bc_batch_size", "bc_weights", "bc_luck", "bc_trust"}),
        ({"bc_coef": 0.0, "bc_phase_interval": 5}, SHAPING | ROWS | {"bc_trust"}),
        ({"enabled": False, "shaping_scale": 0.5}, FIELDS.keys() - {"enabled"}),
    ],
    ids=lambda value: "-".join(sorted(value)) or "default",
)
def test_settings_without_an_effect_are_named(settings, inactive):
    assert OPRConfig(**settings).inactive == inactive


def test_inactive_settings_are_names_of_fields_and_the_papers_method_has_none():
    assert OPRConfig(bc_coef=0.0).inactive <= FIELDS.keys()
    assert OPRConfig.paper("cage2").inactive == set()


GONE = [
    "admission_floor", "augment_ratio", "augment_value", "augment_weight_cap", "bc_advantage_scale",
    "bc_advantage_unit", "bc_filter", "bc_schedule", "deciding_return", "priority_exponent", "reference_epochs",
    "reference_interval", "reference_learning_rate", "shaping", "snapshot_decay", "thresholds",
]  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_a_removed_setting_is_answered_with_what_to_do_instead(name):
    with pytest.raises(UnknownName, match=rf"^opr\.{name} no longer exists: (remove it|use|set)\b.*[^.]$") as caught:
        OPRConfig(**{name: 1})
    assert "\n" not in str(caught.value)


def test_a_removed_choice_is_answered_with_what_to_do_instead():
    with pytest.raises(UnknownName, match=r"^opr\.reference = snapshot no longer exists: use 'recorded' or 'cloned'"):
        OPRConfig(reference="snapshot")


def test_the_answers_name_settings_that_exist():
    opr = {name: answer for name, answer in REMOVED.items() if name.startswith("opr.")}
    assert {name for name in opr if " = " not in name} == {f"opr.{name}" for name in GONE}
    assert not {f"opr.{name}" for name in FIELDS} & opr.keys()
    for answer in opr.values():
        for word in answer.replace(",", " ").split():
            if word.startswith("opr."):
                assert word.removeprefix("opr.") in FIELDS, answer
