"""The benchmark of lanes, at a size that shows that it works, not what it finds."""

import json
import subprocess
import sys

import pytest

from tests.benchmarks.scripts import FOLDER


@pytest.mark.parametrize("decide", ["policy", "nothing"])
def test_a_division_has_a_row_with_its_parts(tmp_path, decide):
    command = [sys.executable, str(FOLDER / "atari_lanes.py"), "--game", "Pong", "--divisions"]
    command += ["2,2,1,normal,processes", "2,1,1,idle,threads"]
    command += ["--decide", decide, "--seconds", "0", "--device", "cpu", "--out", str(tmp_path / "rows.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    divisions = [tuple(row[name] for name in ("games", "lanes", "threads", "priority", "workers")) for row in rows]
    assert divisions == [(2, 2, 1, "normal", "processes"), (2, 1, 1, "idle", "threads")]
    for row in rows:
        assert row["steps_per_second"] > 0
        assert row["decide"] == decide
        assert min(row[f"{part}_us"] for part in ("ask", "begin", "note")) > 0
        assert 1 <= row["games_a_decision"] <= 2
        assert row["decisions"] * row["games_a_decision"] == pytest.approx(2 * 128)
        assert row["cores"] > 0
