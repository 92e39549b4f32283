import json

from optimist.cli.main import main


def test_all_games_are_listed_with_random_and_human_scores(capsys):
    assert main(["games"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["Alien", "227.8", "7,127.7"]
    assert lines[49].split() == ["Zaxxon", "32.5", "9,173.3"]
    assert main(["games", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 49
    assert listed["Pong"] == {"random": -20.7, "human": 14.6}


def test_one_game_is_shown_with_published_scores(capsys):
    assert main(["games", "Breakout"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Breakout: random 1.7, human 30.5")
    (line,) = [line for line in out.splitlines() if "ppo_atari_envpool_xla_jax" in line]
    assert line.split() == ["cleanrl_10M", "ppo_atari_envpool_xla_jax", "430.1", "8.1", "14.87"]
    assert main(["games", "Breakout", "--json"]) == 0
    published = json.loads(capsys.readouterr().out)["published"]
    assert {"block": "ppo_paper_10M", "method": "PPO", "mean": 274.8, "spread": None} in published


def test_unknown_game_is_a_one_line_error_with_a_suggestion(capsys):
    assert main(["games", "Brekout"]) == 2
    assert capsys.readouterr().err == "optimist: error: no Atari game 'Brekout'; did you mean 'Breakout'?\n"
