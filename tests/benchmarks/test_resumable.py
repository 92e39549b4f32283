"""What the benchmarks share: rows that survive an interruption, and runs that are not repeated."""

import json
import time
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.scripts import load

Runs = load("resumable").Runs
KEY = ("number", "seed")


def measured(number, seed, folder=None):
    """A run, in a process of its own; it leaves a trace in the folder. Number 13 brings bad luck."""
    if folder is not None:
        (Path(folder) / f"{number}-{seed}").touch()
        time.sleep(0.2)
    if number == 13:
        raise ArithmeticError("bad luck")
    return {"seed": seed, "number": number, "square": number**2, "curve": [number]}


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_row_is_written_for_every_job_that_has_none(tmp_path, capfd):
    file, traces = tmp_path / "new" / "runs.jsonl", tmp_path / "traces"
    traces.mkdir()
    run = partial(measured, folder=str(traces))
    first = Runs(file, KEY)
    first.add(run, first.missing([(2, 0)]), 1)
    assert lines(file) == first.rows == [{"curve": [2], "number": 2, "seed": 0, "square": 4}]
    (traces / "2-0").unlink()
    again = Runs(file, KEY)
    todo = again.missing([(3, 0), (2, 0), (2, 1)])
    assert todo == [(3, 0), (2, 1)]
    again.add(run, todo, 2)
    assert sorted(trace.name for trace in traces.iterdir()) == ["2-1", "3-0"]
    assert {again.job_of(row) for row in lines(file)} == {(2, 0), (3, 0), (2, 1)}
    said = capfd.readouterr().err.splitlines()
    assert [line[:4] for line in said] == ["1/1 ", "1/2 ", "2/2 "]
    assert "curve" not in said[0]


def test_sorting_puts_rows_and_file_in_the_same_order(tmp_path):
    file = tmp_path / "runs.jsonl"
    rows = [measured(number, seed) for number, seed in [(3, 0), (1, 1), (1, 0)]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = Runs(file, KEY, sort_names=False).sort(lambda row: (row["number"], row["seed"]))
    assert found == lines(file) == [rows[2], rows[1], rows[0]]
    assert file.read_text().startswith('{"seed": 0, "number": 1')  # entries as they were
    Runs(file, KEY).sort(lambda row: row["seed"])
    assert file.read_text().startswith('{"curve": [1], "number": 1')


def test_an_error_keeps_the_rows_before_it_and_begins_no_more_runs(tmp_path):
    file, traces = tmp_path / "runs.jsonl", tmp_path / "traces"
    traces.mkdir()
    jobs = [(2, 0), (13, 0), *((3, seed) for seed in range(20))]
    with pytest.raises(ArithmeticError, match="bad luck"):
        Runs(file, KEY).add(partial(measured, folder=str(traces)), jobs, 1)
    assert [row["number"] for row in lines(file)] == [2]
    assert len(list(traces.iterdir())) < 10
