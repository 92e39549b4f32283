"""The benchmark of the Atari console runs, at a small size; skipped where the console is not built."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "atari_console.py"
errors = pytest.importorskip("a2600.errors", reason="the console is not installed: pip install ./packages/a2600")
core = pytest.importorskip("a2600.core")
pytest.importorskip("ale_py", reason="ale-py has the ROMs")


@pytest.fixture(autouse=True)
def _built():
    try:
        core.load_core()
    except errors.CoreMissing as error:
        pytest.skip(str(error))


def test_games_of_the_file_are_not_measured_again(tmp_path):
    out = tmp_path / "rows.jsonl"
    command = [sys.executable, str(SCRIPT), "--seconds", "0.02", "--rounds", "2", "--num-envs", "2", "--out", str(out)]
    first = subprocess.run([*command, "Pong"], capture_output=True, text=True, timeout=600)
    assert first.returncode == 0, first.stderr
    (row,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert {name: len(turns) for name, turns in row["turns"].items()} == {"a2600 2": 2, "ale 1": 2, "ale 2": 2}
    assert row["ratio"] == pytest.approx(row["a2600"] / row["ale"])
    second = subprocess.run([*command, "Pong", "Alien"], capture_output=True, text=True, timeout=600)
    games = [json.loads(line)["game"] for line in out.read_text().splitlines()]
    assert games == ["pong", "alien"]
    table = subprocess.run([*command, "--table"], capture_output=True, text=True, timeout=600)
    assert table.stdout == second.stdout
    assert "Geometric mean of 2 games" in table.stdout
