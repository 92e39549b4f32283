"""Rows and tables, by hand."""

import json
from dataclasses import replace

import pytest

from optimist.sweep.folder import SweepFolder
from optimist.sweep.plan import SweepFile
from optimist.sweep.progress import count_states, read_states
from optimist.sweep.results import collect_rows, markdown, read_statistic, table_cells, thin, write_results
from tests.sweep.tiny import tiny_plan

PLAN = tiny_plan(seeds=3)
RECORDS = [run.record for run in PLAN.runs]
SUMMARY = {"steps": 2_048, "last_100_return": 0.5, "statistic": "last 100", "solved": False}
TABLE = SweepFile()


def finish(folder, name, **changes):
    path = folder.run_path(name)
    path.mkdir(parents=True)
    (path / "summary.json").write_text(json.dumps(SUMMARY | changes))


def lines_of(rows, spec=TABLE):
    """The lines of the table by method and environment."""
    header, *lines = table_cells(rows, spec)
    return {(line[0], line[1]): dict(zip(header[2:], line[2:], strict=True)) for line in lines}


def test_mean_and_interval_by_hand(tmp_path):
    folder = SweepFolder(tmp_path)
    own = [one["run"] for one in RECORDS if one["method"] == "deepsea/opr"]
    for name, value in zip(own, (1.0, 2.0, 3.0), strict=True):
        finish(folder, name, last_100_return=value, solved=value > 1)
    # t(0.975, 2) · 1/√3 = 4.303 · 0.57735
    assert lines_of(collect_rows(folder, PLAN))["deepsea/opr", "DeepSea-v0 size=5"] == {
        "steps": "2,048",
        "seeds": "3",
        "value": "2.00 ± 2.48",
        "solved": "2/3 (0.21 – 0.94)",
        "statistic": "last 100",
    }


def test_missing_runs_are_counted_and_named(tmp_path):
    folder = SweepFolder(tmp_path)
    for one in RECORDS[:-2]:
        finish(folder, one["run"])
    folder.add_event(RECORDS[-1]["run"], "failed", error="it failed")
    rows = collect_rows(folder, PLAN)
    text = markdown(rows, TABLE)
    assert "2 of 3" in text
    assert f"- {RECORDS[-1]['run']}: it failed" in text
    assert f"- {RECORDS[-2]['run']}: not finished" in text
    assert [row["state"] for row in rows[-2:]] == ["unfinished", "failed"]


def test_a_method_without_a_finished_run_has_a_line(tmp_path):
    for line in lines_of(collect_rows(SweepFolder(tmp_path), PLAN)).values():
        assert (line["seeds"], line["value"]) == ("0 of 3", "–")


def test_runs_measured_by_different_statistics_have_different_lines(tmp_path):
    folder = SweepFolder(tmp_path)
    own = [run for run in PLAN.runs if run.method == "deepsea/ppo"][:2]
    finish(folder, own[0].name)
    finish(folder, own[1].name, final_evaluation={"mean_return": 0.9, "statistic": "final policy"})
    assert len(table_cells(collect_rows(folder, replace(PLAN, runs=tuple(own))), TABLE)) == 1 + 2


@pytest.mark.parametrize("text", ["{", '{"steps": 1}', "[]"])
def test_a_damaged_summary_is_missing_from_the_table_with_its_reason(tmp_path, text):
    folder = SweepFolder(tmp_path)
    finish(folder, RECORDS[0]["run"])
    (folder.run_path(RECORDS[0]["run"]) / "summary.json").write_text(text)
    (row,) = collect_rows(folder, replace(PLAN, runs=PLAN.runs[:1]))
    assert row["state"] == "failed"
    assert "summary.json" in row["error"]


def test_rows_are_read_back_as_they_were_written(tmp_path):
    folder = SweepFolder(tmp_path)
    finish(folder, RECORDS[0]["run"])
    rows = collect_rows(folder, PLAN)
    write_results(folder, rows, TABLE)
    assert folder.read_rows() == rows


def test_the_statistic_is_that_of_the_final_policy_if_it_was_evaluated():
    summary = SUMMARY | {
        "final_evaluation": {"mean_return": 0.9, "statistic": "final"},
        "best_evaluation": {"mean_return": 1.0, "statistic": "best"},
    }
    assert read_statistic(summary, "auto") == (0.9, "final")
    assert read_statistic(SUMMARY, "auto") == (0.5, "last 100")
    assert read_statistic(summary, "last-100") == (0.5, "last 100")
    assert read_statistic(summary, "best-epoch") == (1.0, "best")


def make_row(method, seed, steps=100, flags=None, **metrics):
    env = " ".join(f"{name}={value}" for name, value in (flags or {}).items())
    return {
        "run": f"{method}-{env}/seed-{seed}", "method": method, "env": f"Task {env}".strip(), "flags": flags or {},
        "seed": seed, "budget": steps, "state": "finished", "steps": steps, "value": 0.0, "statistic": "any",
        "metrics": metrics,
    }  # fmt: skip


def test_shares_have_intervals_and_conversion_counts_the_runs_that_saw_the_goal():
    rows = [make_row("a2c", seed, goal_seen=seed > 0, solved=seed > 2) for seed in range(4)]
    spec = SweepFile(measures=["goal_seen", "solved", "solved/goal_seen"])
    (line,) = lines_of(rows, spec).values()
    assert list(line.values())[2:] == ["3/4 (0.30 – 0.95)", "1/4 (0.05 – 0.70)", "1/3 (0.06 – 0.79)"]


def test_the_baseline_is_compared_by_welch_or_fisher_on_the_same_task():
    rows = [make_row("cardiff", seed, argmax_return=-5.0 - seed) for seed in range(3)]
    rows += [make_row("cardiff-opr", seed, steps=101, argmax_return=-4.0) for seed in range(3)]
    lines = lines_of(rows, SweepFile(measures=["argmax_return"], baseline="cardiff"))
    assert lines["cardiff", "Task"]["argmax_return"] == "-6.00 ± 2.48"
    assert lines["cardiff", "Task"]["against cardiff"] == "–"
    assert lines["cardiff-opr", "Task"]["argmax_return"] == "-4.00 ± 0.00"
    assert lines["cardiff-opr", "Task"]["against cardiff"] == "2.00 ± 2.48"
    rows = [
        make_row(method, seed, goal_seen=seed < seen) for method, seen in (("ppo", 6), ("opr", 3)) for seed in range(32)
    ]
    lines = lines_of(rows, SweepFile(measures=["goal_seen"], baseline="ppo"))
    assert lines["opr", "Task"]["against ppo"] == "p = 0.24"


def test_means_over_a_flag_count_only_seeds_that_have_all_its_values():
    rows = [
        make_row("cardiff", seed, flags={"red": "B_line", "rules": "final"}, score=-4.0 - seed) for seed in range(2)
    ]
    rows += [make_row("cardiff", 0, flags={"red": "Meander", "rules": "final"}, score=-6.0)]
    lines = lines_of(rows, SweepFile(measures=["score"], average_over="red"))
    assert [(env, line["seeds"], line["score"]) for (_, env), line in lines.items()] == [
        ("Task red=B_line rules=final", "2", "-4.50 ± 6.35"),
        ("Task red=Meander rules=final", "1", "-6.00"),
        ("Task mean over red rules=final", "1", "-5.00"),
    ]


def test_budgets_have_lines_of_their_own():
    rows = [make_row("dqn", seed, score=-5.0) for seed in range(3)] + [make_row("dqn", 0, steps=10, score=-90.0)]
    _, *lines = table_cells(rows, SweepFile(measures=["score"]))
    assert lines == [["dqn", "Task", "10", "1", "-90.00"], ["dqn", "Task", "100", "3", "-5.00 ± 0.00"]]


def test_a_speed_is_the_median_and_compared_with_another_library():
    rows = [make_row("ppo", seed, seconds=seconds) for seed, seconds in enumerate((0.5, 1.0, 4.0))]
    rows += [make_row("ppo of sb3", seed, seconds=2.0) for seed in range(3)]
    rows += [make_row("a2c", 0, seconds=1.0), make_row("a2c", 1)]  # one run was not timed
    lines = lines_of(rows, SweepFile(measures=["steps/s"]))
    assert [line["steps/s"] for line in lines.values()] == ["100 (2.00 ×)", "50", ""]


def test_a_row_has_its_curve_the_return_of_the_whole_run_and_of_the_final_policy(tmp_path):
    folder = SweepFolder(tmp_path)
    finish(folder, RECORDS[0]["run"], final_evaluation={"mean_return": 0.75, "statistic": "final policy"})
    lines = [{"step": step, "rollout/raw_return": step / 1_000} for step in range(1, 1_002)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder.run_path(RECORDS[0]["run"]) / "metrics.jsonl").write_text(text)
    (row,) = collect_rows(folder, replace(PLAN, runs=PLAN.runs[:1]))
    assert (row["metrics"]["final_return"], row["metrics"]["mean_return"]) == (0.75, pytest.approx(0.501))
    assert len(row["curve"]) <= 200
    assert row["curve"][-1] == [1_001, 1.001]


def test_a_thinned_curve_is_short_enough_and_keeps_its_last_point():
    curve = [[step, 0.0] for step in range(1, 151)]
    assert [len(thin(curve, points)) for points in (50, 100, 200)] == [50, 75, 150]
    assert thin(curve, 100)[-1][0] == 150
    assert thin([[1, 0.0]], 50) == [[1, 0.0]]


def test_states_are_read_from_the_folder_alone(tmp_path):
    folder = SweepFolder(tmp_path)
    lock = folder.lock()
    names = [one["run"] for one in RECORDS]
    finish(folder, names[0])
    folder.add_event(names[1], "failed", error="it failed")
    for name in names[2:4]:
        folder.add_event(name, "start")
        folder.run_path(name).mkdir(parents=True)
    (folder.run_path(names[2]) / "metrics.jsonl").write_text('{"step": 512, "rollout/raw_return": 0.25}\n{"step": 76')
    states = read_states(folder, RECORDS)
    assert count_states(states) == "1 of 6 runs finished, 2 running, 1 failed, 2 waiting"
    assert (states[names[2]].step, states[names[2]].raw_return) == (512, 0.25)
    lock.release()
    assert read_states(folder, RECORDS)[names[2]].state == "unfinished"


def test_a_row_keeps_the_mean_of_a_metric_over_the_last_third_by_hand(tmp_path):
    folder, plan = SweepFolder(tmp_path), tiny_plan(seeds=1, last_third=["policy/entropy", "opr/bc_weight"])
    run = plan.runs[0]
    finish(folder, run.name)
    steps = [512, 1_024, 1_366, 1_536, 2_048]  # of 2,048: the last third begins after 1,365
    lines = [{"step": step, "policy/entropy": float(i)} for i, step in enumerate(steps)]
    (folder.run_path(run.name) / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    row = collect_rows(folder, plan)[0]
    assert (row["metrics"]["policy/entropy"], row["metrics"]["opr/bc_weight"]) == (3.0, None)
