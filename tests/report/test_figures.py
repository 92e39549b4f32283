"""Figures are drawn from what the runs logged."""

import json

import numpy as np

from optimist.report.figures import _aligned, _curve, training_curves


def write_run(folder, returns):
    folder.mkdir(parents=True)
    lines = [json.dumps({"step": 10 * (i + 1), "rollout/raw_return": value}) for i, value in enumerate(returns)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_runs_are_compared_where_all_of_them_logged():
    logged = [{"step": 1, "x": 2.0}, {"step": 2, "x": 3.0}, {"step": 3}], [{"step": 2, "x": 5.0}, {"step": 3, "x": 7.0}]
    steps, values = _aligned([_curve(lines, "x") for lines in logged])
    assert steps.tolist() == [2.0]
    assert np.array_equal(values, [[3.0], [5.0]])


def test_curves_are_written_as_svg_and_png_with_labels(tmp_path):
    curves = {"PPO": [write_run(tmp_path / "a", [-3.0, -2.0]), write_run(tmp_path / "b", [-4.0, -1.0])]}
    svg, png = training_curves(curves, tmp_path / "curves", title="A title", zoom=(-3.0, 0.0))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_text().count("<!-- A title -->") == 1
    assert "<!-- PPO (2 seeds) -->" in svg.read_text()
