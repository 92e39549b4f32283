"""Concurrent runs: stopped after a time, resumed, and copied."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from optimist.tracking.writers import read_metrics

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "side_by_side.py"
FLAGS = (
    "--algorithm.rollout-steps 16 --env.num-envs 2 --total-steps 6400 --final-episodes 0 --env.kwargs.max-frames 400"
)


def run(tmp_path, *more):
    command = [sys.executable, str(SCRIPT), "--presets", "atari/smoke", "--game", "Pong"]
    command += ["--flags", FLAGS, "--out", str(tmp_path / "out"), "--keep", str(tmp_path / "kept"), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (tmp_path / "kept" / "segments.jsonl").read_text().splitlines()]


def test_a_failed_run_is_reported(tmp_path):
    command = [sys.executable, str(SCRIPT), "--presets", "atari/smoke", "--game", "Pnog"]
    done = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Pong" in done.stderr  # the run's own error
    (end,) = [json.loads(line) for line in (tmp_path / "out" / "segments.jsonl").read_text().splitlines()]
    assert not end["finished"]
    assert end["exit"] != 0


@pytest.mark.slow
def test_a_run_stopped_after_its_time_is_resumed_once(tmp_path):
    first = run(tmp_path, "--seconds", "0")
    assert [(row["run"], row["finished"]) for row in first] == [("smoke", False)]
    assert first[0]["exit"] == 130
    assert first[0]["cores"] > 0
    second = run(tmp_path)
    assert [row["finished"] for row in second] == [False, True]
    assert second[1]["command"].startswith("optimist resume")
    assert (second[1]["exit"], second[1]["step"]) == (0, 6400)
    assert run(tmp_path) == second
    kept = read_metrics(tmp_path / "kept" / "smoke" / "metrics.jsonl")
    whole = read_metrics(tmp_path / "out" / "smoke" / "metrics.jsonl")
    assert [line["step"] for line in whole] == list(range(32, 6401, 32))
    assert [line["step"] for line in kept] == [*range(32, 6401, 128), 6400]
    returns = [json.loads(line) for line in (tmp_path / "kept" / "smoke" / "returns.jsonl").read_text().splitlines()]
    assert [(line["step"], line["memory_episodes"]) for line in returns] == [
        (line["step"], line["opr/memory_episodes"]) for line in whole
    ]
    timeline = [json.loads(line) for line in (tmp_path / "kept" / "timeline.jsonl").read_text().splitlines()]
    assert timeline[-1]["step"] == 6400
    assert (tmp_path / "kept" / "smoke" / "summary.json").exists()
