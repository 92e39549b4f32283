"""The benchmark on MinAtar: its table, and a run of each shape."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.scripts import load

RESULTS = Path(__file__).parents[2] / "results" / "minatar"


def test_the_table_is_of_the_rows_beside_it():
    rows = [json.loads(line) for line in (RESULTS / "runs.jsonl").read_text().splitlines()]
    command, _, table = (RESULTS / "table.md").read_text().partition("\n\n")
    assert load("small_atari").render(rows) == table
    assert "benchmarks/small_atari.py" in command


@pytest.mark.parametrize("method", ["opr:bc_coef=0.03", "dqn:algorithm.learning_starts=2048"])
def test_a_run_has_a_row_with_its_curve(method):
    row = load("small_atari").run_one("Breakout", method, 0, 4096)
    assert row["curve"][-1][0] == 4096
    assert row["mean_return"] > 0
