"""The comparison with Stable-Baselines3 at a size that shows that it works."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "against_sb3.py"
FILE = """
presets = ["gym/{algorithm}"]
flags.env = "CartPole-v1"
seeds = 1
settings.total_steps = 2_048
"""


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "dqn"])
def test_runs_of_both_libraries_have_rows_and_are_not_repeated(algorithm, tmp_path):
    pytest.importorskip("stable_baselines3")
    (tmp_path / "small.toml").write_text(FILE.format(algorithm=algorithm))
    command = [sys.executable, str(SCRIPT), str(tmp_path / "small.toml"), "--out", str(tmp_path)]
    first = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stderr
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [row["method"] for row in rows] == [f"gym/{algorithm}", f"gym/{algorithm} of stable-baselines3"]
    assert rows[0]["steps"] == rows[1]["steps"] > 0
    assert all(row["metrics"]["seconds"] > 0 for row in rows)
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (again.stdout, again.stderr) == (first.stdout, "")
