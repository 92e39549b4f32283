"""What a driver shows: a live table on a terminal, lines elsewhere."""

import io

from rich.console import Console

from optimist.sweep.drive import Driver
from optimist.sweep.folder import WorkFolder
from optimist.sweep.run import drive_all, record
from optimist.sweep.status import Board, State, draw
from tests.sweep.test_drive import NAME, RUNS, Pretend
from tests.sweep.tiny import tiny_plan


def shown(tmp_path, script, *, terminal, quiet=False):
    folder = WorkFolder(tmp_path)
    driver = Driver(folder, Pretend(folder, script), retries=0)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=110)
    with Board(driver, [record(run) for run in RUNS], console, quiet=quiet) as board:
        drive_all(driver, tiny_plan(), board)
    return console.file.getvalue()


def test_without_a_terminal_a_line_for_each_run_that_ended(tmp_path):
    lines = shown(tmp_path, {NAME: [0]}, terminal=False).splitlines()
    assert len(lines) == 4
    assert lines[0] == f"{NAME} failed: fell at 0"
    assert lines[-1].endswith("finished (3 of 4)")


def test_a_terminal_has_a_table_that_ends_with_the_last_state(tmp_path):
    text = shown(tmp_path, {NAME: [0]}, terminal=True)
    table = [line for line in text.splitlines() if "deepsea/" in line and "DeepSea-v0 size=5" in line]
    last = {line.split()[0].rpartition("m")[2]: line for line in table}
    assert "1/2" in last["deepsea/ppo"]
    assert "2/2" in last["deepsea/opr"]
    assert f"{NAME} failed: fell at 0" in text


def test_many_environments_are_one_row_a_method():
    records = [record(run) for run in tiny_plan(seeds=1, flags={"size": list(range(3, 33))}).runs]
    states = {one["run"]: State("finished", one["budget"], 0.5) for one in records}
    table = draw(records, states)
    assert table.row_count == 2
    cells = [list(column.cells) for column in table.columns]
    assert cells[1] == ["30 environments"] * 2
    assert cells[3] == ["30/30"] * 2
    assert cells[6] == ["", ""]  # a mean over different environments says nothing


def test_quiet_shows_nothing(tmp_path):
    assert shown(tmp_path, {NAME: [0]}, terminal=True, quiet=True) == ""
