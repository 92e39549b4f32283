"""Exactness: every frame equals ale-py's, for one game of each cartridge and controller kind."""

from __future__ import annotations

import numpy as np
import pytest

from a2600.core import Console
from a2600.games import find_game
from a2600.verify import play, verify

GAMES = {
    "pong": "2K, paddle in the other port",
    "breakout": "2K, paddle",
    "alien": "4K, stack in TIA",
    "qbert": "4K, hangs at reset",
    "up_n_down": "F8, FIRE starts",
    "road_runner": "F6",
    "double_dunk": "F6, menu at reset",
    "montezuma_revenge": "E0",
    "robotank": "FE",
    "wizard_of_wor": "right port",
    "name_this_game": "select switch at reset",
}


@pytest.mark.parametrize("name", GAMES)
def test_2000_frames_equal_ale(name: str) -> None:
    report = verify(find_game(name), 2000, seed=21)
    assert report.exact, report.line()
    assert report.frames == 2000
    assert report.observations > 50


@pytest.mark.parametrize("name", ["pong", "alien"])
def test_all_actions_equal_ale(name: str) -> None:
    report = verify(find_game(name), 1000, seed=22, all_actions=True)
    assert report.exact, report.line()


def test_a_wrong_cartridge_setting_is_found() -> None:
    from dataclasses import replace

    wrong = replace(find_game("qbert"), first_line=34)
    report = verify(wrong, 20, seed=21)
    assert report.wrong["screen"] > 0
    assert report.wrong["ram"] == 0


def test_resets_repeat_ales_timer_values() -> None:
    import ale_py

    console, ale = Console(find_game("assault")), ale_py.ALEInterface()
    ale.loadROM(ale_py.roms.get_rom_path("assault"))
    for _ in range(30):
        ale.reset_game()
        console.reset()
        np.testing.assert_array_equal(console.ram, ale.getRAM())


def test_play_is_repeatable() -> None:
    first, second = play([0, 1, 2, 3], 5), play([0, 1, 2, 3], 5)
    actions = [next(first) for _ in range(500)]
    assert actions == [next(second) for _ in range(500)]
    assert len(set(actions)) == 4


def test_undrawn_frames_change_nothing_but_the_picture() -> None:
    drawn, undrawn = Console(find_game("seaquest")), Console(find_game("seaquest"))
    for console in (drawn, undrawn):
        console.reset()
    for frame, action in zip(range(1500), play(find_game("seaquest").actions, 3), strict=False):
        assert drawn.act(action) == undrawn.act(action, drawn=frame % 4 >= 2)
        np.testing.assert_array_equal(drawn.ram, undrawn.ram)
        if frame % 4 == 3:
            np.testing.assert_array_equal(drawn.screen, undrawn.screen)
