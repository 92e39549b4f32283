"""The benchmark of the Atari collector runs, at a small size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("actions", ["policy", "random"])
def test_each_setup_has_a_row_with_its_parts(tmp_path, actions):
    command = [sys.executable, str(FOLDER / "atari_collector.py"), "--game", "Pong", "--workers"]
    command += ["2,2,0,normal,ale", "2,1,1,normal,ale"]
    command += ["--actions", actions, "--seconds", "0", "--device", "cpu", "--out", str(tmp_path / "rows.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    setups = [
        tuple(row[name] for name in ("num_envs", "num_workers", "threads", "priority", "emulator")) for row in rows
    ]
    assert setups == [(2, 2, 0, "normal", "ale"), (2, 1, 1, "normal", "ale")]
    for row in rows:
        assert row["steps_per_second"] > 0
        assert row["actions"] == actions
        assert min(row[f"{part}_us"] for part in ("submit", "send", "store")) > 0
        assert 1 <= row["slots_per_batch"] <= 2
        assert row["batches"] * row["slots_per_batch"] == pytest.approx(2 * 128)
        assert row["cores"] > 0
