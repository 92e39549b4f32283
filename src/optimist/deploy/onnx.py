"""Export of a policy to ONNX: `obs` [N, ...] → `logits` [N, A] (or `mean`) and, for discrete actions, `action`."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from optimist.api import load
from optimist.errors import missing_extra
from optimist.networks.actor_critic import ActorCritic, PartialActor, as_actor_critic
from optimist.networks.distributions import Categorical, DiagonalGaussian
from optimist.networks.layers import NatureCNN, OneHot
from optimist.tracking.files import create_empty, disk_errors

FILE = "policy.onnx"
OPSET = 17


def export_onnx(run: str, folder: Path, env: str = "") -> list[Path]:
    """Write the final policy of a run and return the file; `env` as in `optimist.load`."""
    agent = load(run, env=env)
    model = make_model(as_actor_critic(agent.policy, "the ONNX export"), agent.observation_space.shape or ())
    create_empty(folder)
    with disk_errors(folder):
        (folder / FILE).write_bytes(model.SerializeToString())
    return [folder / FILE]


def make_model(policy: ActorCritic, observation_shape: tuple[int, ...]) -> Any:
    """The policy as a checked ONNX model for any number of rows; inputs of the critic only are left out."""
    try:
        import onnx
    except ImportError as error:
        raise missing_extra("the ONNX export", "onnx", "onnx") from error
    module = _Actor(policy, observation_shape)
    for part in policy.modules():
        if isinstance(part, NatureCNN):
            part.in_bfloat16 = False  # in which runtimes on a CPU have no convolutions
    obs = torch.zeros(2, *module.shape, dtype=torch.int64 if isinstance(policy.encoder, OneHot) else torch.float32)
    outputs = ["mean" if isinstance(policy.head, DiagonalGaussian) else "logits"]
    outputs += ["action"] if isinstance(policy.head, Categorical) else []
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's other exporter needs another package
        torch.onnx.export(
            module,
            (obs,),
            file,  # type: ignore[arg-type]
            dynamo=False,
            opset_version=OPSET,
            input_names=["obs"],
            output_names=outputs,
            dynamic_axes={name: {0: "N"} for name in ("obs", *outputs)},
        )
    model = onnx.load_from_string(file.getvalue())
    onnx.checker.check_model(model, full_check=True)
    return model


class _Actor(nn.Module):
    """The part of a policy that acts: observations → action parameters and, where it is one of several, the action."""

    def __init__(self, policy: ActorCritic, observation_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.policy, self.shape, self.hidden = policy, observation_shape, 0
        if isinstance(policy.actor, PartialActor) and policy.trunk is None:
            self.shape, self.hidden = (policy.actor.visible,), observation_shape[0] - policy.actor.visible

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        if self.hidden:  # the encoder expects the critic's inputs too
            obs = torch.cat([obs, obs.new_zeros(obs.shape[0], self.hidden)], dim=1)
        params = self.policy.action_params(obs)
        return (params, params.argmax(1)) if isinstance(self.policy.head, Categorical) else (params,)
