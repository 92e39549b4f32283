"""`optimist doctor`: what it finds in a run folder, and what it repairs."""

import shutil

import pytest

import optimist
from optimist.cli.main import main


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("doctor") / "run"
    settings = {"total_steps": 4_096, "checkpoint_every": 1_024, "tensorboard": False}
    optimist.train("deepsea/opr", size=5, out=run, progress=False, **settings)
    return run


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def answer(capsys, *argv):
    code = main(["doctor", *map(str, argv)])
    return code, capsys.readouterr().out.splitlines()


def test_a_sound_folder_has_no_problem(run, capsys):
    assert answer(capsys, run) == (0, [f"{run}: no problem found"])


def test_what_a_kill_leaves_is_found_and_repaired(run, capsys):
    (run / ".tmp-summary.json").write_text("{")
    (run / "checkpoints" / ".tmp-step-9").mkdir()
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5')
    code, lines = answer(capsys, run)
    assert code == 1
    assert sum("can be repaired with --repair" in line for line in lines) == 3
    code, lines = answer(capsys, run, "--repair")
    assert (code, sum("(repaired)" in line for line in lines)) == (0, 3)
    assert answer(capsys, run) == (0, [f"{run}: no problem found"])


def test_a_damaged_checkpoint_is_set_aside(run, capsys):
    newest = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.removeprefix("step-")))
    (newest / "state.json").write_text("{}")
    code, lines = answer(capsys, run)
    assert code == 1
    assert f"checkpoint {newest} is damaged: state.json has 2 bytes" in lines[0]
    assert answer(capsys, run, "--repair")[0] == 0
    assert (newest.parent / f"damaged-{newest.name}").is_dir()
    assert answer(capsys, run)[0] == 0


def test_what_cannot_be_repaired_is_named(run, capsys):
    (run / "summary.json").write_text("[1]")
    (run / "final.safetensors").write_bytes(b"x")
    (run / "config.toml").write_text("seed = true\n")
    code, lines = answer(capsys, run, "--repair")
    assert code == 1
    assert [line.endswith("(damaged)") for line in lines] == [True, True, True, False]
    assert lines[-1] == f"{run}: 3 left"


def test_a_folder_without_a_run_is_one_line(tmp_path, capsys):
    assert main(["doctor", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
