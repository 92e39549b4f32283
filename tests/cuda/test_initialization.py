"""initializing_gpu: the GPU's kernels are loaded when the block ends, and nothing else changes."""

import subprocess
import sys
import threading

import pytest
import torch

from optimist.cuda import device as module
from optimist.cuda.device import initializing_gpu
from tests.cuda.conftest import needs_cuda

CUDA = torch.device("cuda")


def test_block_runs_alone_without_a_gpu():
    threads = threading.active_count()
    with initializing_gpu(torch.device("cpu")):
        assert threading.active_count() == threads


def test_block_ends_when_the_kernels_are_loaded(monkeypatch):
    loaded, started = [], threading.Event()

    def load(device):
        started.wait(10)
        loaded.append(device)

    monkeypatch.setattr(module, "_load_kernels", load)
    with initializing_gpu(CUDA):
        assert not loaded
        started.set()
    assert loaded == [CUDA]


def test_optimisers_are_imported_while_the_kernels_are_loaded():
    """In another process: in this one they are imported already."""
    program = "import sys, threading, torch; from optimist.cuda import device; started = threading.Event(); "
    program += "device._load_kernels = lambda _: started.wait(60); imported = lambda: 'torch._dynamo' in sys.modules\n"
    program += "with device.initializing_gpu(torch.device('cuda')):\n"
    program += "    before = imported(); threading.Timer(0.5, started.set).start()\n"
    program += "after = imported(); torch.optim.Adam([torch.zeros(1)]); print(before, after == imported())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_error_of_the_block_is_raised_when_the_kernels_are_loaded(monkeypatch):
    loaded = []
    monkeypatch.setattr(module, "_load_kernels", loaded.append)
    with pytest.raises(ValueError, match="no such game"), initializing_gpu(CUDA):
        raise ValueError("no such game")
    assert loaded == [CUDA]


def test_error_of_the_gpu_is_left_to_the_first_operation_that_needs_it(monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    def fail(*_, **__):
        raise RuntimeError("CUDA error: no device")

    monkeypatch.setattr(torch, "zeros", fail)
    with initializing_gpu(CUDA):
        pass
    assert not raised


def test_kernels_are_loaded_to_the_end(monkeypatch):
    synchronized = []
    monkeypatch.setattr(torch.cuda, "synchronize", synchronized.append)
    module._load_kernels(torch.device("cpu"))  # the same operations, which a CPU has too
    assert synchronized == [torch.device("cpu")]


@needs_cuda
def test_gpu_is_initialized_and_no_random_number_is_drawn():
    torch.cuda.manual_seed(3)
    before = torch.cuda.get_rng_state()
    with initializing_gpu(CUDA):
        pass
    assert torch.cuda.is_initialized()
    assert torch.cuda.get_rng_state().equal(before)
