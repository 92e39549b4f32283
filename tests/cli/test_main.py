import json
import os
import signal
import subprocess
import sys

import pytest

import optimist
from optimist.cli import main as cli
from optimist.cli.main import main
from optimist.errors import RunFolderError
from optimist.presets import all_presets


def fake_command(monkeypatch, run):
    monkeypatch.setattr("optimist.cli.presets.main", run)


def test_help_lists_the_commands_with_a_line_each(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("train", "resume", "evaluate", "presets"):
        assert f"  {name:<10}{cli.COMMANDS[name]}" in out


def test_every_listed_command_has_a_main():
    for name in cli.available_commands():
        module = __import__(f"optimist.cli.{name}", fromlist=["main"])
        assert callable(module.main)


def test_no_command_at_all_shows_help_and_fails(capsys):
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
        (["presets", "x"], "unexpected 'x'; a value follows its flag, as in --seed 3"),
        (["resume"], "the following arguments are required: RUN (see optimist resume --help)"),
        (
            ["evaluate", "x", "--episodes", "y"],
            "argument --episodes: invalid int value: 'y' (see optimist evaluate --help)",
        ),
        (["evaluate", "x", "--episodes", "0"], "--episodes must be at least 1 and --seed 0, got 0, 0"),
    ],
)
def test_bad_commands_are_one_line_and_exit_code_2(argv, line, capsys):
    assert main(argv) == 2
    assert capsys.readouterr().err == f"optimist: error: {line}\n"


def test_an_error_of_several_lines_is_shown_as_one(monkeypatch, capsys):
    def run(argv):
        raise RunFolderError("first\n  second")

    fake_command(monkeypatch, run)
    assert main(["presets"]) == 2
    assert capsys.readouterr().err == "optimist: error: first second\n"


def test_a_bug_is_not_hidden(monkeypatch):
    fake_command(monkeypatch, lambda argv: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["presets"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_give_their_exit_codes_and_the_handler_is_put_back(monkeypatch, number, code):
    before = signal.getsignal(signal.SIGTERM)
    fake_command(monkeypatch, lambda argv: os.kill(os.getpid(), number) or 0)
    assert main(["presets"]) == code
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("columns", [80, 200])
def test_presets_fit_the_terminal_and_flags_stand_once_a_family(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["presets"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= (80 if columns == 80 else 100)
    assert "keydoor  --height 6 --apple" in lines
    assert out.count("--apple") == 1
    (line,) = [line for line in lines if line.startswith("  keydoor/opr ")]
    assert line.endswith("PPO with OPR, our default, on Key-Door-Treasure.")
    assert all(f"\n  {preset.name} " in out for preset in all_presets())
    smoke = out[out.index("atari/smoke") : out.index("atari/dqn")]
    assert "(--game Pong --sticky 0.0)" in smoke  # without the family's --long


def test_presets_as_json(capsys):
    assert main(["presets", "--json"]) == 0
    assert "gym/a2c-opr" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("argv", [["--help"], ["presets"], ["train", "--help"], ["resume", "--help"]])
def test_light_commands_import_nothing_heavy(argv):
    code = (
        "import sys\nfrom optimist.cli.main import main\n"
        f"try:\n    main({argv!r})\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('torch', 'tyro', 'gymnasium', 'numpy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_is_the_command_and_ascii_terminals_are_fine():
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    command = [sys.executable, "-m", "optimist", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("usage: optimist COMMAND")


def test_a_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -m optimist presets | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
