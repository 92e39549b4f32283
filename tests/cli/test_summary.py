"""The printed summary of a run: sentences, a learning curve in characters, and the next commands."""

import json
import re
from itertools import pairwise

import pytest

from optimist.cli.main import main
from optimist.cli.summary import BLOCKS, draw_curve, sentences

SUMMARY = {
    "preset": "deepsea/opr",
    "env": "optimist/DeepSea-v0",
    "env_kwargs": {"size": 12},
    "algorithm": "ppo+opr",
    "seed": 3,
    "steps": 199_680,
    "updates": 195,
    "run": "runs/first",
    "last_100_return": 0.99,
    "episodes_in_statistic": 100,
    "episodes": 16_640,
    "time/seconds": 65.4,
    "time/steps_per_second": 3053.2,
}
GOAL = {"goal_seen": True, "first_goal_step": 40_384, "goal_rate": 0.5, "solved": False}
FOLDER = "Folder with settings, metrics, checkpoints and policy: runs/first"


def heights(lines):
    """The eighths of a line in each column of a curve."""
    rows = [line.partition("│ ")[2] for line in lines[:-1]]
    return [sum(BLOCKS.index(row[column]) for row in rows) for column in range(len(rows[0]))]


def test_the_summary_is_in_words():
    evaluations = {
        "final_evaluation": {"mean_return": 0.5, "episodes": 20, "interval_95": [0.25, 0.75]},
        "best_evaluation": {"mean_return": 0.99, "step": 51_200},
    }
    assert list(sentences(SUMMARY | GOAL | evaluations)) == [
        "deepsea/opr: PPO+OPR on DeepSea-12, seed 3: 199,680 steps in 1:05 (3,053 steps/s).",
        "Return: 0.99, the mean of the last 100 of 16,640 training episodes.",
        "Goal: not solved; first reached at step 40,384, and in 50% of the last 100 episodes.",
        "Evaluation, mean return: 0.5 in 20 fresh episodes at the end (95 % interval 0.25 to 0.75); at best 0.99 "
        "during training, at step 51,200.",
        FOLDER,
    ]


def test_parts_that_a_run_lacks_are_left_out():
    bare = SUMMARY | {"preset": "", "env": "CartPole-v1", "env_kwargs": {}, "episodes": 0, "time/since_step": 1024}
    assert list(sentences(bare)) == [
        "PPO+OPR on CartPole-v1, seed 3: 199,680 steps in 1:05 since step 1,024 (3,053 steps/s).",
        "Return: unknown, as no training episode has ended; train longer (--total-steps).",
        FOLDER,
    ]
    assert "Goal: never reached in training." in list(sentences(SUMMARY | GOAL | {"goal_seen": False}))
    changed = list(sentences(SUMMARY | {"changes": ["at step 4,096: seed 0 → 1"]}))
    assert "Settings changed while it was trained: at step 4,096: seed 0 → 1." in changed


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_curve_is_as_wide_as_the_terminal_and_as_high_as_its_values(columns):
    lines = draw_curve([0, 50, 100], [-1.0, -1.0, 3.0], columns=columns)
    assert [len(line) for line in lines] == [columns] * 7
    drawn = heights(lines)
    assert (drawn[0], drawn[-1]) == (1, 48)  # the smallest value is one eighth of a line
    assert set(drawn[: len(drawn) // 2]) == {1}
    assert all(before <= after for before, after in pairwise(drawn))
    assert lines[0].startswith(" 3 │")
    assert lines[-2].startswith("-1 │")
    assert lines[-1].split() == ["0", "100", "steps"]


def test_a_constant_curve_is_one_flat_line():
    first, axis = draw_curve([1024, 2048], [-0.0, 0.0], columns=30)
    assert re.fullmatch(r"0 │ ▁{26}", first)
    assert axis.split() == ["1,024", "2,048", "steps"]


@pytest.fixture
def trained(tmp_path, monkeypatch, capsys):
    """The lines that a short run prints in a terminal of 80 columns, and its folder."""
    monkeypatch.setenv("COLUMNS", "80")
    run = tmp_path / "my run"
    arguments = ["deepsea/opr", "--size", "4", "--total-steps", "4e3", "--no-tensorboard", "--out", str(run)]
    assert main(["train", *arguments]) == 0
    return capsys.readouterr(), run


def test_a_run_ends_with_its_curve_and_the_next_commands(trained, capsys):
    printed, run = trained
    out = printed.out.splitlines()
    assert out[-4:] == ["Next:", *(f"  optimist {word} '{run}'" for word in ("evaluate", "watch", "report"))]
    assert max(len(line) for line in out if str(run) not in line) == 80
    assert sum("│" in line for line in out) == 6
    assert not re.search(r"env_kwargs|last_100|time/|–", printed.out)
    assert "total_steps = 4,000 is rounded down to 3,072: whole updates of 1,024 steps (16 envs × 64)" in printed.err
    assert main(["resume", str(run)]) == 0
    assert capsys.readouterr().out == printed.out  # the summary of a finished run
    assert main(["resume", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((run / "summary.json").read_text())


def test_a_terminal_without_block_characters_gets_ascii(trained, monkeypatch):
    import io

    from optimist.cli.summary import print_summary

    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    monkeypatch.setattr("sys.stdout", stream)
    print_summary(json.loads((trained[1] / "summary.json").read_text()), as_json=False)
    stream.flush()
    text = stream.buffer.getvalue().decode()
    assert text.count("|") == 6
    assert "?" not in text
