"""The display of a sweep: a live table on a terminal, lines elsewhere."""

import io
import re

from rich.console import Console

from optimist.sweep.driver import Driver
from optimist.sweep.folder import SweepFolder
from optimist.sweep.progress import LiveDisplay, State, draw_table
from tests.sweep.test_driver import NAME, RUNS, FakeExecutor
from tests.sweep.tiny import tiny_plan


def shown(tmp_path, script, *, terminal, quiet=False):
    folder = SweepFolder(tmp_path)
    driver = Driver(folder, FakeExecutor(folder, script), retries=0)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=110)
    with LiveDisplay(folder, [run.record for run in RUNS], console, quiet=quiet) as display:
        driver.run_all(tiny_plan(), display)
    return console.file.getvalue()


def test_without_a_terminal_a_line_for_each_run_that_ended(tmp_path):
    lines = shown(tmp_path, {NAME: [0]}, terminal=False).splitlines()
    assert len(lines) == 5
    assert lines[0] == f"{NAME} failed: failed at 0"
    assert lines[-2].endswith("finished (3 of 4)")
    assert re.fullmatch(r"3 of 4 runs finished, 1 failed in \d+:\d\d", lines[-1])


def test_remaining_time_follows_from_the_steps_of_all_runs_so_far(tmp_path):
    now = [0.0]
    records = [run.record | {"budget": 1_000} for run in RUNS]
    console = Console(file=io.StringIO(), width=110)
    with LiveDisplay(SweepFolder(tmp_path), records, console, clock=lambda: now[0]) as display:
        display.refresh([])
        now[0] = 30.0
        assert display.remaining == ""  # no step so far
        first, second, third, fourth = display.states.values()
        first.state, first.step = "finished", 1_000
        second.state, second.step = "running", 500
        assert display.remaining == "about 0:50 left"  # 2,500 steps at 50 a second
        fourth.state = "failed"
        assert display.remaining == "about 0:30 left"
        display.refresh([])
        assert third.state == "waiting"
    assert console.file.getvalue().splitlines()[0] == "about 0:30 left"


def test_the_table_on_a_terminal_ends_with_the_last_state(tmp_path):
    text = shown(tmp_path, {NAME: [0]}, terminal=True)
    table = [line for line in text.splitlines() if "deepsea/" in line and "DeepSea-v0 size=5" in line]
    last = {line.split()[0].rpartition("m")[2]: line for line in table}
    assert "1/2" in last["deepsea/ppo"]
    assert "2/2" in last["deepsea/opr"]
    assert f"{NAME} failed: failed at 0" in text


def test_many_environments_are_one_line_a_method():
    records = [run.record for run in tiny_plan(seeds=1, flags={"size": list(range(3, 33))}).runs]
    states = {one["run"]: State("finished", one["budget"], 0.5) for one in records}
    table = draw_table(records, states)
    assert table.row_count == 2
    cells = [list(column.cells) for column in table.columns]
    assert cells[1] == ["30 environments"] * 2
    assert cells[3] == ["30/30"] * 2
    assert cells[6] == ["", ""]  # no mean over different environments


def test_quiet_shows_nothing(tmp_path):
    assert shown(tmp_path, {NAME: [0]}, terminal=True, quiet=True) == ""
