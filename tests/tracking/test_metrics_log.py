import errno
import json
import math

import numpy as np
import pytest
import torch

from optimist.errors import RunFolderError
from optimist.tracking.metrics_log import MetricsLog, read_metrics


@pytest.fixture
def log(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    yield log
    log.close()


def test_each_line_is_json_and_on_the_disk_at_once(log):
    log.append(64, {"loss/total": 0.5, "rollout/episodes": 3})
    assert log.path.read_text() == '{"step": 64, "loss/total": 0.5, "rollout/episodes": 3}\n'


def test_tensors_and_numpy_scalars_are_numbers(log):
    log.append(np.int64(1).item(), {"a": torch.tensor(0.25), "b": np.float32(0.5), "c": np.int64(7)})
    assert json.loads(log.path.read_text()) == {"step": 1, "a": 0.25, "b": 0.5, "c": 7}


def test_floats_come_back_exactly_and_undefined_ones_as_nan(log):
    log.append(1, {"a": 0.1 + 0.2, "b": math.nan, "c": -math.inf})
    (line,) = read_metrics(log.path)
    assert line["a"] == 0.1 + 0.2
    assert math.isnan(line["b"])
    assert math.isnan(line["c"])
    assert "null" in log.path.read_text()


def test_truncating_cuts_back_to_the_recorded_moment_and_goes_on(log):
    log.append(1, {"a": 1})
    offset = log.sync()
    log.append(2, {"a": 2})
    log.truncate(offset)
    log.append(3, {"a": 3})
    assert [line["step"] for line in read_metrics(log.path)] == [1, 3]
    assert log.offset == log.path.stat().st_size


def test_a_half_written_last_line_is_not_read_and_is_cut_when_opened(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2, "a')
    assert read_metrics(path) == [{"step": 1}]
    log = MetricsLog(path)
    log.append(2, {})
    log.close()
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize("offset", [99, 11, 13])
def test_a_log_that_is_not_what_the_checkpoint_recorded_is_refused_and_left_alone(log, offset):
    log.append(1, {})
    log.append(2, {})
    before = log.path.read_bytes()
    with pytest.raises(RunFolderError, match=f"was changed: it has 24 bytes, and the checkpoint .* after {offset};"):
        log.truncate(offset)
    assert log.path.read_bytes() == before


def test_a_full_disk_is_one_line(log, monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    log.close()
    log._file = Full()
    with pytest.raises(RunFolderError, match=r"metrics.jsonl: no space left on the disk"):
        log.append(1, {})
