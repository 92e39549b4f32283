import pytest

from optimist.errors import ConfigError
from optimist.sweep.machine import Machine, visible_name
from tests.sweep.tiny import tiny_plan


def runs(device="cpu", threads=1, **changes):
    return tiny_plan(seeds=8, settings={"device": device, "threads": threads}, **changes).runs


def placed(machine, some):
    return [place for place in map(machine.take, some) if place is not None]


def test_as_many_runs_as_cores_and_no_more():
    machine = Machine(cpus=4, gpus=0)
    places = placed(machine, runs(threads=2))
    assert len(places) == 2
    machine.give_back(places[0])
    assert len(placed(machine, runs(threads=2))) == 1


def test_several_runs_to_a_gpu_spread_over_all_of_them():
    places = placed(Machine(cpus=64, gpus=2), runs("cuda", runs_per_gpu=3))
    assert sorted(place.gpu for place in places) == [0, 0, 0, 1, 1, 1]


def test_a_run_that_names_its_gpu_gets_that_one():
    places = placed(Machine(cpus=64, gpus=2), runs("cuda:1", runs_per_gpu=3))
    assert [place.gpu for place in places] == [1, 1, 1]


def test_a_run_larger_than_the_machine_still_runs_alone():
    assert len(placed(Machine(cpus=2, gpus=0), runs(threads=8))) == 1


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 0), ("cuda:2", 2)])
def test_a_gpu_that_is_not_there_is_refused_before_anything_starts(device, gpus):
    with pytest.raises(ConfigError, match=f"asks for device '{device}', but this machine has {gpus} GPUs"):
        Machine(cpus=2, gpus=gpus).check(runs(device)[0])


def test_a_gpu_is_named_as_the_driver_sees_it(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_name(1) == "1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert visible_name(1) == "7"
