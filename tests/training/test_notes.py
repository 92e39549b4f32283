"""What a run says before its first step: settings that will have no effect."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from optimist.config import OPRConfig, SILConfig
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import Trainer
from tests.training.test_interrupts import RUN


def test_a_shaping_that_shapes_nothing_is_named(tmp_path):
    def notes(number, **settings):
        config = replace(RUN, opr=OPRConfig(**settings))
        with RunDir.create(tmp_path / str(number), config) as run, closing(Trainer(config, run)) as trainer:
            return [note for note in trainer._notes() if "shaped" in note]

    assert notes(0) == notes(1, shaping_scale=0.0) == notes(2, shaping="additive", reference="cloned") == []
    assert notes(3, shaping="additive") == notes(4, shaping_bound=0.5) != []


def test_a_budget_below_one_update_is_told(tmp_path):
    for number, (steps, told) in enumerate(((RUN.batch_size - 1, True), (RUN.batch_size, False))):
        config = replace(RUN, total_steps=steps)
        with RunDir.create(tmp_path / str(number), config) as run, closing(Trainer(config, run)) as trainer:
            assert any("one is made, whatever total_steps says" in note for note in trainer._notes()) == told


def test_settings_of_what_is_off_are_named(tmp_path):
    def notes(number, **settings):
        config = replace(RUN, **settings)
        with RunDir.create(tmp_path / str(number), config) as run, closing(Trainer(config, run)) as trainer:
            return [note for note in trainer._notes() if "is off" in note]

    off = OPRConfig(enabled=False)
    assert notes(0, opr=off) == notes(1) == []
    assert notes(2, opr=replace(off, bc_coef=0.3)) == ["OPR is off: its settings have no effect (--opr.enabled)"]
    assert notes(3, sil=SILConfig(coef=0.3)) == ["SIL is off: its settings have no effect (--sil.enabled)"]
