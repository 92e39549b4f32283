"""Bad input to Atari raises a one-line error; it never hangs, crashes or ends the process."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import ale_py
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from optimist.config import EnvConfig
from optimist.envs.make import make_envs
from optimist.errors import ConfigError, MissingExtra, OptimistError, ShapeMismatch, UnknownName
from tests.envs.atari.helpers import make


@pytest.fixture(scope="module")
def pong():
    envs = make("Pong", num_envs=2)
    envs.reset(seed=0)
    return envs


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0, 6], ConfigError, r"actions must be in \[0, 6\), got 0 to 6"),
        ([-1, 0], ConfigError, r"actions must be in \[0, 6\), got -1 to 0"),
        ([0], ShapeMismatch, r"actions is int64\[1\], expected int64\[2\]"),
        ([0.0, 1.0], ShapeMismatch, r"actions is float64\[2\], expected int64\[2\]"),
    ],
)
def test_invalid_actions_are_rejected(pong, actions, error, message):
    # ALE itself would hang.
    with pytest.raises(error, match=message):
        pong.step(np.array(actions))


@pytest.mark.parametrize("options", [{"reset_mask": [True]}, {"reset_mask": np.array([1, 0])}, {"mask": True}])
def test_reset_takes_one_option(pong, options):
    with pytest.raises(ShapeMismatch, match=r"reset takes one option, reset_mask as bool\[2\]"):
        pong.reset(options=options)


def test_step_and_render_need_a_reset():
    envs = make("Pong")
    with pytest.raises(ResetNeeded, match="Pong has not started"):
        envs.step(np.array([0]))
    with pytest.raises(ResetNeeded, match="the first reset has to be of all"):
        envs.reset(options={"reset_mask": np.array([False])})
    with pytest.raises(ResetNeeded, match="render_mode='rgb_array'"):
        envs.render()


def test_closed_environment_rejects_calls():
    envs = make("Pong")
    envs.reset(seed=0)
    envs.close()
    envs.close()
    for call in (lambda: envs.step(np.array([0])), lambda: envs.reset(seed=0)):
        with pytest.raises(ClosedEnvironmentError, match="Pong was closed: make a new environment"):
            call()


@pytest.mark.parametrize("game", ["Combat", "Joust", "MazeCraze", "Warlords"])
def test_multiplayer_games_are_rejected(game):
    # ALE itself would end the process.
    with pytest.raises(ConfigError, match=f"{game} is a multiplayer game"):
        make(game)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"game": "Brekout", "sticky": 0.0}, UnknownName, "no Atari game 'Brekout'; did you mean 'Breakout'?"),
        ({"game": "Pong"}, ConfigError, "missing 1 required keyword-only argument: 'sticky'"),
        ({"game": "Pong", "sticky": 1.5}, ConfigError, r"sticky is a probability in \[0, 1\), got 1.5"),
        ({"game": "Pong", "sticky": True}, ConfigError, "sticky is a probability"),
        ({"game": "Pong", "sticky": 0.0, "no_ops": -1}, ConfigError, "no_ops must be a whole number of at least 0"),
        ({"game": "Pong", "sticky": 0.0, "max_frames": 0.5}, ConfigError, "max_frames must be a whole number"),
        ({"game": "Pong", "sticky": 0.0, "render_mode": "human"}, ConfigError, "render_mode must be 'rgb_array'"),
        ({"game": "Pong", "sticky": 0.0, "stiky": 1}, ConfigError, r"no keyword .* 'stiky'; did you mean 'sticky'"),
        (
            {"game": "Pong", "sticky": 0.0, "lanes": 2},
            UnknownName,
            r"^env.kwargs.lanes of optimist/Atari-v0 no longer exists: use env.kwargs.num_workers$",
        ),
        (
            {"game": "Pong", "sticky": 0.0, "backend": "envpool"},
            UnknownName,
            r"^env.kwargs.backend of optimist/Atari-v0 no longer exists: ale-py runs all games; `optimist bench atari`",
        ),
        (
            {"game": "Pong", "sticky": 0.0, "nonsense": 3},
            UnknownName,
            r"^no keyword of optimist/Atari-v0 'nonsense'; known: emulator, fire_after_life_loss, .*, worker_type",
        ),
    ],
)
def test_bad_settings_are_named_in_one_line(kwargs, error, message):
    with pytest.raises(error, match=message) as caught:
        make_envs(EnvConfig(id="optimist/Atari-v0", num_envs=1, kwargs=kwargs))
    assert "\n" not in str(caught.value)


def test_damaged_or_missing_rom_is_named(tmp_path, monkeypatch):
    # ALE itself would end the process.
    roms = tmp_path / "roms"
    roms.mkdir()
    shutil.copy(Path(ale_py.__file__).parent / "roms" / "pong.bin", roms)
    monkeypatch.setenv("ALE_ROMS_DIR", str(roms))
    with pytest.raises(OptimistError, match=r"cannot load the ROM of Breakout: .*No such file"):
        make("Breakout")
    (roms / "pong.bin").write_bytes((roms / "pong.bin").read_bytes()[:-1])
    with pytest.raises(OptimistError, match=r"cannot load the ROM of Pong: The hash of pong\.bin does not") as caught:
        make("Pong")
    assert "\n" not in str(caught.value)


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    config = EnvConfig(id="optimist/Atari-v0", num_envs=1, kwargs={"game": "Pong", "sticky": 0.0})
    with pytest.raises(MissingExtra, match=r"^Atari needs ale-py: pip install '.\[atari\]' in the clone of optimist$"):
        make_envs(config)
