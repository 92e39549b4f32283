"""The benchmark of lanes, at a size that shows that it works, not what it finds."""

import json
import subprocess
import sys

from tests.benchmarks.scripts import FOLDER


def test_a_division_has_a_row_with_its_parts(tmp_path):
    command = [sys.executable, str(FOLDER / "atari_lanes.py"), "--game", "Pong", "--divisions"]
    command += ["2,2,1,normal,processes", "2,1,1,idle,threads"]
    command += ["--seconds", "0", "--device", "cpu", "--out", str(tmp_path / "rows.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    divisions = [tuple(row[name] for name in ("games", "lanes", "threads", "priority", "workers")) for row in rows]
    assert divisions == [(2, 2, 1, "normal", "processes"), (2, 1, 1, "idle", "threads")]
    for row in rows:
        assert row["steps_per_second"] > 0
        parts = row["decide_ms"] + row["send_ms"] + row["receive_ms"]
        assert 0 < parts < row["lane_step_ms"]
        assert row["cores"] > 0
