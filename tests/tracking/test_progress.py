import dataclasses
import io
import math

from rich.console import Console

from optimist.config import EnvConfig, PPOConfig, RunConfig, SILConfig
from optimist.core.config import OPRConfig
from optimist.tracking.progress import Progress, counting, header

CONFIG = RunConfig(
    total_steps=1000,
    seed=3,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 12}),
    algorithm=PPOConfig(rollout_steps=25),
    opr=OPRConfig(),
)
METRICS = {"rollout/raw_return": 0.5, "policy/entropy": 0.69314, "opr/threshold": -0.01, "opr/memory_fill": 0.42,
           "rollout/goal_rate": math.nan}  # fmt: skip


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def display(terminal=False, width=160, **options):
    clock = Clock()
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    return Progress(CONFIG, console=console, clock=clock, **options), console.file, clock


def test_the_header_says_what_trains_on_what():
    assert header(CONFIG) == "PPO+OPR on optimist/DeepSea-v0(size=12): 1,000 steps, 8 envs, seed 3"
    assert header(RunConfig(total_steps=100_000)).startswith("PPO on CartPole-v1: 99,328 steps")  # whole updates
    delayed = dataclasses.replace(RunConfig().env, reward_delay=20)
    both = dataclasses.replace(CONFIG, env=delayed, sil=SILConfig(enabled=True))
    assert header(both).startswith("PPO+OPR+SIL on CartPole-v1, rewards every 20 steps: ")


def test_without_a_terminal_there_are_plain_lines_now_and_then():
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


def test_the_last_step_is_always_shown():
    progress, file, clock = display(every=1e9)
    with progress:
        clock.now += 1.0
        progress.update(1000, {})
    assert "1,000/1,000" in file.getvalue()
    assert "0:00 left" in file.getvalue()


def test_on_a_terminal_the_bar_and_the_numbers_are_drawn():
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


def test_disabled_shows_nothing_and_still_measures_speed():
    progress, file, clock = display(enabled=False, notes=["a note"])
    with progress:
        clock.now += 2.0
        progress.update(500, METRICS)
        progress.message("hello")
    assert file.getvalue() == ""
    assert progress.steps_per_second == 250


def test_a_resumed_run_measures_its_speed_from_where_it_began():
    progress, _, clock = display(start=900)
    with progress:
        clock.now += 1.0
        progress.update(950, {})
    assert progress.steps_per_second == 50


def test_time_left_of_long_runs_has_hours():
    clock = Clock()
    console = Console(file=io.StringIO())
    long = Progress(dataclasses.replace(CONFIG, total_steps=1_000_000), console=console, clock=clock)
    clock.now = 1.0
    long.update(100, {})
    assert long.line(100, {}) == "100 steps/s · 2:46:39 left"


def test_what_an_update_does_not_measure_stays_as_it_was():
    progress, file, clock = display(every=1.0)
    with progress:
        clock.now += 1.0
        progress.update(100, METRICS)
        clock.now += 1.0
        progress.update(200, {"rollout/raw_return": 0.7, "opr/threshold": math.nan})
    last = file.getvalue().splitlines()[-1]
    assert last.endswith("return 0.7 · entropy 0.693 · τ -0.01 · memory 42%")


def test_work_that_is_counted_has_a_bar_on_a_terminal_and_one_line_elsewhere():
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
        with counting("playing 3 episodes", 3, console=console) as tick:
            for _ in range(3):
                tick()
        assert ("3/3" in console.file.getvalue()) == terminal
        assert (console.file.getvalue() == "playing 3 episodes ...\n") != terminal


def test_work_that_is_to_be_counted_in_silence_says_nothing(capsys):
    with counting("playing 3 episodes", 3, enabled=False) as tick:
        tick()
    assert capsys.readouterr().err == ""
