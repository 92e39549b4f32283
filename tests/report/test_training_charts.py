"""Charts over training: which runs they show, in which order, and what their legend names."""

from optimist.report.charts import PALETTE
from optimist.report.identify import ATARI
from optimist.report.rows import collect
from optimist.report.study import Study
from optimist.report.training_charts import learning
from tests.report.made_up import write_run


def legend(folder, **finished):
    """Label → colour of the learning chart of PPO+OPR and PPO, written in this order."""
    write_run(folder / "a", "atari/fast", game="Frostbite", finished=finished.get("opr", False))
    write_run(folder / "b", "atari/fast-ppo", game="Frostbite", finished=finished.get("ppo", False))
    return {key.label: key.color for key in learning(Study(*collect([folder])), ATARI).keys}


def test_ppo_has_the_first_colour_whether_or_not_runs_have_ended(tmp_path):
    unfinished = legend(tmp_path / "unfinished")
    assert unfinished["PPO, fast (unfinished)"] == PALETTE[0]
    assert unfinished["PPO+OPR, fast (unfinished)"] == PALETTE[1]
    finished = legend(tmp_path / "finished", opr=True, ppo=True)
    assert finished["PPO, fast"] == PALETTE[0]
    assert finished["PPO+OPR, fast"] == PALETTE[1]
    one = legend(tmp_path / "one", opr=True)
    assert one["PPO, fast (unfinished)"] == PALETTE[0]
    assert one["PPO+OPR, fast"] == PALETTE[1]
    assert next(iter(one)) == "PPO, fast (unfinished)"


def test_a_method_has_one_colour_whether_its_runs_have_ended_or_not(tmp_path):
    write_run(tmp_path / "c", "atari/fast-ppo", game="Pong")
    shown = legend(tmp_path)
    assert shown["PPO, fast"] == shown["PPO, fast (unfinished)"] == PALETTE[0]
    assert shown["PPO+OPR, fast (unfinished)"] == PALETTE[1]


def test_the_legend_names_published_scores_that_a_panel_shows(tmp_path):
    shown = legend(tmp_path)
    assert "OPR, the paper's “10M”" in shown
    assert not any("50M" in label for label in shown)  # that table has no Frostbite
    write_run(tmp_path / "c", "atari/fast", game="Pong", finished=False)
    both = learning(Study(*collect([tmp_path])), ATARI)
    assert [key.label for key in both.keys][-1] == "SIL, the paper's “50M”"
