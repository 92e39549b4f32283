"""Work beside other work gives what it would give alone."""

import pytest
import torch

from optimist.cuda.beside import Beside


@pytest.mark.parametrize("device", [None, torch.device("cpu")])
def test_without_a_gpu_the_work_is_done_at_once(device):
    done = []
    result = Beside(device).begin(lambda: done.append("side") or len(done))
    done.append("main")
    assert (result(), done) == (1, ["side", "main"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_result_is_waited_for_and_what_it_reads_is_there():
    beside = Beside(torch.device("cuda"))
    factors = torch.full((4096, 4096), 2.0, device="cuda")
    for _ in range(5):
        factors = factors @ torch.eye(4096, device="cuda")  # still under way when the side begins
        total = beside.begin(lambda factors=factors: (factors @ factors).sum())
        assert float(total()) == pytest.approx(4.0 * 4096**3)
