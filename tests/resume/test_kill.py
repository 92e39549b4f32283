"""Runs in processes of their own are killed at random moments and end as if they had never been interrupted.

`benchmarks/kill_and_resume.py` does it, here at a few moments; its table of twenty is in results/resume.
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
def test_killed_at_any_moment_a_run_ends_as_if_it_had_never_been(task, tmp_path):
    arguments = ("--tasks", task, "--moments", "4", "--signals", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
    found = outcomes(tmp_path, *arguments, "--seed", "5")
    assert [outcome["signal"] for outcome in found] == ["SIGKILL", "SIGKILL", "SIGTERM", "SIGINT"]
    for outcome in found:
        assert all(outcome[part] for part in PARTS), outcome
    assert any(outcome["resumed_from"] for outcome in found), "not one of them came far enough to be resumed"


@pytest.mark.slow
def test_killed_again_while_it_resumes_a_run_still_ends_the_same(tmp_path):
    (outcome,) = outcomes(tmp_path, "--tasks", "deepsea", "--moments", "1", "--twice", "--seed", "3")
    assert all(outcome[part] for part in PARTS), outcome
