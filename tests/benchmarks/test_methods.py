"""The benchmarks of all methods and of delayed MuJoCo, at a size that shows that they work, not what they find."""

import json
import subprocess
import sys

import pytest

from optimist.errors import ConfigError
from tests.benchmarks.scripts import FOLDER, load


def test_runs_that_stand_in_the_file_are_not_run_again(tmp_path):
    command = [sys.executable, str(FOLDER / "methods.py"), "--tasks", "deepsea", "--presets", "ppo-sil", "acper"]
    command += ["--seeds", "1", "--total-steps", "2048", "--jobs", "1", "--out", str(tmp_path)]
    first = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert first.returncode == 0, first.stderr
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(row["method"], row["seed"], row["steps"]) for row in rows] == [("ppo-sil", 0, 2048), ("acper", 0, 2048)]
    again = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert again.stdout == first.stdout
    assert again.stderr == ""
    assert "| acper | " in (tmp_path / "table.md").read_text()


def test_the_table_counts_by_hand():
    methods = load("methods")
    rows = [
        {"task": "deepsea", "method": "a2c", "seed": seed, "budget": 10, "goal_seen": seed > 0, "solved": seed > 2,
         "seconds": 2.0}
        for seed in range(4)
    ]  # fmt: skip
    (line,) = [line for line in methods.render(rows).splitlines() if line.startswith("| a2c")]
    assert line.startswith("| a2c | 3/4 | 0.30 – 0.95 | 1/4 | 0.05 – 0.70 | 0.33 | 0.06 – 0.79 | 2 |")


def test_both_grids_share_the_methods_of_the_paper():
    shared = load("methods").shared_presets()
    assert {"ppo", "opr", "a2c", "a2c-opr", "ppo-sil", "a2c-sil", "acper", "acper-opr"} <= set(shared)


def test_a_delayed_mujoco_run_is_a_row_with_its_curve():
    pytest.importorskip("mujoco")
    mujoco = load("mujoco_delayed")
    with pytest.raises(ConfigError, match="bc_coef"):
        mujoco.run_one("Hopper-v5", "ppo-opr:bc_coef=-1", 20, 0, 4096)
    row = mujoco.run_one("Hopper-v5", "ppo-sil", 20, 0, 4096)
    assert (row["env"], row["method"], row["delay"], row["steps"]) == ("Hopper-v5", "ppo-sil", 20, 4096)
    assert [step for step, _ in row["curve"]] == [2048, 4096]
    table = mujoco.render([row, row | {"seed": 1, "last_100_return": row["last_100_return"] + 2.0}])
    assert f"| Hopper-v5 | 20 | 4,096 | ppo-sil | 2 | {row['last_100_return'] + 1:.0f} |" in table
