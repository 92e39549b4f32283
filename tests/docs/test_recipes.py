"""Each recipe of CONTRIBUTING.md, built as a package and trained with."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")
FILE = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```bash\noptimist (.*?)\n```$", re.MULTILINE)


def recipe(name):
    """Return the text of one recipe."""
    return TEXT.split(f"### Recipe: {name}\n")[1].split("\n### ")[0]


def install(text, folder):
    """Write the files of a recipe, with the metadata that `pip install` would write, and return their number."""
    files = dict(FILE.findall(text))
    groups = tomllib.loads(files.pop("pyproject.toml"))["project"]["entry-points"]
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(content)
    info = folder / "recipe-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: recipe\nVersion: 1.0\n")
    lines = [
        line for group, names in groups.items() for line in (f"[{group}]", *(f"{n} = {v}" for n, v in names.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return len(files)


def optimist(arguments, folder):
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "optimist", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.parametrize("name", ["environment family", "anchor", "learner"])
def test_a_recipe_needs_two_files_and_its_command_trains(name, tmp_path):
    text = recipe(name)
    assert install(text, tmp_path) == 2
    (command,) = COMMAND.findall(text)
    result = optimist([*shlex.split(command), "--json"], tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1])["steps"] == 2048
    presets = optimist(["presets", command.split()[1].partition("/")[0]], tmp_path).stdout
    assert command.split()[1] in presets


def test_every_recipe_is_tested():
    tested = {"environment family", "anchor", "learner"}
    assert set(re.findall(r"^### Recipe: (.*)$", TEXT, re.MULTILINE)) == tested


def test_a_report_names_the_environment_of_a_recipe(tmp_path):
    install(recipe("environment family"), tmp_path)
    trained = optimist(["train", "corridor/ppo", "--total-steps", "512", "--out", "runs/one"], tmp_path)
    assert trained.returncode == 0, trained.stderr
    reported = optimist(["report", "runs", "-o", "report"], tmp_path)
    assert reported.returncode == 0, reported.stderr
    assert "Corridor-8" in (tmp_path / "report" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(("name", "preset"), [("anchor", "bestepisode/deepsea"), ("learner", "reinforce/cartpole")])
def test_a_run_of_a_recipe_resumes(name, preset, tmp_path):
    install(recipe(name), tmp_path)
    run = ["train", preset, "--total-steps", "4096", "--checkpoint-every", "2048", "--out"]
    assert optimist([*run, "whole"], tmp_path).returncode == 0
    assert optimist([*run, "cut"], tmp_path).returncode == 0
    (tmp_path / "cut" / "summary.json").unlink()
    (tmp_path / "cut" / "final.safetensors").unlink()
    newest = max((tmp_path / "cut" / "checkpoints").iterdir(), key=lambda path: int(path.name.removeprefix("step-")))
    for path in newest.iterdir():
        path.unlink()
    newest.rmdir()
    resumed = optimist(["resume", "cut"], tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    whole, cut = ((tmp_path / name / "final.safetensors").read_bytes() for name in ("whole", "cut"))
    assert whole == cut


def test_a_plugin_without_settings_class_is_refused(tmp_path):
    install(recipe("learner"), tmp_path)
    (tmp_path / "reinforce" / "__init__.py").write_text((tmp_path / "reinforce" / "__init__.py").read_text().replace(
        "    settings_class = ReinforceConfig\n", ""))  # fmt: skip
    failed = optimist(["train", "reinforce/cartpole"], tmp_path)
    assert failed.returncode != 0
    assert "reinforce:Reinforce lacks settings_class" in failed.stderr
