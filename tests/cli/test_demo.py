"""The demo trains both methods, ends with the table and says where everything is."""

import json

from optimist.cli.demo import conversion, main


def test_the_demo_ends_with_a_table_and_a_folder(tmp_path, capsys):
    assert (
        main(["--seeds", "2", "--total-steps", "2048", "--jobs", "1", "--out", str(tmp_path / "demo"), "--json"]) == 0
    )
    *_, last = capsys.readouterr().out.splitlines()
    result = json.loads(last)
    assert [row["method"] for row in result["rows"]] == ["PPO", "PPO+OPR"]
    assert all(row["runs"] == 2 for row in result["rows"])
    assert (tmp_path / "demo" / "table.md").read_text().count("\n") == 4
    assert len(list((tmp_path / "demo").glob("deepsea-*/summary.json"))) == 4


def test_conversion_counts_only_runs_that_saw_the_goal():
    runs = [
        {"goal_seen": True, "solved": True},
        {"goal_seen": True, "solved": False},
        {"goal_seen": False, "solved": False},
    ]
    row = conversion("PPO", runs)
    assert (row["runs"], row["seen"], row["solved"], row["conversion"]) == (3, 2, 1, 0.5)
    assert conversion("PPO", runs[2:])["conversion"] is None
