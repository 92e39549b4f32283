"""The claim benchmark at a size that shows that it works, not what it finds."""

import json
import subprocess
import sys

import pytest

from optimist.errors import UnknownName
from tests.benchmarks.scripts import FOLDER, load

claim = load("cage2_claim")

STEPS = 2 * 19_980


def row(method, seed, argmax, red="B_line", rules="final", **more):
    scores = {"argmax": {"mean": argmax, "std": 1.0}, "sampled": {"mean": argmax - 1.0, "std": 1.0}}
    return {"method": method, "red": red, "rules": rules, "seed": seed, "total_steps": STEPS} | scores | more


def test_a_method_is_a_preset_with_settings_changed():
    config = claim.make_config(
        "cardiff-opr:bc_coef=1.0,bc_weights=uniform,env.truncation=ignored,env.store_executed=false,algorithm.epochs=3",
        "Meander",
        "competition",
        7,
        STEPS,
    )
    assert (config.opr.bc_coef, config.opr.bc_weights, config.opr.enabled) == (1.0, "uniform", True)
    assert (config.env.truncation, config.env.store_executed, config.algorithm.epochs) == ("ignored", False, 3)
    assert (config.env.kwargs["red"], config.env.kwargs["rules"]) == ("Meander", "competition")
    assert (config.seed, config.total_steps) == (7, STEPS)
    assert claim.make_config("ppo145", "B_line", "final", 0, STEPS).env.id == "optimist/CAGE2-v0"


@pytest.mark.parametrize("method", ["cardif", "cardiff-opr:bc_coeff=1"])
def test_an_unknown_method_or_setting_gets_a_suggestion(method):
    with pytest.raises(UnknownName, match="did you mean"):
        claim.make_config(method, "B_line", "final", 0, STEPS)


def run_script(*arguments):
    command = [sys.executable, str(FOLDER / "cage2_claim.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_a_run_is_trained_scored_and_not_repeated(tmp_path):
    command = ["--methods", "cardiff", "ppo145", "--reds", "B_line", "--seeds", "1", "--episodes", "50", "--jobs", "1"]
    command += ["--total-steps", str(STEPS), "--out", str(tmp_path)]
    assert "2 runs in" in run_script(*command)
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [found["method"] for found in rows] == ["cardiff", "ppo145"]
    for found in rows:
        assert found["updates"] == 2
        assert [step for step, _ in found["curve"]] == [19_980, 2 * 19_980]
        assert found["argmax"]["mean"] < 0
        assert found["sampled"]["mean"] < 0
    before = (tmp_path / "runs.jsonl").read_text()
    assert "0 runs in" in run_script(*command)
    assert (tmp_path / "runs.jsonl").read_text() == before


def test_the_table_by_hand():
    rows = [row("cardiff", seed, -5.0 - seed) for seed in range(3)] + [
        row("cardiff-opr", seed, -4.0) for seed in range(3)
    ]
    args = claim.parse_arguments(["--methods", "cardiff", "cardiff-opr", "--reds", "B_line"])
    lines = claim.render(rows, args).splitlines()
    assert "| cardiff | 3 | -6.00 ± 2.48 | -7.00 ± 2.48 | – |" in lines
    assert "| cardiff-opr | 3 | -4.00 ± 0.00 | -5.00 ± 0.00 | 2.00 ± 2.48 |" in lines


def test_the_mean_over_attackers_counts_only_seeds_that_have_both():
    rows = [row("cardiff", seed, -4.0) for seed in range(2)] + [row("cardiff", 0, -6.0, red="Meander")]
    args = claim.parse_arguments(["--methods", "cardiff"])
    (line,) = (line for line in claim.render(rows, args).splitlines() if line.startswith("| cardiff"))
    assert line == "| cardiff | 1 | -4.00 | -5.00 | – | -6.00 | -7.00 | – | -5.00 | -6.00 | – |"


def test_a_thinned_curve_keeps_its_end():
    curve = claim.thin([[step, 0.0] for step in range(1, 151)])
    assert curve[-1][0] == 150
    assert len(curve) == 50
    assert claim.thin([[1, 0.0]]) == [[1, 0.0]]
