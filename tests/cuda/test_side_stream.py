"""SideStream: work on a second stream gives the result that it gives on the first."""

import gc
import weakref
from contextlib import nullcontext

import pytest
import torch

from optimist.cuda.graph import SideStream
from tests.cuda.conftest import needs_cuda
from tests.cuda.emulation import EmulatedStream

CUDA = torch.device("cuda")


@pytest.mark.parametrize("device", [None, torch.device("cpu")])
def test_work_runs_at_once_without_a_gpu(device):
    done = []
    result = SideStream(device).start(lambda: done.append("side") or len(done))
    done.append("main")
    assert (result(), done) == (1, ["side", "main"])


def test_result_is_kept_until_the_next_start(monkeypatch):
    """Its reader on another stream may not have run yet when Python releases it."""
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: EmulatedStream())
    monkeypatch.setattr(torch.cuda, "current_stream", EmulatedStream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    side = SideStream(CUDA)
    first = weakref.ref(side.start(lambda: torch.ones(3))())
    gc.collect()
    assert first() is not None
    side.start(lambda: torch.zeros(3))
    gc.collect()
    assert first() is None


@needs_cuda
def test_work_waits_for_its_inputs_and_the_result_for_the_work():
    side, factors = SideStream(CUDA), torch.full((4096, 4096), 2.0, device=CUDA)
    for _ in range(5):
        factors = factors @ torch.eye(4096, device=CUDA)  # still running when the side stream starts
        total = side.start(lambda factors=factors: (factors @ factors).sum())
        assert float(total()) == pytest.approx(4.0 * 4096**3)


@needs_cuda
def test_result_is_not_overwritten_where_a_side_stream_is_the_main_stream():
    """As after 32 streams: what the main stream allocates next must not take the memory of the inner result."""
    outer, inner = SideStream(CUDA), SideStream(CUDA)
    inner.stream = torch.cuda.current_stream()

    def work():
        ones = inner.start(lambda: torch.ones(1000, device=CUDA))
        torch.cuda._sleep(100_000_000)  # cycles, in which the main stream goes ahead
        return 2.0 * ones()

    doubled = outer.start(work)
    others = [torch.zeros(1000, device=CUDA) for _ in range(100)]
    assert bool((doubled() == 2.0).all())
    assert len(others) == 100
