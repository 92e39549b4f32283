"""The demo trains both methods, ends with the table and says where everything is."""

import json
import sys

import pytest

from optimist.cli.demo import main
from optimist.cli.demo.deepsea import conversion
from optimist.errors import ConfigError, MissingExtra, RunFolderError, UnknownName


def test_the_demo_ends_with_a_table_and_a_folder(tmp_path, capsys):
    assert (
        main(
            [
                "deepsea",
                "--seeds",
                "2",
                "--total-steps",
                "2048",
                "--jobs",
                "1",
                "--out",
                str(tmp_path / "demo"),
                "--json",
            ]
        )
        == 0
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


def test_the_demo_of_cage2_compares_three_methods_and_writes_figure_and_replay(tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["--seeds", "1", "--total-steps", "40000", "--jobs", "2", "--out", str(out), "--json"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    rows = json.loads(last)["rows"]
    assert [row["method"] for row in rows] == ["PPO, 145 actions", "Cardiff", "Cardiff+OPR"]
    assert all(-400 < row[mode][0] < 0 for row in rows for mode in ("argmax", "sampled"))
    assert "shortened: 40,000 of the paper's 3,000,000 steps" in (out / "table.md").read_text()
    assert (out / "replay.txt").read_text().count("reward") == 30
    assert (out / "curves.svg").read_text().count("<svg") == 1


def test_an_unknown_demo_gets_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'cage2'"):
        main(["cage"])


@pytest.mark.parametrize("flag", ["--seeds", "--jobs", "--total-steps"])
def test_numbers_that_make_no_sense_are_named(flag):
    with pytest.raises(ConfigError, match=f"{flag} must be at least 1, got 0"):
        main(["deepsea", flag, "0"])


def test_a_folder_in_which_something_stands_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="is not empty; choose another --out"):
        main(["deepsea", "--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_missing_is_said_before_anything_is_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"optimist\[report\]"):
        main(["cage2", "--out", str(tmp_path / "demo")])
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "demo").exists()
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot write"):
        main(["deepsea", "--out", str(tmp_path / "file" / "demo")])
    assert capsys.readouterr().err == ""
