"""The progress display: a bar on a terminal, plain lines elsewhere."""

import io
import math

from rich.console import Console

from optimist.tracking.progress import Progress, counting

TOTAL = 1000
METRICS = {"rollout/raw_return": 0.5, "policy/entropy": 0.69314, "opr/threshold": -0.01, "opr/memory_fill": 0.42,
           "rollout/goal_rate": math.nan}  # fmt: skip


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def display(terminal=False, width=160, **options):
    clock = Clock()
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    return Progress("PPO on CartPole-v1", TOTAL, console=console, clock=clock, **options), console.file, clock


def test_without_a_terminal_plain_lines_are_printed_at_intervals():
    progress, file, clock = display(notes=["TensorBoard: not installed"], every=5.0)
    with progress:
        for step in (100, 200, 300):
            clock.now += 2.0
            progress.update(step, METRICS)
    lines = file.getvalue().splitlines()
    assert lines[1] == "TensorBoard: not installed"
    assert lines[2:] == [
        "      300/1,000  50 steps/s · 0:14 left · return 0.5 · entropy 0.693 · τ -0.01 · memory 42%",
    ]  # fmt: skip
    assert "\x1b" not in file.getvalue()


def test_evaluations_during_training_stay_on_the_display():
    progress, file, clock = display(every=0.0)
    with progress:
        progress.update(100, METRICS | {"evaluation/mean_return": 0.75, "evaluation/step": 100})
        clock.now += 1.0
        progress.update(200, METRICS)
    assert [" · return 0.5 · eval 0.75 · entropy" in line for line in file.getvalue().splitlines()[1:]] == [True, True]


def test_the_last_step_is_always_shown():
    progress, file, clock = display(every=1e9)
    with progress:
        clock.now += 1.0
        progress.update(1000, {})
    assert "1,000/1,000" in file.getvalue()
    assert "0:00 left" in file.getvalue()


def test_a_terminal_shows_a_bar_and_the_metrics():
    progress, file, clock = display(terminal=True, width=80)
    with progress:
        clock.now += 1.0
        progress.update(500, METRICS)
        progress.message("evaluated [7] episodes")
    assert "50%" in file.getvalue()
    assert "500 steps · 500 steps/s · 0:01 left" in file.getvalue()
    assert "return 0.5 · entropy 0.693 · τ -0.01 · memory 42%" in file.getvalue()
    assert "…" not in file.getvalue()
    assert "evaluated [7] episodes" in file.getvalue()


def test_a_disabled_display_prints_nothing_and_measures_speed():
    progress, file, clock = display(enabled=False, notes=["a note"])
    with progress:
        clock.now += 2.0
        progress.update(500, METRICS)
        progress.message("hello")
    assert file.getvalue() == ""
    assert progress.steps_per_second == 250


def test_a_resumed_run_measures_its_speed_from_its_first_step():
    progress, _, clock = display(start=900)
    with progress:
        clock.now += 1.0
        progress.update(950, {})
    assert progress.steps_per_second == 50


def test_time_left_of_long_runs_has_hours():
    clock = Clock()
    console = Console(file=io.StringIO())
    long = Progress("a long run", 1_000_000, console=console, clock=clock)
    clock.now = 1.0
    long.update(100, {})
    assert long.line(100) == "100 steps/s · 2:46:39 left"


def test_a_metric_missing_in_an_update_keeps_its_last_value():
    progress, file, clock = display(every=1.0)
    with progress:
        clock.now += 1.0
        progress.update(100, METRICS)
        clock.now += 1.0
        progress.update(200, {"rollout/raw_return": 0.7, "opr/threshold": math.nan})
    last = file.getvalue().splitlines()[-1]
    assert last.endswith("return 0.7 · entropy 0.693 · τ -0.01 · memory 42%")


def test_counting_shows_a_bar_on_a_terminal_and_one_line_elsewhere():
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
        with counting("playing 3 episodes", 3, console=console) as tick:
            for _ in range(3):
                tick()
        assert ("3/3" in console.file.getvalue()) == terminal
        assert (console.file.getvalue() == "playing 3 episodes ...\n") != terminal


def test_disabled_counting_prints_nothing(capsys):
    with counting("playing 3 episodes", 3, enabled=False) as tick:
        tick()
    assert capsys.readouterr().err == ""
