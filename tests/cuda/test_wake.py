"""A GPU that wakes up beside other work: there when the block is over, and in nobody's way."""

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
