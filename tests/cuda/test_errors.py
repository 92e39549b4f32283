"""A GPU that is full or gone: one line that says what to do, and a run that can be resumed."""

from __future__ import annotations

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.cli.main import main
from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.errors import DeviceError
from optimist.training import loop
from optimist.training.loop import resume, train

RUN = RunConfig(
    total_steps=256,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=2, kwargs={"size": 4}),
    algorithm=PPOConfig(rollout_steps=16, minibatch_size=32, epochs=1),
    checkpoint_every=64,
    tensorboard=False,
)


def failing_at(number, error):
    original, calls = PPO.update, []

    def update(self, rollout):
        calls.append(None)
        if len(calls) == number:
            raise error
        return original(self, rollout)

    return update


OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
FULL = "the GPU is out of memory: stop what else runs there, or lower env.num_envs, .* in a new run"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OUT_OF_MEMORY, FULL),
        (RuntimeError("CUDA error: out of memory\nmore lines"), FULL),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), FULL),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), FULL),
        (RuntimeError("CUDA error: device-side assert triggered\nmore lines"), "no longer answers .CUDA error: device"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), "no longer answers .cuDNN error"),
    ],
)
def test_the_run_says_what_to_do_and_can_be_resumed(tmp_path, monkeypatch, error, says):
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "update", failing_at(5, error))
        with pytest.raises(DeviceError, match=says) as caught:
            train(RUN, tmp_path / "run", progress=False)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(f"; `optimist resume {tmp_path / 'run'}` goes on from step 128")
    assert resume(tmp_path / "run", progress=False)["steps"] == 256


def test_before_the_first_checkpoint_nothing_is_promised(tmp_path, monkeypatch):
    monkeypatch.setattr(PPO, "update", failing_at(1, OUT_OF_MEMORY))
    with pytest.raises(DeviceError, match=f"{FULL}; nothing is saved yet$"):
        train(RUN, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_gpu_that_is_full_before_the_first_step_is_told_as_well(tmp_path, monkeypatch):
    """When the network is made, and when what was learnt is loaded."""

    def full(*_):
        raise OUT_OF_MEMORY

    with monkeypatch.context() as patched:
        patched.setattr(loop, "make_policy", full)
        with pytest.raises(DeviceError, match=f"{FULL}; nothing is saved yet$"):
            train(RUN, tmp_path / "run", progress=False)
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "update", failing_at(5, OUT_OF_MEMORY))
        with pytest.raises(DeviceError):
            train(RUN, tmp_path / "run", progress=False)
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "load_state_dict", full)
        with pytest.raises(DeviceError, match=f"{FULL}; .* goes on from step 128$"):
            resume(tmp_path / "run", progress=False)
    assert resume(tmp_path / "run", progress=False)["steps"] == 256


def test_other_errors_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(PPO, "update", failing_at(1, RuntimeError("shapes cannot be multiplied")))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        train(RUN, tmp_path / "run", progress=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without CUDA is what this is about")
def test_a_gpu_that_was_never_there(capsys):
    assert main(["train", "deepsea/ppo", "--device", "cuda"]) == 2
    assert "torch sees no CUDA device; new runs take --device cpu" in capsys.readouterr().err
