"""Charts over training: their runs, the order of these, and their legend."""

import pytest
from matplotlib import pyplot

from optimist.errors import UnknownName
from optimist.report.charts import PALETTE
from optimist.report.identify import ATARI, CAGE2
from optimist.report.rows import collect
from optimist.report.study import Study
from optimist.report.training_charts import cage_zoom, learning
from tests.report.fake_runs import write_run


def legend(folder, **finished):
    """Label → colour of the learning chart of PPO+OPR and PPO, written in this order."""
    write_run(folder / "a", "atari/fast", game="Frostbite", finished=finished.get("opr", False))
    write_run(folder / "b", "atari/fast-ppo", game="Frostbite", finished=finished.get("ppo", False))
    return {key.label: key.color for key in learning(Study(*collect([folder])).family(ATARI)).keys}


def test_ppo_has_the_first_colour_for_finished_and_unfinished_runs(tmp_path):
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


def test_finished_and_unfinished_runs_of_a_method_share_a_colour(tmp_path):
    write_run(tmp_path / "c", "atari/fast-ppo", game="Pong")
    shown = legend(tmp_path)
    assert shown["PPO, fast"] == shown["PPO, fast (unfinished)"] == PALETTE[0]
    assert shown["PPO+OPR, fast (unfinished)"] == PALETTE[1]


def test_legend_names_the_published_scores_of_the_panels(tmp_path):
    shown = legend(tmp_path)
    assert "OPR, the paper's “10M”" in shown
    assert not any("50M" in label for label in shown)  # that table has no Frostbite
    write_run(tmp_path / "c", "atari/fast", game="Pong", finished=False)
    both = learning(Study(*collect([tmp_path])).family(ATARI))
    assert [key.label for key in both.keys][-1] == "SIL, the paper's “50M”"


def test_cage_chart_has_the_last_half_as_an_inset_and_the_numbers_of_the_paper(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / f"{seed}", "cage2/cardiff", seed=seed, score=-5.0)
    chart = cage_zoom(Study(*collect([tmp_path])).family(CAGE2))
    assert [panel.title for panel in chart.panels] == ["B_line, final rules, 30 steps"]
    axis = pyplot.figure().add_subplot()
    chart.panels[0].draw(axis)
    (inset,) = axis.child_axes
    half, whole = inset.get_xlim(), axis.get_xlim()
    assert half[0] == pytest.approx(half[1] / 2)
    assert half[1] == pytest.approx(whole[1] / 1.01)
    pyplot.close()
    assert [key.label for key in chart.keys] == ["Cardiff", "paper: Cardiff −6.2", "paper: Cardiff+OPR −4.2"]
    svg, png, _ = chart.save(tmp_path)
    assert "environment steps (millions)" in svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_cage_chart_shows_the_papers_three_methods_unless_others_are_named(tmp_path):
    for name in ("cardiff", "cardiff-opr", "ppo"):
        write_run(tmp_path / name, f"cage2/{name}", score=-5.0)
    family = Study(*collect([tmp_path])).family(CAGE2)
    assert len(labels(cage_zoom(family))) == 3  # one of the paper's has no run: all
    write_run(tmp_path / "literal", "cage2/cardiff-opr-paper", score=-5.0)
    family = Study(*collect([tmp_path])).family(CAGE2)
    paper = labels(cage_zoom(family))
    assert len(paper) == 3
    assert "Cardiff+OPR" not in paper
    assert labels(cage_zoom(family, ["cage2/cardiff-opr", "Cardiff"])) == ["Cardiff", "Cardiff+OPR"]
    with pytest.raises(UnknownName, match=r"no method with runs .*cage2/cardif'; did you mean 'cage2/cardiff'"):
        cage_zoom(family, ["cage2/cardif"])


def labels(chart):
    return [key.label for key in chart.keys if not key.label.startswith("paper:")]
