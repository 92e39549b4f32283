"""capture: the work becomes a graph, and its warm-up has no effect."""

import gc

import pytest
import torch

from optimist.cuda.graph import NUM_WARMUPS, capture
from tests.cuda.conftest import needs_cuda


def test_graph_reads_and_writes_the_tensors_of_the_capture(device):
    numbers, sums = torch.tensor([1.0, 2.0], device=device), torch.zeros(2, device=device)
    graph = capture(lambda: sums.add_(numbers * 10.0), restored=[sums])
    assert sums.tolist() == [0.0, 0.0]
    graph.replay()
    numbers.fill_(5.0)
    graph.replay()
    assert sums.tolist() == [60.0, 70.0]


def test_replays_draw_from_the_state_that_the_generator_had(device):
    generator, drawn = torch.Generator(device).manual_seed(3), torch.zeros(4, device=device)
    graph = capture(
        lambda: drawn.copy_(torch.rand(4, generator=generator, device=device)), generators=[generator], restored=[drawn]
    )
    found = []
    for _ in range(3):
        graph.replay()
        found.append(drawn.tolist())
    generator.manual_seed(3)
    assert found == [torch.rand(4, generator=generator, device=device).tolist() for _ in range(3)]


def test_garbage_is_collected_in_the_warm_up_but_not_in_the_capture(device):
    enabled, numbers = [], torch.zeros(3, device=device)
    for was_enabled in (True, False):
        try:
            (gc.enable if was_enabled else gc.disable)()
            capture(lambda: enabled.append(gc.isenabled()) or numbers.add_(1.0))
            assert gc.isenabled() == was_enabled
        finally:
            gc.enable()
    assert enabled == [True] * NUM_WARMUPS + [False] + [False] * NUM_WARMUPS + [False]


@needs_cuda
def test_graph_destroyed_during_a_capture_does_not_invalidate_it():
    """As those of an earlier run in the process: a learner and its graphs refer to each other."""

    class Run:
        pass

    numbers = torch.zeros(3, device="cuda")
    old = Run()
    old.itself, old.graph = old, capture(lambda: numbers.add_(1.0))
    del old
    thresholds = gc.get_threshold()
    gc.set_threshold(1)  # every new object starts a collection
    try:
        graph = capture(lambda: [[] for _ in range(1000)] and numbers.mul_(2.0), restored=[numbers])
    finally:
        gc.set_threshold(*thresholds)
    numbers.fill_(3.0)
    graph.replay()
    assert numbers.tolist() == [6.0] * 3


@pytest.mark.parametrize("read", [lambda x: x.item(), bool, lambda x: x.nonzero()], ids=["item", "bool", "nonzero"])
def test_capture_of_work_that_reads_a_value_raises(emulated_graphs, read):
    number = torch.ones(())
    with pytest.raises(RuntimeError, match="is not permitted while a stream is captured"):
        capture(lambda: read(number * 2.0))


def test_capture_of_draws_from_another_generator_raises(emulated_graphs):
    generator, other = (torch.Generator().manual_seed(seed) for seed in (3, 4))
    with pytest.raises(RuntimeError, match="not registered"):
        capture(lambda: torch.rand(2, generator=other), generators=[generator])


def test_values_that_python_computes_are_fixed_at_the_capture(emulated_graphs):
    total, step = torch.zeros(()), 1.0
    graph = capture(lambda: total.add_(step), restored=[total])
    step = 100.0
    graph.replay()
    assert total.item() == 1.0
