"""Numba stays out until a game is played; compiling is announced once and then comes from the disk; bench measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from optimist.cli import bench
from optimist.cli.main import main
from optimist.envs.cage2 import compiled


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_importing_the_environments_loads_no_compiler() -> None:
    done = run("import sys, optimist.envs, optimist.envs.cage2, optimist.cli.cage2; assert 'numba' not in sys.modules")
    assert done.returncode == 0, done.stderr


def test_missing_numba_is_one_line() -> None:
    done = run(
        "import sys; sys.modules['numba'] = None\n"
        "import gymnasium, optimist.envs\n"
        "from optimist.errors import MissingExtra\n"
        "try: gymnasium.make_vec('optimist/CAGE2-v0', num_envs=2)\n"
        "except MissingExtra as error: print(error)"
    )
    assert done.stdout.strip() == "the CAGE-2 simulator needs numba: pip install 'optimist[cage2]'"


def test_compiling_is_announced_and_then_comes_from_the_cache(tmp_path: Path) -> None:
    play = "from optimist.envs.cage2 import CageVectorEnv as E; e = E(2); e.reset(seed=0); print(e.step([0, 0])[1])"
    first = run(play, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count("compiling the CAGE-2 rules") == 1, first.stderr
    second = run(play, NUMBA_CACHE_DIR=str(tmp_path))
    assert second.stderr == ""
    assert second.stdout == first.stdout != ""


def test_cache_follows_every_rule_file() -> None:
    sources = {path.name for path in Path(compiled.__file__).parent.glob("*.py")}
    with_rules = {
        path.name
        for path in Path(compiled.__file__).parent.glob("*.py")
        if "@rule" in path.read_text() or "@kernel" in path.read_text()
    }
    assert with_rules <= set(compiled.RULE_FILES) <= sources


def test_bench_reports_all_figures(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["cage2", "--games", "200", "--seconds", "0.02", "--updates"]
    assert bench.main([*quick, "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    raw = result["raw"]
    assert set(raw) == {"plain", "cardiff"}
    assert set(raw["plain"]) == {"B_line", "Meander"}
    assert result["steps_per_second_per_core"] == min(f["one_core"] for f in raw["plain"].values()) > 0
    assert "training" not in result
    assert bench.main([*quick, "0"]) == 0
    assert "steps per second per core" in capsys.readouterr().out


def test_bench_measures_training(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "TRAINED", ("cage2/cardiff-opr",))
    monkeypatch.setattr("optimist.envs.cage2.bench.available_cores", lambda: 1)
    assert bench.main(["cage2", "--games", "200", "--seconds", "0.02", "--updates", "1", "--json"]) == 0
    (figures,) = json.loads(capsys.readouterr().out.splitlines()[-1])["training"].values()
    for threads in ("one_core", "all_cores"):
        parts = figures[threads]
        seconds = parts["collect_seconds"] + parts["update_seconds"]
        assert parts["steps_per_second"] == pytest.approx(19_980 / seconds)


def test_bench_refuses_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "cage2", "--games", "0"]) == 2
    assert "at least one game" in capsys.readouterr().err
    assert main(["bench", "cage2", "--updates", "-1"]) == 2
    assert "--updates must be at least 0" in capsys.readouterr().err
