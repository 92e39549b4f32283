"""Runs killed at random moments and resumed end exactly like uninterrupted ones.

`benchmarks/kill_and_resume.py` kills them, here at few moments; the table of twenty moments is in results/resume.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_and_resume.py"
PARTS = ("policy", "checkpoint", "metrics", "summary")


def outcomes(folder: Path, *arguments: str) -> list[dict]:
    command = [sys.executable, str(SCRIPT), *arguments, "--out", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (folder / "moments.jsonl").exists(), result.stderr
    found = [json.loads(line) for line in (folder / "moments.jsonl").read_text().splitlines()]
    assert result.returncode == 0, result.stdout
    return found


@pytest.mark.slow
@pytest.mark.parametrize("task", ["deepsea", "cartpole"])
def test_a_killed_and_resumed_run_ends_like_an_uninterrupted_one(task, tmp_path):
    arguments = ("--tasks", task, "--moments", "4", "--signals", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
    found = outcomes(tmp_path, *arguments, "--seed", "5")
    assert [outcome["signal"] for outcome in found] == ["SIGKILL", "SIGKILL", "SIGTERM", "SIGINT"]
    for outcome in found:
        assert all(outcome[part] for part in PARTS), outcome
    assert any(outcome["resumed_from"] for outcome in found), "no run was killed after its first checkpoint"


@pytest.mark.slow
def test_a_run_killed_again_after_it_resumed_ends_like_an_uninterrupted_one(tmp_path):
    (outcome,) = outcomes(tmp_path, "--tasks", "deepsea", "--moments", "1", "--twice", "--seed", "3")
    assert all(outcome[part] for part in PARTS), outcome
