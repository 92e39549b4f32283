"""Each door into the library opens: the README's lines, the lines in the docs, the examples."""

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
def test_the_lines_that_train_run_as_they_stand(page, tmp_path):
    result = run(["-c", python_blocks(page)[0]], tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_the_lines_for_stable_baselines3_run_as_they_stand(tmp_path):
    (lines,) = python_blocks("docs/start/stable_baselines3.md")
    result = run(["-c", lines.replace("20_000", "4_096")], tmp_path)
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(r"OPR remembers \d+ episodes, with returns of \d+ to \d+\n", result.stdout)


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_a_model_of_stable_baselines3_trains(flags, tmp_path):
    result = run([str(ROOT / "examples" / "sb3_ppo.py"), "--steps", "4096", *flags], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "4,096 steps · mean return" in result.stdout
    assert "render_mode" not in result.stderr


def test_the_lines_for_rllib_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "local")  # a session of its own
    (lines,) = python_blocks("docs/start/rllib.md")
    small = '"CartPole-v1").env_runners(num_env_runners=0).training(train_batch_size=512, num_epochs=1)'
    result = run(["-c", lines.replace('"CartPole-v1")', small).replace("range(10)", "range(2)")], tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_an_algorithm_of_rllib_trains(flags, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "local")
    result = run([str(ROOT / "examples" / "rllib_ppo.py"), "--steps", "2048", *flags], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "2,048 steps · mean return" in result.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/start/own_trainer.md"])
def test_the_lines_that_add_opr_stand_in_the_example(page):
    example = (ROOT / "examples" / "own_loop.py").read_text(encoding="utf-8")
    called = set(re.findall(r"opr\.(\w+)\(", python_blocks(page)[-1]))
    assert {"observe", "shape", "loss"} <= called
    assert "from optimist import OPRConfig, OptimisticRegularizer, Steps" in python_blocks(page)[-1]
    for name in ("observe", "shape", "loss"):
        assert f"opr.{name}(" in example


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_own_loop_trains(flags, tmp_path):
    result = run([str(ROOT / "examples" / "own_loop.py"), "--steps", "11000", *flags], tmp_path)
    assert result.returncode == 0, result.stderr
    assert "10,240 steps · goal reached" in result.stdout


def test_pages_link_to_pages_that_exist():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    links = [
        (page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    ]
    assert len(links) > 20
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()] == []
