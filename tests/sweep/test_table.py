import json

import pytest

from optimist.sweep.folder import WorkFolder
from optimist.sweep.run import record
from optimist.sweep.statistic import score
from optimist.sweep.status import one_line, read_states
from optimist.sweep.table import collect, markdown, rows, write_results
from tests.sweep.tiny import tiny_plan

RECORDS = [record(run) for run in tiny_plan(seeds=3).runs]
SUMMARY = {"steps": 2_048, "last_100_return": 0.5, "statistic": "last 100", "solved": False}


def finish(folder, name, **changes):
    path = folder.run_path(name)
    path.mkdir(parents=True)
    (path / "summary.json").write_text(json.dumps(SUMMARY | changes))


def test_mean_and_interval_by_hand(tmp_path):
    folder = WorkFolder(tmp_path)
    own = [one["run"] for one in RECORDS if one["method"] == "deepsea/opr"]
    for name, value in zip(own, (1.0, 2.0, 3.0), strict=True):
        finish(folder, name, last_100_return=value, solved=value > 1)
    row = next(row for row in rows(collect(folder, RECORDS, "auto")) if row.method == "deepsea/opr")
    # t(0.975, 2) · 1/√3 = 4.303 · 0.57735
    assert row.words() == ["deepsea/opr", "DeepSea-v0 size=5", "2,048", "3", "2.00 ± 2.48", "2/3", "last 100"]


def test_what_is_missing_is_counted_and_named(tmp_path):
    folder = WorkFolder(tmp_path)
    for one in RECORDS[:-2]:
        finish(folder, one["run"])
    folder.event(RECORDS[-1]["run"], "failed", error="it fell")
    lines = collect(folder, RECORDS, "auto")
    text = markdown(lines)
    assert "2 of 3" in text
    assert f"- {RECORDS[-1]['run']}: it fell" in text
    assert f"- {RECORDS[-2]['run']}: not finished" in text
    assert [line["state"] for line in lines[-2:]] == ["unfinished", "failed"]


def test_a_method_with_no_finished_run_still_has_its_row(tmp_path):
    (row, other) = rows(collect(WorkFolder(tmp_path), RECORDS, "auto"))
    assert row.words()[3:5] == other.words()[3:5] == ["0 of 3", "–"]


def test_runs_measured_by_different_statistics_do_not_share_a_row(tmp_path):
    folder = WorkFolder(tmp_path)
    own = [one for one in RECORDS if one["method"] == "deepsea/ppo"]
    finish(folder, own[0]["run"])
    finish(folder, own[1]["run"], final_evaluation={"mean_return": 0.9, "statistic": "final policy"})
    assert len(rows(collect(folder, own[:2], "auto"))) == 2


@pytest.mark.parametrize("text", ["{", '{"steps": 1}', "[]"])
def test_a_damaged_summary_is_missing_from_the_table_with_its_reason(tmp_path, text):
    folder = WorkFolder(tmp_path)
    finish(folder, RECORDS[0]["run"])
    (folder.run_path(RECORDS[0]["run"]) / "summary.json").write_text(text)
    (line,) = collect(folder, RECORDS[:1], "auto")
    assert line["state"] == "failed"
    assert "summary.json" in line["error"]


def test_the_lines_are_read_back_as_they_were(tmp_path):
    folder = WorkFolder(tmp_path)
    finish(folder, RECORDS[0]["run"])
    lines = collect(folder, RECORDS, "auto")
    runs, _ = write_results(folder, lines)
    assert [json.loads(line) for line in runs.read_text().splitlines()] == lines


def test_the_statistic_is_the_final_policy_s_where_there_is_one():
    summary = SUMMARY | {
        "final_evaluation": {"mean_return": 0.9, "statistic": "final"},
        "best_evaluation": {"mean_return": 1.0, "statistic": "best"},
    }
    assert score(summary, "auto") == (0.9, "final")
    assert score(SUMMARY, "auto") == (0.5, "last 100")
    assert score(summary, "last-100") == (0.5, "last 100")
    assert score(summary, "best-epoch") == (1.0, "best")


def test_states_are_read_from_the_folder_alone(tmp_path):
    folder = WorkFolder(tmp_path)
    lock = folder.claim("plan.json")
    names = [one["run"] for one in RECORDS]
    finish(folder, names[0])
    folder.event(names[1], "failed", error="it fell")
    for name in names[2:4]:
        folder.event(name, "start")
        folder.run_path(name).mkdir(parents=True)
    (folder.run_path(names[2]) / "metrics.jsonl").write_text('{"step": 512, "rollout/raw_return": 0.25}\n{"step": 76')
    states = read_states(folder, RECORDS)
    assert one_line(states) == "1 of 6 runs finished, 2 running, 1 failed, 2 waiting"
    assert (states[names[2]].step, states[names[2]].raw_return) == (512, 0.25)
    lock.release()
    assert read_states(folder, RECORDS)[names[2]].state == "unfinished"
