import pytest

from optimist.errors import ConfigError
from optimist.sweep.local import Machine, cuda_visible_name
from tests.sweep.tiny import tiny_plan


def runs(device="cpu", threads=1, **changes):
    return tiny_plan(seeds=8, settings={"device": device, "threads": threads}, **changes).runs


def allocate_all(machine, some):
    return [share for share in map(machine.allocate, some) if share is not None]


def test_as_many_runs_as_cores_and_no_more():
    machine = Machine(cpus=4, gpus=0)
    shares = allocate_all(machine, runs(threads=2))
    assert len(shares) == 2
    machine.release(shares[0])
    assert len(allocate_all(machine, runs(threads=2))) == 1


def test_runs_that_share_gpus_are_spread_over_all_of_them():
    shares = allocate_all(Machine(cpus=64, gpus=2), runs("cuda", runs_per_gpu=3))
    assert sorted(share.gpu for share in shares) == [0, 0, 0, 1, 1, 1]


def test_a_run_that_names_its_gpu_gets_it():
    shares = allocate_all(Machine(cpus=64, gpus=2), runs("cuda:1", runs_per_gpu=3))
    assert [share.gpu for share in shares] == [1, 1, 1]


def test_a_run_larger_than_the_machine_still_runs_alone():
    assert len(allocate_all(Machine(cpus=2, gpus=0), runs(threads=8))) == 1


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 0), ("cuda:2", 2)])
def test_a_missing_gpu_is_refused_before_any_run_starts(device, gpus):
    with pytest.raises(ConfigError, match=f"asks for device '{device}', but this machine has {gpus} GPUs"):
        Machine(cpus=2, gpus=gpus).check(runs(device)[0])


def test_a_gpu_is_named_as_in_the_drivers_environment(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cuda_visible_name(1) == "1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert cuda_visible_name(1) == "7"
