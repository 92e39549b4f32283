"""All methods on CAGE 2 at a size that shows that the benchmark works, not what it finds."""

import json
import subprocess
import sys

from tests.benchmarks.scripts import FOLDER, load

methods = load("cage2_methods")


def row(method, red, seed, argmax, budget=500_000):
    scores = {"argmax": {"mean": argmax, "std": 1.0}, "sampled": {"mean": argmax - 1.0, "std": 1.0}}
    about = {"method": method, "red": red, "rules": "final", "seed": seed, "total_steps": budget}
    return about | scores | {"episodes": 1_000, "seconds": 2.0 + seed}


def test_every_family_of_methods_is_there_plain_and_with_opr():
    pairs = {("cardiff", "cardiff-opr"), ("a2c", "a2c-opr"), ("acper", "acper-opr"), ("dqn", "dqn-opr")}
    found = methods.all_methods()
    assert {name for pair in pairs for name in pair} | {"ppo", "sil", "rainbow", "rainbow-opr"} <= set(found)
    assert "best" not in found


def test_the_table_by_hand():
    rows = [row("dqn", "B_line", seed, -5.0 - seed) for seed in range(3)]
    rows += [row("dqn", "Meander", seed, -7.0 - seed) for seed in range(3)]
    rows += [row("a2c", "B_line", seed, -9.0) for seed in range(2)] + [row("a2c", "Meander", 1, -11.0)]
    rows += [row("dqn", "B_line", 0, -90.0, budget=10)]
    lines = methods.render(rows).splitlines()
    dqn, a2c = "-6.00 ± 2.48 | -7.00 ± 2.48 | -8.00 ± 2.48 | -9.00 ± 2.48", "-9.00 | -10.00 | -11.00 | -12.00"
    assert f"| dqn | 3 | {dqn} | -7.00 ± 2.48 | -8.00 ± 2.48 | 3 |" in lines
    assert f"| a2c | 1 | {a2c} | -10.00 | -11.00 | 3 |" in lines  # of two seeds one lacks Meander
    assert "| dqn | 1 | -90.00 | -91.00 | 2 |" in lines  # a table of its own


def test_methods_with_a_policy_and_with_values_are_trained_scored_and_not_repeated(tmp_path):
    command = [sys.executable, str(FOLDER / "cage2_methods.py"), "--methods", "a2c-opr", "dqn-opr", "--reds", "Meander"]
    command += ["--seeds", "1", "--total-steps", "2880", "--episodes", "20", "--jobs", "1", "--out", str(tmp_path)]
    first = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stderr
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [(found["method"], found["red"], found["total_steps"]) for found in rows] == [
        ("a2c-opr", "Meander", 2880),
        ("dqn-opr", "Meander", 2880),
    ]
    assert all(found[mode]["mean"] < 0 for found in rows for mode in ("argmax", "sampled"))
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (again.stdout, again.stderr) == (first.stdout, "")
    assert "| dqn-opr | 1 | " in (tmp_path / "table.md").read_text()
