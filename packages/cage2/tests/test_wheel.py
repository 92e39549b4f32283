"""The wheel alone in a clean virtual environment: no torch, at most 300 MB, and every command runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
CONSTRAINTS = PACKAGE.parents[1] / "constraints.txt"
MOST_MEGABYTES = 300
AGENT = "def agent(observation):\n    return 1\n"


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 2**20


@pytest.mark.slow
def test_wheel_runs_alone_and_is_small(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    python, cage2 = (str(tmp_path / "venv" / "bin" / name) for name in ("python", "cage2"))
    site = next((tmp_path / "venv" / "lib").glob("python3*")) / "site-packages"
    empty = megabytes(site)
    wheels = tmp_path / "wheels"
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(PACKAGE))
    (wheel,) = wheels.iterdir()
    assert re.fullmatch(r"cage2-[\d.]+-py3-none-any\.whl", wheel.name)
    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), str(wheel))
    run(python, "-m", "compileall", "-q", str(site / "cage2"))

    found = json.loads(run(cage2, "verify", "--json"))
    assert (found["steps"], found["disagreements"]) == (79_800, 0)
    (tmp_path / "mine.py").write_text(AGENT)
    for agent in ("best", "mine.py"):
        scored = json.loads(run(cage2, "score", agent, "--episodes", "5", "--json").splitlines()[-1])
        mode = "argmax" if agent == "best" else "agent"
        assert len(scored["rules"]["competition"][mode]["cells"]) == 9
    assert "return" in run(cage2, "watch", "best", "--horizon", "5")
    assert "difference" in run(python, "-m", "cage2", "duel", "best", "mine.py", "--horizon", "5")
    assert "steps per second per core" in run(cage2, "bench", "--games", "64", "--seconds", "0.05")
    run(cage2, "replay", "best", "--horizon", "5")
    assert (tmp_path / "replay.html").stat().st_size > 10_000
    run(cage2, "export", "best", "there")
    run(
        python,
        "-c",
        "import sys; sys.path.insert(0, 'there'); from agent import BlueAgent; BlueAgent().get_action([0] * 52)",
    )
    loaded = run(python, "-c", "import sys, cage2; print('numba' in sys.modules, 'torch' in sys.modules)")
    assert loaded.split() == ["False", "False"]
    assert megabytes(site) - empty <= MOST_MEGABYTES
