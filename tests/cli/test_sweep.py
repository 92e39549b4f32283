import json
import subprocess
import sys

import pytest

from optimist.cli.arguments import told_how_to_go_on
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
        (["sweep"], "which file? optimist sweep FILE.toml, or: optimist sweep status DIR"),
        (["sweep", "absent.toml"], "cannot read config file absent.toml: No such file or directory"),
        (["sweep", "absent.toml", "--jbos", "2"], "no flag '--jbos'; did you mean '--jobs'?"),
        (["tune", "deepsea/orp"], "no preset 'deepsea/orp'; did you mean 'deepsea/opr'?"),
        (["tune", "--trials", "3"], "the preset comes first: optimist tune PRESET --trials 3"),
        (["tune", "deepsea/opr", "--trails", "3"], "no flag '--trails'; did you mean '--trials'?"),
        (["tune", "deepsea/opr", "--seeds", "0"], "--trials and --seeds must be at least 1, got 20, 0"),
        (
            ["tune", "deepsea/opr", "--search", "seed=1..2", "--space", "x.toml"],
            "--space and --search are two ways to say the same; use one of them",
        ),
    ],
)
def test_bad_commands_are_one_line(argv, line, capsys):
    assert error_of(argv, capsys) == line


def test_a_bad_file_or_number_of_jobs_leaves_no_folder_of_runs(tmp_path, capsys):
    file, out = tiny_file(tmp_path, more="sedes = 3\n"), tmp_path / "out"
    assert "tiny.toml: no sweep key 'sedes'; did you mean 'seeds'?" in error_of(["sweep", file, "-o", out], capsys)
    assert not out.exists()
    file = tiny_file(tmp_path)
    assert error_of(["sweep", file, "-o", out, "--jobs", "0"], capsys) == "--jobs must be at least 1, got 0"
    assert not (out / "runs").exists()


def test_a_dry_run_lists_the_runs_and_does_nothing(tmp_path, capsys):
    assert main(["sweep", str(tiny_file(tmp_path)), "-o", str(tmp_path / "out"), "--dry-run"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert last == f"4 runs, 8,192 steps, into {tmp_path / 'out'}"
    assert not (tmp_path / "out").exists()


def test_status_of_a_folder_that_is_no_sweep_is_one_line(tmp_path, capsys):
    assert error_of(["sweep", "status", tmp_path], capsys).endswith("is not the folder of a sweep; it has no plan.json")
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
    told = capsys.readouterr().out
    assert "failed: deepsea-opr_size-5/seed-0: " in told
    assert told.splitlines()[-1] == "1 of 2 runs finished, 1 failed; nobody works on it now"
    assert main(["sweep", "status", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deepsea-ppo_size-5/seed-0"]["state"] == "finished"


@pytest.mark.parametrize("argv", [["sweep", "--help"], ["tune", "--help"]])
def test_help_is_light(argv):
    code = (
        "import sys\nfrom optimist.cli.main import main\n"
        f"try:\n    main({argv!r})\nexcept SystemExit:\n    pass\n"
        "heavy = ('torch', 'tyro', 'gymnasium', 'numpy', 'rich', 'ray', 'optuna')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_stopped_sweep_says_how_to_go_on(capsys):
    with pytest.raises(KeyboardInterrupt), told_how_to_go_on():
        raise KeyboardInterrupt
    assert "stopped; the same command goes on" in capsys.readouterr().err
