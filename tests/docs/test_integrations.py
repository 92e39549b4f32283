"""The pages of docs/integrations: their code runs, their diff is that of the example, and they stay short."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "docs" / "integrations").glob("*.md"))}
SMALLER = {
    "rllib": {
        '"CartPole-v1")': '"CartPole-v1").env_runners(num_env_runners=0).training(train_batch_size=512, num_epochs=1)',
        "range(10)": "range(2)",
    },
    "stable_baselines3": {"20_000": "4_096"},
    "tianshou": {"20_000": "2_048"},
    "own_loop": {"range(200)": "range(20)"},
    "cleanrl": {},
}
"""Page → what makes its code smaller."""
PRINTED = {
    "rllib": r"\d+\.\d+",
    "stable_baselines3": r"OPR remembers \d+ episodes, with returns of \d+ to \d+",
    "tianshou": r"OPR remembers \d+ episodes, with returns of \d+ to \d+",
    "own_loop": r"\{'opr/admitted': .*'opr/threshold': .*\}",
    "cleanrl": r"\[True, True, False, True\]",
}
"""Page → the last line its code prints."""


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def test_there_is_a_page_for_each_integration():
    assert PAGES.keys() == SMALLER.keys()


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path):
    (code,) = blocks(page)
    for whole, smaller in SMALLER[page].items():
        assert whole in code
        code = code.replace(whole, smaller)
    environment = os.environ | {"RAY_ADDRESS": "local"}  # a session of its own
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(PRINTED[page], result.stdout.splitlines()[-1])
    assert "UserWarning: ends of episodes" not in result.stderr
    assert "UserWarning: the step after" not in result.stderr


def test_comments_show_what_the_lines_print(capsys):
    (code,) = blocks("cleanrl")
    exec(code, {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*# (\[.*?\])", code)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_installs_from_a_clone_and_is_short(page):
    (install,) = re.findall(r"^pip install (?:'\.\[(\w+)\]'|\.)$", blocks(page, "bash")[0], re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert not install or install in extras
    assert len(PAGES[page].splitlines()) <= 80


def bare(code):
    """Code without comments, space, and commas before a closing bracket."""
    return re.sub(r",(?=\))", "", re.sub(r"\s+", "", re.sub(r"  #.*", "", code)))


def test_the_diff_for_cleanrl_is_what_the_example_adds():
    example = (ROOT / "examples" / "cleanrl_ppo.py").read_text("utf-8").replace("enabled=not args.no_opr", "")
    (diff,) = blocks("cleanrl", "diff")
    parts = ["\n".join(line[1:] for line in part.splitlines() if line[:1] == "+") for part in diff.split("@@")]
    parts = [part for part in parts if part]
    assert len(parts) == 5
    for part in parts:
        assert bare(part) in bare(example)
    assert "-" not in {line[:1] for line in diff.splitlines()}
    assert sum(part.count("# OPR") for part in parts) == example.count("# OPR")
