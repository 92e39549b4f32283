"""The code in README, docs and examples runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def run(arguments, folder):
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("page", ["README.md", "docs/start/first_run.md"])
def test_training_lines_run_unchanged(page, tmp_path):
    result = run(["-c", python_blocks(page)[0]], tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_the_stable_baselines3_example_trains(flags, tmp_path):
    result = run([str(ROOT / "examples" / "sb3_ppo.py"), "--steps", "4096", *flags], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "4,096 steps · mean return" in result.stdout
    assert "render_mode" not in result.stderr


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_the_rllib_example_trains(flags, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "local")
    result = run([str(ROOT / "examples" / "rllib_ppo.py"), "--steps", "2048", *flags], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "2,048 steps · mean return" in result.stdout


@pytest.mark.parametrize("page", ["docs/integrations/own_loop.md"])
def test_the_opr_lines_are_in_the_example(page):
    example = (ROOT / "examples" / "own_loop.py").read_text(encoding="utf-8")
    called = set(re.findall(r"opr\.(\w+)\(", python_blocks(page)[-1]))
    assert {"observe", "shape", "loss"} <= called
    assert "from optimist import OPRConfig, OptimisticRegularizer, Steps" in python_blocks(page)[-1]
    for name in ("observe", "shape", "loss"):
        assert f"opr.{name}(" in example


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_the_own_loop_example_trains(flags, tmp_path):
    result = run([str(ROOT / "examples" / "own_loop.py"), "--steps", "11000", *flags], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "10,240 steps · goal reached" in result.stdout
