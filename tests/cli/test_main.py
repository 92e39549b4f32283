import os
import signal
import subprocess
import sys

import pytest

import optimist
from optimist.cli import main as cli
from optimist.cli.main import main
from optimist.errors import RunFolderError


def fake_command(monkeypatch, run):
    monkeypatch.setattr("optimist.cli.presets.main", run)


def test_help_lists_the_commands_with_a_line_each(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("train", "resume", "evaluate", "presets"):
        assert f"  {name:<10}{cli.COMMANDS[name]}" in out


def test_every_listed_command_has_a_main():
    for name in cli.COMMANDS:
        module = __import__(f"optimist.cli.{name}", fromlist=["main"])
        assert callable(module.main)


def test_no_command_prints_help_and_fails(capsys):
    assert main([]) == 2
    assert "usage: optimist COMMAND" in capsys.readouterr().err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"optimist {optimist.__version__}\n"


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["trian"], "no command 'trian'; did you mean 'train'?"),
        (["--hlep"], "no flag '--hlep'; did you mean '--help'?"),
        (["presets", "--jsn"], "no flag '--jsn'; did you mean '--json'?"),
        (["presets", "gym", "x"], "unexpected 'x': a value must follow its flag, as in --seed 3"),
        (["resume"], "the following arguments are required: RUN (see optimist resume --help)"),
        (
            ["evaluate", "x", "--episodes", "y"],
            "--episodes must be a whole number such as 100000, 100_000 or 1e5, got 'y' (see optimist evaluate --help)",
        ),
        (["evaluate", "x", "--episodes", "0"], "--episodes must be at least 1 and --seed at least 0, got 0 and 0"),
    ],
)
def test_bad_commands_are_one_line_and_exit_code_2(argv, line, capsys):
    assert main(argv) == 2
    assert capsys.readouterr().err == f"optimist: error: {line}\n"


def test_an_error_of_several_lines_is_printed_as_one(monkeypatch, capsys):
    def run(argv):
        raise RunFolderError("first\n  second")

    fake_command(monkeypatch, run)
    assert main(["presets"]) == 2
    assert capsys.readouterr().err == "optimist: error: first second\n"


def test_other_exceptions_are_not_caught(monkeypatch):
    fake_command(monkeypatch, lambda argv: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["presets"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_give_their_exit_codes_and_the_handler_is_restored(monkeypatch, number, code):
    before = signal.getsignal(signal.SIGTERM)
    fake_command(monkeypatch, lambda argv: os.kill(os.getpid(), number) or 0)
    assert main(["presets"]) == code
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("argv", [["--help"], ["presets"], ["train", "--help"], ["resume", "--help"]])
def test_light_commands_import_no_heavy_package(argv):
    code = (
        "import sys\nfrom optimist.cli.main import main\n"
        f"try:\n    main({argv!r})\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('torch', 'tyro', 'gymnasium', 'numpy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_the_command_on_an_ascii_terminal():
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    command = [sys.executable, "-m", "optimist", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("usage: optimist COMMAND")


def test_a_closed_pipe_prints_no_traceback():
    command = f"{sys.executable} -m optimist presets | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
