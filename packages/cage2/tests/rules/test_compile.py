"""Numba is loaded for the first game; kernels are compiled once and cached; `cage2 bench` measures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cage2
from cage2.cli import main
from cage2.rules.compile import COMPILED, SOURCE_DIGEST, source_digest

PACKAGE = Path(cage2.__file__).parent


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_importing_the_environments_does_not_load_numba() -> None:
    done = run("import sys, cage2, cage2.cli; assert 'numba' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_compilation_is_announced_and_cached(tmp_path: Path) -> None:
    play = "from cage2 import CageVectorEnv as E; e = E(2); e.reset(seed=0); print(e.step([0, 0])[1])"
    first = run(play, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count("compiling the CAGE-2 rules") == 1, first.stderr
    second = run(play, NUMBA_CACHE_DIR=str(tmp_path))
    assert second.stderr == ""
    assert second.stdout == first.stdout != ""


def test_digest_changes_with_any_source_file(tmp_path: Path) -> None:
    digests = set()
    for name in ("rules/red.py", "expert/memory.py", "cardiff_rules.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("RULE = 1\n")
        digests.add(source_digest(tmp_path))
    (tmp_path / "expert" / "memory.py").write_text("RULE = 2\n")
    assert len({*digests, source_digest(tmp_path)}) == 4
    rules = [path for path in PACKAGE.rglob("*.py") if re.search("^@(rule|kernel)$", path.read_text(), re.MULTILINE)]
    assert len(rules) > 5
    assert {path for pattern in COMPILED for path in PACKAGE.glob(pattern)} >= set(rules)
    assert source_digest(PACKAGE) == SOURCE_DIGEST


def test_bench_reports_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["bench", "--games", "200", "--seconds", "0.02"]
    assert main([*quick, "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    raw = result["raw"]
    assert set(raw) == {"plain", "cardiff"}
    assert set(raw["plain"]) == {"B_line", "Meander"}
    assert result["steps_per_second_per_core"] == min(f["one_core"] for f in raw["plain"].values()) > 0
    assert main(quick) == 0
    assert "steps per second per core" in capsys.readouterr().out


def test_bench_refuses_bad_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--games", "0"]) == 2
    assert "--games must be at least 1" in capsys.readouterr().err
