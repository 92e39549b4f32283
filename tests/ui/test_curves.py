import numpy as np
import pytest

from optimist.ui.curves import View, colors, figures
from optimist.ui.folders import RunsFolder
from tests.report.fake_runs import write_run


@pytest.fixture
def found(tmp_path):
    for seed in range(3):
        write_run(tmp_path / f"opr-{seed}", "deepsea/opr", seed, finished=seed < 2, size=12)
    write_run(tmp_path / "ppo-0", "deepsea/ppo", 0, 0.5, size=12)
    return RunsFolder(tmp_path).scan()


def test_the_mean_ends_with_the_shortest_run_and_the_band_holds_every_seed(found):
    (figure,) = figures(found, View(), colors(found))
    ppo, opr = figure["series"]
    assert (ppo["method"], opr["method"]) == ("PPO", "PPO+OPR")
    mean, low, high = (np.array(opr[name], float) for name in ("mean", "low", "high"))
    known = np.isfinite(mean)
    x = np.array(figure["x"])
    assert x[known].max() == pytest.approx(100_000)  # half of the budget: the unfinished run ends there
    assert (low[known] <= mean[known]).all()
    assert (mean[known] <= high[known]).all()
    seeds = np.array(opr["seeds"], float)
    assert np.isfinite(seeds[:2, -1]).all()
    assert mean[known] == pytest.approx(seeds[:, known].mean(0), rel=1e-4)
    assert ppo["low"] is None


def test_the_axis_can_be_frames_time_or_the_last_half(found):
    palette = colors(found)
    assert figures(found, View(xaxis="frames"), palette)[0]["unit"] == "frames"
    time = figures(found, View(xaxis="time"), palette)[0]
    assert time["x"][-1] == pytest.approx(200_000 / 900, rel=1e-3)
    half = figures(found, View(half=True), palette)[0]
    assert min(half["x"]) == pytest.approx(100_000)
    assert not half["zero"]


def test_a_smoothed_curve_is_calmer_and_keeps_its_mean(tmp_path):
    path = write_run(tmp_path / "a", "deepsea/ppo", points=200)
    lines = [f'{{"step": {n}, "rollout/raw_return": {n % 2}}}\n' for n in range(1, 201)]
    (path / "metrics.jsonl").write_text("".join(lines))
    runs = RunsFolder(tmp_path).scan()
    rough, calm = (figures(runs, View(smooth=s), {})[0]["series"][0]["mean"] for s in (0, 20))
    rough, calm = (np.array(values, float) for values in (rough, calm))
    assert np.nanstd(calm) < 0.1 * np.nanstd(rough)
    assert np.nanmean(calm) == pytest.approx(np.nanmean(rough), abs=0.02)


def test_a_metric_that_no_run_has_gives_no_figure(found):
    assert figures(found, View(metric="nothing/here"), {}) == []


def test_the_base_method_and_the_one_with_opr_have_their_colours(found):
    assert colors(found) == {"PPO": 0, "PPO+OPR": 1}
