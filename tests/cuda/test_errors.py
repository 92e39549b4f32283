"""A GPU that is full or gone: one line that says what to do, and a run that can be resumed."""

from __future__ import annotations

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.cli.main import main
from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.errors import DeviceError
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


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "out of memory: lower env.num_envs"),
        (RuntimeError("CUDA error: device-side assert triggered\nmore lines"), "no longer answers"),
    ],
)
def test_the_run_says_what_to_do_and_can_be_resumed(tmp_path, monkeypatch, error, says):
    with monkeypatch.context() as patched:
        patched.setattr(PPO, "update", failing_at(5, error))
        with pytest.raises(DeviceError, match=says) as caught:
            train(RUN, tmp_path / "run", progress=False)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "run") in str(caught.value)
    assert resume(tmp_path / "run", progress=False)["steps"] == 256


def test_other_errors_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(PPO, "update", failing_at(1, RuntimeError("shapes cannot be multiplied")))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        train(RUN, tmp_path / "run", progress=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without CUDA is what this is about")
def test_a_gpu_that_was_never_there(capsys):
    assert main(["train", "deepsea/ppo", "--device", "cuda"]) == 2
    assert "torch sees no CUDA device; use --device cpu" in capsys.readouterr().err
