"""The demo trains both methods, ends with the table and says where everything is."""

import json
import sys

import pytest

from optimist.cli.demo import cage2, live, main
from optimist.cli.demo.deepsea import conversion
from optimist.cli.demo.live import TimeLeft
from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.errors import ConfigError, MissingExtra, RunFolderError, UnknownName
from optimist.training.parallel import Job


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
    assert "1 short run" in (out / "table.md").read_text()
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


def jobs_of(folder, number=4, total_steps=1000):
    config = RunConfig(total_steps=total_steps, env=EnvConfig(num_envs=1), algorithm=PPOConfig(rollout_steps=100))
    return [Job("PPO", config, folder / str(seed)) for seed in range(number)]


def test_time_left_goes_by_the_steps_of_all_runs_since_the_first_were_seen(tmp_path):
    jobs, now = jobs_of(tmp_path), [100.0]
    left = TimeLeft(jobs, clock=lambda: now[0])
    assert left.words() == ""

    def at(seconds, *steps):
        now[0] = seconds
        for job, step in zip(jobs, steps, strict=False):
            job.out.mkdir(exist_ok=True)
            (job.out / "metrics.jsonl").write_text(json.dumps({"step": step}) + "\n")
        return left.words()

    assert at(130.0, 200) == ""  # loading took half a minute, which is over
    assert at(140.0, 500, 500) == "about 0:38 left"  # 800 steps in 10 s, and 3,000 to go
    assert at(150.0, 1000, 1000) == "about 0:22 left"
    assert at(190.0, 1000, 1000, 1000, 1000) == ""


def test_what_a_demo_will_take_goes_by_steps_and_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "available_cores", lambda: 2)
    jobs = jobs_of(tmp_path, number=9, total_steps=1_500_000)
    assert live.expected_time(jobs, 8, core_seconds=22.0) == "about 3 minutes of training on 2 free cores"
    assert live.expected_time(jobs, 1, core_seconds=22.0) == "about 5 minutes of training on 1 free core"
    assert live.expected_time(jobs[:1], 8, core_seconds=22.0) == "about 1 minute of training on 1 free core"


@pytest.mark.parametrize(
    ("better", "said"),
    [
        ([-4.9, -5.1, -6.4], "3 short runs of each cannot tell Cardiff+OPR and Cardiff apart (argmax, sampled)."),
        ([-1.9, -2.0, -2.1], ""),
        ([-9.9, -9.8, -9.7], ""),
        ([-5.0], "1 short run of each"),
    ],
)
def test_runs_that_cannot_be_told_apart_are_not_ranked(better, said):
    plain = [-5.0, -5.5, -6.0][: len(better)]
    rows = [{"method": name, "seeds": len(means), "argmax": means, "sampled": means}
            for name, means in (("PPO", [-30.0]), ("Cardiff", plain), ("Cardiff+OPR", better))]  # fmt: skip
    assert cage2.verdict(rows).startswith(said)
    assert bool(cage2.verdict(rows)) == bool(said)
