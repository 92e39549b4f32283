"""One game in words: `cage2 watch` and `cage2 duel`."""

from __future__ import annotations

import pytest

from cage2.cli import main
from cage2.game import Game, duel_lines, play_game, watch_lines
from cage2.rules.scenario import ACTION_NAMES, EXPLOITS, NOWHERE
from cage2.rules.state import GREEN_NAMES, REDS


@pytest.mark.parametrize("green", GREEN_NAMES)
@pytest.mark.parametrize("red", REDS)
def test_watch_has_a_line_for_each_step_within_80_columns(red: str, green: str) -> None:
    for agent in ("random", "best"):
        game = play_game(agent, red=red, green=green, seed=7, horizon=60)
        lines = list(watch_lines(game))
        assert len(lines) == 60 + 4
        assert max(map(len, lines)) <= 80
        assert lines[-1] == f"return {game.total:z.1f}"
        assert game.total == pytest.approx(sum(step.reward for step in game.steps))


def test_no_words_are_too_wide() -> None:
    from cage2.game import BLUE_WIDTH, RED_WIDTH, Step, blue_words
    from cage2.words import describe_red

    start = play_game("sleep", horizon=1).steps[0]
    for action in range(len(ACTION_NAMES)):
        assert len(blue_words(Step(**{**vars(start), "action": action}))) <= BLUE_WIDTH
    for verb in range(6):
        for target in range(3 if verb == 1 else 13):
            for exploit in range(len(EXPLOITS) + 1 if verb == 3 else 1):
                words = describe_red(verb, target, exploit if verb == 3 else len(EXPLOITS))
                assert len(words) <= RED_WIDTH, words


def test_a_game_is_the_one_of_the_environment_with_this_seed() -> None:
    import gymnasium

    game = play_game("sleep", red="Meander", rules="competition", seed=11, horizon=30)
    env = gymnasium.make("cage2/Scenario2-v0", red="Meander", rules="competition", horizon=30)
    env.reset(seed=11)
    for step in game.steps[1:]:
        observation, reward, *_ = env.step(0)
        assert (tuple(observation.tolist()), round(float(reward), 1)) == (step.bits, step.reward)


def test_duel_shows_the_first_difference_and_its_cost() -> None:
    one, other = (play_game(agent, seed=3, horizon=60) for agent in ("best", "react"))
    text = "\n".join(duel_lines(one, other))
    assert "step 1: best: Decoy Femitter User2" in text
    assert "step 1: react: Monitor" in text
    assert f"difference {other.total - one.total:+.1f} for react" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "same actions in all 60 steps" in "\n".join(duel_lines(one, one))


def test_red_plays_alike_until_blue_differs() -> None:
    one, other = (play_game(agent, red="Meander", seed=5, horizon=40) for agent in ("sleep", "react"))
    first = next(n for n, (a, b) in enumerate(zip(one.steps, other.steps, strict=True)) if a.action != b.action)
    for a, b in zip(one.steps[:first], other.steps[:first], strict=True):
        assert (a.red, a.bits, a.reward) == (b.red, b.bits, b.reward)


def test_green_is_shown_where_it_scans() -> None:
    game: Game = play_game("sleep", green="GreenAgent", seed=1, horizon=40)
    lines = list(watch_lines(game))[2:42]
    for step, line in zip(game.steps[1:], lines, strict=True):
        assert (step.green == NOWHERE) == (line[30:35].strip() == "")


def test_commands_print_and_refuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "react", "--red", "Meander", "--seed", "7", "--horizon", "5"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9
    assert main(["duel", "react", "sleep", "--horizon", "20"]) == 0
    assert "difference" in capsys.readouterr().out
    for arguments, message in (
        (["watch", "react", "--red", "Bline"], "invalid choice: 'Bline'"),
        (
            ["watch", "react", "--horizon", "0"],
            "horizon must be a whole number of steps above 0 and below 2**31, got 0",
        ),
        (["watch", "react", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["duel", "react"], "required: AGENT"),
        (["watch", "reakt"], "no agent 'reakt'; did you mean 'react'?"),
        (["wacht"], "invalid choice: 'wacht'"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err
