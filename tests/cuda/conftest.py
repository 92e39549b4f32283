"""Each test of captured graphs runs on a CPU with emulated graphs and, where there is one, on a GPU."""

import pytest
import torch

from tests.cuda.emulation import emulate_cuda_graphs

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture
def emulated_graphs(monkeypatch):
    emulate_cuda_graphs(monkeypatch)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_cuda)])
def device(request):
    if request.param == "cpu":
        request.getfixturevalue("emulated_graphs")
    return request.param
