"""The 49 games: names, ROMs and scores."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from optimist.envs.atari.games import GAMES, find_rom, get_game
from optimist.errors import UnknownName

PUBLISHED = json.loads(resources.files("optimist.report").joinpath("data/reference_scores.json").read_text("utf-8"))


def test_scores_match_the_published_table():
    scores = PUBLISHED["random_human"]["standard"]
    assert list(GAMES) == PUBLISHED["games"]
    assert {name: game.random_score for name, game in GAMES.items()} == scores["random"]
    assert {name: game.human_score for name, game in GAMES.items()} == scores["human"]


def test_every_game_has_a_rom():
    roms = {name: find_rom(name) for name in GAMES}
    assert roms == {name: game.rom for name, game in GAMES.items()}
    expected = {"MsPacman": "ms_pacman", "UpNDown": "up_n_down", "Jamesbond": "jamesbond", "Qbert": "qbert"}
    assert roms | expected == roms


def test_human_normalized_scores_match_values_by_hand():
    pong = get_game("Pong")
    assert [pong.human_normalized(score) for score in (-20.7, 14.6)] == [0.0, 1.0]
    assert pong.human_normalized(21.0) == pytest.approx(41.7 / 35.3)


def test_unknown_name_gets_a_suggestion():
    with pytest.raises(UnknownName, match="no Atari game 'Brekout'; did you mean 'Breakout'"):
        get_game("Brekout")
    with pytest.raises(UnknownName, match="no Atari game 'ms_pacman'; did you mean 'MsPacman'"):
        find_rom("ms_pacman")


def test_games_beyond_the_49_have_a_rom():
    assert find_rom("Pitfall") == "pitfall"
