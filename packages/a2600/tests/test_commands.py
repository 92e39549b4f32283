"""The command line: tables, raw data, and one clear line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from a2600.cli import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verify"], "name the games or pass --all, not both; `a2600 games` lists them"),
        (["verify", "pong", "--all"], "name the games or pass --all, not both; `a2600 games` lists them"),
        (["verify", "pnog"], "no game 'pnog' among the 49 supported games; did you mean 'pong'?"),
        (["verify", "pong", "--frames", "0"], "--frames must be at least 1, got 0"),
        (["bench", "pong", "--threads", "0"], "--threads must be at least 1, got 0"),
        (["bench", "pong", "--num-envs", "0"], "--num-envs must be at least 1, got 0"),
    ],
)
def test_bad_input_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == f"a2600: {message}\n"


def test_verify_keeps_raw_data_and_does_not_repeat_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows.jsonl"
    words = ["verify", "pong", "--frames", "50", "--seed", "3", "4", "--out", str(out)]
    assert main(words) == 0
    lines = out.read_text()
    assert [json.loads(line)["seed"] for line in lines.splitlines()] == [3, 4]
    assert main(words) == 0
    assert out.read_text() == lines
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == shown[2:]
    out.write_text("{}\n")
    assert main(words) == 2
    assert "is not a file of `a2600 verify --out`" in capsys.readouterr().err


def test_a_difference_is_in_the_table_and_in_the_exit_code(tmp_path: Path) -> None:
    from a2600.verify import Report, append_row, read_rows, table

    wrong = Report("pong", 2, 10, frames=10)
    wrong.count("ram", 7, "byte 3 is 1, expected 2")
    for report in (Report("pong", 1, 10, frames=10), wrong, Report("alien", 1, 10, frames=10)):
        append_row(tmp_path / "rows.jsonl", report)
    reports = list(read_rows(tmp_path / "rows.jsonl").values())
    text = table(reports)
    assert "| pong | 20 | 0 | 0 | 0 | 0 | seed 2: ram at frame 7: byte 3 is 1, expected 2 |" in text
    assert "1 of 2 games are exact." in text


def test_bench_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "pong", "--seconds", "0.02", "--rounds", "1", "--num-envs", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ratio"] == pytest.approx(result["rows"][0]["ratio"])
    assert result["ratio"] > 0


def test_a_missing_core_is_one_line() -> None:
    command = [sys.executable, "-m", "a2600.cli", "bench", "pong"]
    run = subprocess.run(command, env={**os.environ, "A2600_CORE": "/nowhere.so"}, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "the compiled core /nowhere.so cannot be loaded" in run.stderr
    assert "pip install ./packages/a2600" in run.stderr
