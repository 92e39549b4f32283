import json
import subprocess
import sys

import pytest

from optimist.cli.main import main
from tests.sweep.tiny import tiny_file


def error_of(argv, capsys):
    assert main([str(word) for word in argv]) == 2
    captured = capsys.readouterr().err
    assert captured.count("\n") == 1
    return captured.removeprefix("optimist: error: ").rstrip("\n")


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["sweep"], "no sweep file; expected optimist sweep FILE.toml, or optimist sweep status DIR"),
        (["sweep", "absent.toml"], "cannot read config file absent.toml: No such file or directory"),
        (["sweep", "absent.toml", "--jbos", "2"], "no flag '--jbos'; did you mean '--jobs'?"),
    ],
)
def test_bad_commands_are_one_line(argv, line, capsys):
    assert error_of(argv, capsys) == line


def test_a_bad_file_or_number_of_jobs_leaves_no_folder_of_runs(tmp_path, capsys):
    file, out = tiny_file(tmp_path, more="sedes = 3\n"), tmp_path / "out"
    assert "tiny.toml: no setting 'sedes'; did you mean 'seeds'?" in error_of(["sweep", file, "-o", out], capsys)
    assert not out.exists()
    file = tiny_file(tmp_path)
    assert error_of(["sweep", file, "-o", out, "--jobs", "0"], capsys) == "--jobs must be at least 1, got 0"
    assert not (out / "runs").exists()


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--time-limit", "9"], "--time-limit must be a time such as 9m, 2h or 500s, got '9'"),
        (["--time-limit", "0m"], "--time-limit must be a time such as 9m, 2h or 500s, got '0m'"),
        (["--shard", "5/4"], "--shard must be K/N with K from 1 to N, as in 2/4, got 5/4"),
        (["--shard", "2"], "--shard must be K/N with K from 1 to N, as in 2/4, got 2"),
    ],
)
def test_a_bad_limit_or_shard_is_one_line(flags, line, tmp_path, capsys):
    assert error_of(["sweep", tiny_file(tmp_path), "-o", tmp_path / "out", *flags], capsys) == line


def test_shards_have_every_run_once_and_folders_of_their_own(tmp_path, capsys):
    file, found = str(tiny_file(tmp_path)), []
    for shard in ("1/3", "2/3", "3/3"):
        assert main(["sweep", file, "-o", str(tmp_path / "out"), "--dry-run", "--shard", shard]) == 0
        *lines, last = capsys.readouterr().out.splitlines()
        assert last.endswith(f"into {tmp_path / 'out'}-{shard.replace('/', '-of-')}")
        found += [line.split()[0] for line in lines]
    assert main(["sweep", file, "--dry-run"]) == 0
    assert sorted(found) == sorted(line.split()[0] for line in capsys.readouterr().out.splitlines()[:-1])


def test_a_dry_run_lists_the_runs_and_does_nothing(tmp_path, capsys):
    assert main(["sweep", str(tiny_file(tmp_path)), "-o", str(tmp_path / "out"), "--dry-run"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert last == f"4 runs, 8,192 steps, into {tmp_path / 'out'}"
    assert not (tmp_path / "out").exists()


def test_status_of_a_folder_that_is_no_sweep_is_one_line(tmp_path, capsys):
    assert error_of(["sweep", "status", tmp_path], capsys).endswith("is not the folder of a sweep: it has no plan.json")
    for text in ("{", "[]", '{"statistic": "auto"}'):
        (tmp_path / "plan.json").write_text(text)
        assert "plan.json is damaged" in error_of(["sweep", "status", tmp_path], capsys)


def test_status_counts_and_names_what_failed(tmp_path, capsys):
    out = tmp_path / "out"
    file = tiny_file(tmp_path, seeds=1)
    assert main(["sweep", str(file), "-o", str(out), "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"out": str(out), "runs": 2, "failed": []}
    (out / "runs" / "deepsea-opr_size-5" / "seed-0" / "summary.json").write_text("{")
    assert main(["sweep", "status", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "failed: deepsea-opr_size-5/seed-0: " in shown
    assert shown.splitlines()[-1] == "1 of 2 runs finished, 1 failed; no process works on it"
    assert main(["sweep", "status", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deepsea-ppo_size-5/seed-0"]["state"] == "finished"


@pytest.mark.parametrize("argv", [["sweep", "--help"], ["sweep", "status", "--help"], ["sweep", "table", "--help"]])
def test_help_is_light(argv):
    code = (
        "import sys\nfrom optimist.cli.main import main\n"
        f"try:\n    main({argv!r})\nexcept SystemExit:\n    pass\n"
        "heavy = ('torch', 'tyro', 'gymnasium', 'numpy', 'rich', 'ray')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_stopped_sweep_prints_how_to_continue(tmp_path, monkeypatch, capsys):
    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("optimist.sweep.driver.run_sweep", stopped)
    assert main(["sweep", str(tiny_file(tmp_path)), "-o", str(tmp_path / "out")]) == 130
    assert "stopped; run the same command again to continue" in capsys.readouterr().err


def test_a_table_is_written_again_from_the_rows(tmp_path, capsys):
    out, file = tmp_path / "out", tiny_file(tmp_path, seeds=1)
    assert "has no runs.jsonl; run optimist sweep" in error_of(["sweep", "table", file, "-o", out], capsys)
    assert main(["sweep", str(file), "-o", str(out), "--quiet"]) == 0
    tiny_file(tmp_path, seeds=1, more='measures = ["episodes"]\n')
    assert main(["sweep", "table", str(file), "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("| method | env | steps | seeds | episodes |\n")
    assert text == (out / "table.md").read_text()


def test_a_finished_sweep_is_named_and_shown(tmp_path, capsys):
    out, file = tmp_path / "out", tiny_file(tmp_path, seeds=1)
    assert main(["sweep", str(file), "-o", str(out), "--quiet"]) == 0
    assert main(["sweep", str(file), "-o", str(out)]) == 0
    assert capsys.readouterr().out.startswith("2 runs found, none run again; --out DIR for a fresh rerun\n")
