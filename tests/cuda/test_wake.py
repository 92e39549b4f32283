"""A GPU that wakes up beside other work: there when the block is over, and in nobody's way."""

import subprocess
import sys
import threading

import pytest
import torch

from optimist.cuda import wake
from optimist.cuda.wake import waking

CUDA = torch.device("cuda")


def test_without_a_gpu_there_is_only_the_block():
    threads = threading.active_count()
    with waking(torch.device("cpu")):
        assert threading.active_count() == threads


def test_the_block_is_over_when_both_are(monkeypatch):
    done, begun = [], threading.Event()

    def touch(device):
        begun.wait(10)
        done.append(device)

    monkeypatch.setattr(wake, "_touch", touch)
    with waking(CUDA):
        assert not done
        begun.set()
    assert done == [CUDA]


def test_what_optimisers_need_is_loaded_meanwhile():
    """In a process of its own: here it is loaded already."""
    program = "import sys, threading, torch; from optimist.cuda import wake; begun = threading.Event(); "
    program += "wake._touch = lambda device: begun.wait(60); loaded = lambda: 'torch._dynamo' in sys.modules\n"
    program += "with wake.waking(torch.device('cuda')): before = loaded(); threading.Timer(0.5, begun.set).start()\n"
    program += "after = loaded(); torch.optim.Adam([torch.zeros(1)]); print(before, after == loaded())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_an_error_of_the_block_is_told_once_the_gpu_is_awake(monkeypatch):
    done = []
    monkeypatch.setattr(wake, "_touch", done.append)
    with pytest.raises(ValueError, match="no such game"), waking(CUDA):
        raise ValueError("no such game")
    assert done == [CUDA]


def test_what_fails_while_waking_is_left_to_whoever_needs_the_gpu(monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    def refuse(*_, **__):
        raise RuntimeError("CUDA error: no device")

    monkeypatch.setattr(torch, "zeros", refuse)
    with waking(CUDA):
        pass
    assert not raised


def test_waking_comes_to_its_end(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    wake._touch(torch.device("cpu"))  # the same work, where it can be done everywhere
    assert waited == [torch.device("cpu")]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_is_awake_and_no_number_has_been_drawn():
    torch.cuda.manual_seed(3)
    before = torch.cuda.get_rng_state()
    with waking(CUDA):
        pass
    assert torch.cuda.is_initialized()
    assert torch.cuda.get_rng_state().equal(before)
