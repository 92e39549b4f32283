"""Emulators of a2600: the results of ale-py bit for bit, and which emulator is chosen."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from optimist.envs.atari import console_emulators
from optimist.envs.atari.collector import AtariCollector
from optimist.envs.atari.console_emulators import choose_emulator
from optimist.errors import CheckpointError, ConfigError, MissingExtra, UnknownName
from optimist.tracking.run_dir import RunDir
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.envs.atari import test_collector
from tests.envs.atari.helpers import assert_same, make, play, random_actions
from tests.envs.atari.test_training import ATARI, lines

try:
    BUILT = choose_emulator("auto", "Breakout") == "a2600"
except MissingExtra:  # without ale-py
    BUILT = False
built = pytest.mark.skipif(not BUILT, reason="a2600 is not built: pip install ./packages/a2600")


@built
@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("Breakout", {"sticky": 0.25, "max_frames": 700}),
        ("Frostbite", {}),
        ("IceHockey", {"max_frames": 300}),  # starts by the contents of its memory
    ],
)
def test_both_emulators_play_the_same_games(game, settings):
    """Restored in between, each from its own state."""
    ale, console = make(game, 3, **settings), make(game, 3, emulator="a2600", **settings)
    actions = random_actions(ale, 170).repeat(3, axis=0)
    assert_same(play(ale, actions[:200], seed=5), play(console, actions[:200], seed=5))
    restored = []
    for emulator, envs in (("ale", ale), ("a2600", console)):
        restored.append(make(game, 3, emulator=emulator, **settings))
        restored[-1].load_state_dict(envs.state_dict())
        envs.close()
    found = [play(envs, actions[200:]) for envs in restored]
    assert_same(*found)
    ends = sum(int((result[2] | result[3]).sum()) for result in found[0])
    assert ends > 0 or game == "Frostbite"


@built
def test_results_do_not_depend_on_the_number_of_threads():
    found = []
    for threads in (1, 3):
        envs = make("Seaquest", 5, emulator="a2600", threads=threads)
        found.append(play(envs, random_actions(envs, 60), seed=1))
        envs.close()
    assert_same(*found)


@built
def test_masked_resets_are_those_of_ale_py():
    ale, console = make("Breakout", 3), make("Breakout", 3, emulator="a2600")
    actions = random_actions(ale, 40)
    assert_same(play(ale, actions, seed=2), play(console, actions, seed=2))
    for seed, slots in ((None, [2]), (7, [0, 2])):
        options = {"reset_mask": np.isin(np.arange(3), slots)}
        (obs, infos), (others, others_infos) = (envs.reset(seed=seed, options=options) for envs in (ale, console))
        assert np.array_equal(obs, others)
        assert np.array_equal(infos["lives"], others_infos["lives"])
        assert_same(play(ale, actions), play(console, actions))


@built
@pytest.mark.parametrize("threads", [1, 4])
def test_rollouts_are_those_of_ale_py(threads):
    expected = test_collector.rollouts(AtariCollector, num_workers=2)
    found = test_collector.rollouts(AtariCollector, num_workers=2, emulator="a2600", threads=threads)
    test_collector.assert_same(expected, found)


@built
def test_a_run_on_a2600_equals_one_on_ale_py_and_resumes_exactly(tmp_path, monkeypatch):
    one_update, config = Trainer.one_update, with_emulator("a2600")
    train(with_emulator("ale"), tmp_path / "ale", progress=False)

    def stop(self):
        if self.step == 240:
            monkeypatch.setattr(Trainer, "one_update", one_update)
            raise KeyboardInterrupt
        return one_update(self)

    monkeypatch.setattr(Trainer, "one_update", stop)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "a2600", progress=False)
    resume(tmp_path / "a2600", progress=False)
    assert lines(tmp_path / "ale") == lines(tmp_path / "a2600")
    weights = [(tmp_path / name / "final.safetensors").read_bytes() for name in ("ale", "a2600")]
    assert weights[0] == weights[1]


@built
def test_pictures_in_colour_are_those_of_ale_py():
    ale, console = (make("Seaquest", 2, emulator=name, render_mode="rgb_array") for name in ("ale", "a2600"))
    ale.reset(seed=1), console.reset(seed=1)
    for row in [*random_actions(ale, 60), None]:
        assert all(np.array_equal(a, b) for a, b in zip(ale.render(), console.render(), strict=True))
        if row is not None:
            ale.step(row), console.step(row)


@built
def test_a_state_that_cannot_be_loaded_is_an_error():
    envs = make("Pong", emulator="a2600")
    envs.reset(seed=0)
    state = envs.state_dict()
    with pytest.raises(CheckpointError, match=r"^the saved state of Pong cannot be loaded: [^\n]*$"):
        envs.load_state_dict(state | {"games": [state["games"][0][:100]]})
    with pytest.raises(CheckpointError, match=r"saved by ale-py==[\d.]+, expected a2600==[^\n]*env.kwargs.emulator$"):
        envs.load_state_dict(state | {"emulator": make("Pong").emulators.version})


@built
def test_recv_returns_when_stop_when_is_true():
    envs = make("Pong", emulator="a2600")
    envs.reset(seed=0)
    assert len(envs.recv(stop_when=lambda: True)) == 0  # no step is in progress
    envs.close()


@built
def test_a_game_that_is_not_exact_is_refused_by_name_and_auto_takes_ale_py(monkeypatch):
    from a2600 import games

    known = games.all_games()
    inexact = {**known, "pong": dataclasses.replace(known["pong"], inexact="one pixel")}
    monkeypatch.setattr(games, "all_games", lambda: inexact)
    assert choose_emulator("auto", "Pong") == "ale"
    with pytest.raises(
        ConfigError, match=r"^a2600 is not exact in Pong \(one pixel\): use the emulator 'ale' or 'auto'$"
    ):
        make("Pong", emulator="a2600")


@built
def test_games_beyond_the_49_are_played_by_ale_py():
    assert choose_emulator("auto", "Pitfall") == "ale"
    with pytest.raises(ConfigError, match=r"^a2600 does not have Pitfall: use the emulator 'ale' or 'auto'$"):
        choose_emulator("a2600", "Pitfall")


def test_without_the_package_auto_is_ale_py_and_a2600_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "a2600", None)
    monkeypatch.setitem(sys.modules, "a2600.core", None)
    assert choose_emulator("auto", "Pong") == "ale"
    with pytest.raises(
        MissingExtra, match=r"^the emulator a2600 is not installed: pip install ./packages/a2600[^\n]*$"
    ):
        make("Pong", emulator="a2600")


def test_unknown_emulator_gets_a_suggestion():
    with pytest.raises(UnknownName, match="no emulator 'a260'; did you mean 'a2600'"):
        make("Pong", emulator="a260")


@pytest.mark.parametrize("available", [False, True])
def test_a_run_says_which_emulator_it_uses_and_its_config_keeps_it(available, tmp_path, monkeypatch, capsys):
    if available and not BUILT:
        pytest.skip("a2600 is not built")
    if not available:
        monkeypatch.setattr(console_emulators, "_obstacle", lambda game: MissingExtra("not installed"))
    config = dataclasses.replace(with_emulator("auto"), total_steps=48, final_episodes=0)
    train(config, tmp_path / "run")
    expected = "a2600" if available else "ale"
    assert RunDir.read(tmp_path / "run").config.env.kwargs["emulator"] == expected
    assert f"emulator: {expected}" in capsys.readouterr().err


def with_emulator(name):
    return dataclasses.replace(ATARI, env=dataclasses.replace(ATARI.env, kwargs=ATARI.env.kwargs | {"emulator": name}))
