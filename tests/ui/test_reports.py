import pytest

from optimist.report.rows import collect
from optimist.report.study import Study
from optimist.ui.reports import claims_of, interval_text, judged
from tests.report.fake_runs import write_run
from tests.ui.conftest import serving


def claims(folder):
    runs, problems = collect([folder])
    return [claim for family in Study(runs, problems).families for claim in claims_of(family)]


def write(folder, opr, ppo):
    for method, scores in (("opr", opr), ("ppo", ppo)):
        for seed, score in enumerate(scores):
            write_run(folder / f"{method}-{seed}", f"deepsea/{method}", seed, score, size=12)


@pytest.mark.parametrize(
    ("opr", "ppo", "verdict"),
    [((0.9, 0.8, 0.95, 0.85, 0.9), (0.1, 0.2, 0.15, 0.1, 0.2), "supported"),
     ((0.1, 0.2, 0.15, 0.1, 0.2), (0.9, 0.8, 0.95, 0.85, 0.9), "contradicted"),
     ((0.1, 0.9, 0.2, 0.8, 0.5), (0.2, 0.8, 0.1, 0.9, 0.5), "open"),
     ((0.9, 0.8, 0.95), (0.1, 0.2, 0.15), "open")],
)  # fmt: skip
def test_a_claim_is_judged_by_its_interval_and_its_seeds(tmp_path, opr, ppo, verdict):
    write(tmp_path, opr, ppo)
    claim = claims(tmp_path)[-1]
    assert claim.title == "PPO+OPR scores more than PPO on DeepSea-12"
    assert claim.verdict == verdict
    assert claim.difference == pytest.approx(sum(opr) / len(opr) - sum(ppo) / len(ppo))
    assert claim.low < claim.difference < claim.high


def test_a_single_seed_has_no_interval(tmp_path):
    write(tmp_path, (0.9,), (0.1,))
    claim = claims(tmp_path)[-1]
    assert claim.verdict == "open"
    assert interval_text(claim) == "needs 2 seeds each"


def test_a_goal_that_is_kept_has_newcombes_interval(tmp_path):
    write(tmp_path, (0.9,) * 10, (0.1,) * 10)
    goal = claims(tmp_path)[0]
    assert "keeps the goal" in goal.title
    assert (goal.difference, goal.verdict) == (1.0, "supported")
    assert goal.low == pytest.approx(0.607, abs=0.01)  # Newcombe (1998): 10/10 against 0/10, method 10


def test_the_verdict_needs_enough_seeds():
    assert judged(0.1, 0.2, [5, 5])[0] == "supported"
    assert judged(0.1, 0.2, [5, 4])[0] == "open"


def test_what_the_claims_leave_out_is_said(tmp_path):
    write(tmp_path, (0.9, 0.8), (0.1, 0.2))
    write_run(tmp_path / "half", "deepsea/opr", 9, finished=False, size=12)
    with serving(tmp_path) as site:
        assert "1 of the 5 runs are not finished" in site.get("/report").text
        assert "No run is selected." in site.get("/report?runs=none").text
        assert "No claim yet." in site.get("/report?runs=half").text
