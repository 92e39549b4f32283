"""A run folder from a stranger: nothing in it is run, followed or waited for."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import optimist
from optimist.cli.main import main

FILES = ("config.toml", "metrics.jsonl", "summary.json", "final.safetensors", ".lock")
OPENINGS = {
    "evaluate": lambda run, out: ["evaluate", run, "--episodes", "1"],
    "resume": lambda run, out: ["resume", run, "--quiet"],
    "watch": lambda run, out: ["watch", run, "--text", "--steps", "3"],
    "export": lambda run, out: ["export", run, "--to", "onnx", str(out / "onnx")],
    "score": lambda run, out: ["score", run, "--episodes", "2"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("finished") / "run"
    optimist.train("deepsea/opr", size=5, out=run, total_steps=2_048, tensorboard=False, progress=False)
    return run


@pytest.fixture
def run(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "run"))


def stopped(run):
    """The run as if it had been stopped before its last line."""
    (run / "summary.json").unlink()
    (run / "final.safetensors").unlink()
    return run


def opened(argv, capfd):
    """Exit code and the one line of the error."""
    code = main(argv)
    _, text = capfd.readouterr()
    return code, text


def assert_one_line(code, text):
    assert code == 2
    assert text.count("\n") == 1
    assert text.startswith("optimist: error: ")
    assert "Traceback" not in text


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_other_kinds_of_files_are_refused(run, tmp_path, capfd, opening, name, kind):
    (run / name).unlink(missing_ok=True)
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    {"link": lambda path: path.symlink_to(victim), "fifo": os.mkfifo, "folder": os.mkdir}[kind](run / name)
    assert_one_line(*opened(OPENINGS[opening](str(run), tmp_path), capfd))
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard"])
def test_folders_that_are_links_are_refused(run, tmp_path, capfd, name):
    outside = tmp_path / "outside"
    (outside / "step-1").mkdir(parents=True)
    shutil.rmtree(run / name, ignore_errors=True)
    (run / name).symlink_to(outside)
    assert_one_line(*opened(["resume", str(stopped(run)), "--quiet"], capfd))
    assert (outside / "step-1").is_dir()


def test_a_checkpoint_that_is_a_link_is_not_used(run, tmp_path, capfd):
    newest = max((run / "checkpoints").iterdir())
    shutil.move(newest, tmp_path / newest.name)
    (run / "checkpoints" / newest.name).symlink_to(tmp_path / newest.name)
    assert_one_line(*opened(["evaluate", str(stopped(run)), "--episodes", "1"], capfd))


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "tensors.safetensors"])
def test_files_of_a_checkpoint_that_are_links_are_refused(run, tmp_path, capfd, name):
    file = max((run / "checkpoints").iterdir()) / name
    shutil.move(file, tmp_path / name)
    file.symlink_to(tmp_path / name)
    assert_one_line(*opened(["resume", str(stopped(run)), "--quiet"], capfd))


MODULE = "import pathlib\npathlib.Path(__file__).with_name('was-run').touch()\n"


@pytest.mark.parametrize("opening", OPENINGS)
def test_no_module_that_a_config_names_is_imported(run, tmp_path, opening):
    if opening == "resume":
        stopped(run)
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace('"optimist/DeepSea-v0"', '"stranger:DeepSea-v0"'))
    for name in ("stranger.py", "numpy.py", "torch.py", "tensorboard.py", "imageio.py"):
        (run / name).write_text(MODULE)
    found = subprocess.run(
        [sys.executable, "-m", "optimist", *OPENINGS[opening](".", tmp_path)],
        cwd=run, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )  # fmt: skip
    assert found.returncode == 2
    assert "whose module would be imported and run; if you trust it, add --env stranger:DeepSea-v0" in found.stderr
    assert not (run / "was-run").exists()


def test_python_imports_no_module_that_a_config_names(run):
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace('"optimist/DeepSea-v0"', '"stranger:DeepSea-v0"'))
    with pytest.raises(optimist.errors.ConfigError, match="in Python env='stranger:DeepSea-v0'"):
        optimist.load(run)


def test_a_module_that_is_imported_already_is_not_asked_for_again(run):
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace('"optimist/DeepSea-v0"', '"os:optimist/DeepSea-v0"'))
    assert optimist.load(run).act(0) in (0, 1)


def test_a_module_named_again_is_imported(run, tmp_path, monkeypatch, capfd):
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace('"optimist/DeepSea-v0"', '"mine:optimist/DeepSea-v0"'))
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    argv = ["evaluate", str(run), "--episodes", "1", "--env"]
    assert main([*argv, "mine:optimist/DeepSea-v0"]) == 0
    assert (tmp_path / "was-run").exists()
    capfd.readouterr()
    assert_one_line(*opened([*argv, "other:optimist/DeepSea-v0"], capfd))


def test_a_keyword_that_imports_is_refused(run, capfd):
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace('"optimist/DeepSea-v0"', '"GymV26Environment-v0"'))
    assert_one_line(*opened(["evaluate", str(run)], capfd))


def test_a_resumed_config_sends_nothing_to_weights_and_biases(run, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)  # an import would raise
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(config.replace("wandb = false", "wandb = true"))
    assert main(["resume", str(stopped(run))]) == 0
    assert "Weights & Biases: off; config.toml asks for it" in capfd.readouterr().err


DOCUMENTS = {
    "escape sequence": 'preset = "\\u001b]0;owned\\u0007"\n',
    "deep arrays": "x = " + "[" * 5_000 + "]" * 5_000 + "\n",
    "deep tables": "x = " + "{a = " * 100 + "1" + "}" * 100 + "\n",
    "a huge number": "seed = " + "9" * 5_000 + "\n",
    "too large": "#" * 2**20 + "\n",
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("opening", ["evaluate", "resume"])
def test_hostile_configs_are_one_line(run, tmp_path, capfd, document, opening):
    content = DOCUMENTS[document]
    (stopped(run) / "config.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, text = opened(OPENINGS[opening](str(run), tmp_path), capfd)
    assert_one_line(code, text)
    assert "\x1b" not in text


@pytest.mark.parametrize("summary", ["[1]", "{", '{"a": NaN}', '{"a": 1, "a": 2}', '{"run": "\\u001b[31m"}'])
def test_hostile_summaries_are_one_line(run, capfd, summary):
    (run / "summary.json").write_text(summary)
    assert_one_line(*opened(["resume", str(run)], capfd))


@pytest.mark.parametrize("name", FILES[:3])
@pytest.mark.parametrize("kind", ["fifo", "link", "device", "huge"])
def test_a_report_lists_what_it_cannot_read(run, tmp_path, capsys, name, kind):
    (run / name).unlink()
    match kind:
        case "fifo":
            os.mkfifo(run / name)
        case "link":
            (run / name).symlink_to("/etc/passwd")
        case "device":
            (run / name).symlink_to("/dev/zero")
        case "huge":
            with (run / name).open("wb") as file:
                file.truncate(2**33)
    shutil.copytree(run, tmp_path / "good", ignore=lambda *_: [name])
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "out")]) in (0, 2)
    capsys.readouterr()


def forged(run, change):
    """The newest checkpoint with a changed state and a manifest that fits it."""
    from optimist.tracking import checkpoint

    folder = max((run / "checkpoints").iterdir())
    state = checkpoint.load_checkpoint(folder)
    change(state["state"])
    checkpoint.save_checkpoint(run / "checkpoints", checkpoint.checkpoint_step(folder), state)
    return stopped(run)


FORGERIES = {
    "update is text": lambda state: state.update(update="many"),
    "no algorithm": lambda state: state.pop("algorithm"),
    "algorithm is a list": lambda state: state.update(algorithm=[1, 2]),
    "policy of another shape": lambda state: state["algorithm"].update(policy={"x": 1}),
    "config is a number": lambda state: state.update(config=3),
    "envs is text": lambda state: state.update(envs="none"),
    "changes is a number": lambda state: state.update(changes=7),
    "scores is none": lambda state: state.update(scores=None),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("opening", ["resume", "evaluate", "watch"])
def test_forged_checkpoints_are_one_line_or_unused(run, tmp_path, capfd, forgery, opening):
    run = forged(run, FORGERIES[forgery])
    code, text = opened(OPENINGS[opening](str(run), tmp_path), capfd)
    if code:
        assert_one_line(code, text)
    assert "Traceback" not in text


def test_a_forged_policy_size_is_one_line(run, tmp_path, capfd):
    metadata = json.dumps({"steps": "many"})
    import safetensors.torch

    tensors = safetensors.torch.load_file(run / "final.safetensors")
    safetensors.torch.save_file(tensors, run / "final.safetensors", metadata={"optimist": metadata})
    assert_one_line(*opened(OPENINGS["evaluate"](str(run), tmp_path), capfd))
