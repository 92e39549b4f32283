"""A GPU that is out of memory or failed: one line that says what to do, and a run that can be resumed."""

from __future__ import annotations

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.cli.main import main
from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.errors import DeviceError
from optimist.training import trainer
from optimist.training.resume import resume
from optimist.training.trainer import train

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
FULL = "the GPU is out of memory; stop other programs on it, or lower env.num_envs, .* in a new run"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OUT_OF_MEMORY, FULL),
        (RuntimeError("CUDA error: out of memory\nmore lines"), FULL),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), FULL),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), FULL),
        (
            RuntimeError("CUDA error: device-side assert triggered\nmore lines"),
            "the GPU failed .CUDA error: device.*; check it with nvidia-smi;",
        ),
        (
            RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
            "the GPU failed .cuDNN error.*; check it with nvidia-smi;",
        ),
    ],
)
def test_error_says_what_to_do_and_the_run_can_be_resumed(tmp_path, monkeypatch, error, message):
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "update", failing_at(5, error))
        with pytest.raises(DeviceError, match=message) as caught:
            train(RUN, tmp_path / "run", progress=False)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(f"; `optimist resume {tmp_path / 'run'}` continues at step 128")
    assert resume(tmp_path / "run", progress=False)["steps"] == 256


def test_error_before_the_first_checkpoint_promises_no_resume(tmp_path, monkeypatch):
    monkeypatch.setattr(PPO, "update", failing_at(1, OUT_OF_MEMORY))
    with pytest.raises(DeviceError, match=f"{FULL}; nothing is saved yet$"):
        train(RUN, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_error_before_the_first_step_says_what_to_do(tmp_path, monkeypatch):
    """While the network is made, and while a checkpoint is loaded."""

    def fail(*_):
        raise OUT_OF_MEMORY

    with monkeypatch.context() as patched:
        patched.setattr(trainer, "make_policy", fail)
        with pytest.raises(DeviceError, match=f"{FULL}; nothing is saved yet$"):
            train(RUN, tmp_path / "run", progress=False)
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "update", failing_at(5, OUT_OF_MEMORY))
        with pytest.raises(DeviceError):
            train(RUN, tmp_path / "run", progress=False)
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "load_state_dict", fail)
        with pytest.raises(DeviceError, match=f"{FULL}; .* continues at step 128$"):
            resume(tmp_path / "run", progress=False)
    assert resume(tmp_path / "run", progress=False)["steps"] == 256


def test_other_errors_are_not_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(PPO, "update", failing_at(1, RuntimeError("shapes cannot be multiplied")))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        train(RUN, tmp_path / "run", progress=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_missing_gpu_is_named(capsys):
    assert main(["train", "deepsea/ppo", "--device", "cuda"]) == 2
    assert "torch sees no CUDA device; train a new run with --device cpu" in capsys.readouterr().err
