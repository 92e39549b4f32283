import json

import numpy as np
import pytest

from optimist.ui import metrics
from optimist.ui.metrics import newest_lines, read_points, seconds_at

RETURN = "rollout/raw_return"


def write(path, lines, end=""):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end)
    return path


def rows(number, **more):
    return [{"step": 10 * n, RETURN: float(n), "pad": "x" * 60, **more} for n in range(1, number + 1)]


def test_a_half_written_last_line_is_left_out(tmp_path):
    file = write(tmp_path / "metrics.jsonl", rows(3), end='{"step": 40, "rollout/raw_ret')
    assert [line["step"] for line in newest_lines(file)] == [10, 20, 30]
    assert read_points(file, RETURN, 100)[0].tolist() == [10, 20, 30]


def test_damaged_lines_and_values_that_are_no_numbers_are_left_out(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(
        b'{"step": 1, "rollout/raw_return": null}\n\xff\xfe{{\n[]\n{"step": 2, "rollout/raw_return": -1e-3}\n'
    )
    steps, values, _ = read_points(file, RETURN, 100)
    assert steps.tolist() == [2]
    assert values.tolist() == [-0.001]
    assert [line["step"] for line in newest_lines(file)] == [1, 2]


def test_a_huge_file_is_read_at_even_offsets_with_its_ends(tmp_path):
    file = write(tmp_path / "metrics.jsonl", rows(20_000))
    steps, values, _ = read_points(file, RETURN, 100)
    assert (steps[0], steps[-1]) == (10, 200_000)
    assert 90 <= len(steps) <= 101
    assert np.array_equal(values, steps / 10)
    assert np.diff(steps).max() < 2.5 * 200_000 / 100


def test_a_metric_that_few_lines_have_is_found_in_a_large_file(tmp_path):
    lines = rows(5_000)
    for n in (7, 2_500, 4_999):
        lines[n]["evaluation/mean_return"] = float(n)
    file = write(tmp_path / "metrics.jsonl", lines)
    assert read_points(file, "evaluation/mean_return", 50)[1].tolist() == [7, 2_500, 4_999]


def test_a_file_that_was_deleted_gives_no_points(tmp_path):
    assert newest_lines(tmp_path / "gone") == []
    assert all(len(column) == 0 for column in read_points(tmp_path / "gone", RETURN, 10))


def test_a_line_longer_than_a_block_is_read(tmp_path):
    long = [{**line, "pad": "x" * 5_000} for line in rows(100)]
    file = write(tmp_path / "metrics.jsonl", long)
    assert file.stat().st_size > metrics.WHOLE
    assert len(read_points(file, RETURN, 20)[0]) >= 18


def test_seconds_are_the_sum_of_steps_over_speed():
    assert seconds_at(np.array([100.0, 300.0]), np.array([50.0, 100.0])).tolist() == pytest.approx([2.0, 4.0])
    assert np.isnan(seconds_at(np.array([1.0]), np.array([np.nan]))).all()
