"""A policy as an ONNX file: `obs` [N, ...] → `logits` [N, A] (`mean` of real-valued actions) and the best `action`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from optimist.deploy.folder import new_folder
from optimist.door import load
from optimist.errors import ConfigError, missing_extra
from optimist.networks.actions import Categorical, DiagonalGaussian
from optimist.networks.actor_critic import ActorCritic, as_actor_critic
from optimist.networks.encoder import Flattened, Image, OneHot, Vector
from optimist.networks.masked import FORBIDDEN, PartialActor
from optimist.networks.mlp import MLP
from optimist.networks.normalize import BOUND, NormalizedVector

FILE = "policy.onnx"
OPSET = 17


def export_onnx(run: str, folder: Path) -> list[Path]:
    """Writes the final policy of a run; the file."""
    try:
        import onnx
    except ImportError as error:
        raise missing_extra("the ONNX export", "onnx", "onnx") from error
    agent = load(run)
    model = make_model(as_actor_critic(agent.policy, "the ONNX export"), agent.observation_space.shape or ())
    onnx.checker.check_model(model, full_check=True)
    with new_folder(folder):
        onnx.save(model, folder / FILE)
    return [folder / FILE]


def make_model(policy: ActorCritic, observation_shape: tuple[int, ...]) -> Any:
    """The policy as an ONNX model; any number of rows, of observations without what only the critic sees."""
    from onnx import TensorProto, helper, numpy_helper

    visible = policy.actor.visible if isinstance(policy.actor, PartialActor) and policy.trunk is None else None
    if visible is not None:
        observation_shape = (visible,)
    graph = Graph()
    params = graph.policy(policy, visible)
    kind = TensorProto.INT64 if isinstance(policy.encoder, OneHot) else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("obs", kind, ["N", *observation_shape])]
    name = graph.add("Identity", [params], {}, "mean" if isinstance(policy.head, DiagonalGaussian) else "logits")
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", policy.head.num_params])]
    if isinstance(policy.head, Categorical):
        graph.add("ArgMax", [params], {"axis": 1, "keepdims": 0}, "action")
        outputs.append(helper.make_tensor_value_info("action", TensorProto.INT64, ["N"]))
    nodes = [helper.make_node(kind, ins, [out], **attributes) for kind, ins, out, attributes in graph.nodes]
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    return helper.make_model(
        helper.make_graph(nodes, "policy", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="optimist",
    )


@dataclass
class Graph:
    """The nodes and constants of an ONNX graph while it grows; each method returns the name of what it computed."""

    nodes: list[tuple[str, list[str], str, dict[str, Any]]] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def add(self, kind: str, inputs: list[str], attributes: dict[str, Any], output: str = "") -> str:
        """One node."""
        name = output or f"value{len(self.nodes)}"
        self.nodes.append((kind, inputs, name, attributes))
        return name

    def constant(self, value: Any) -> str:
        """A tensor or number."""
        name = f"constant{len(self.constants)}"
        self.constants[name] = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        return name

    def policy(self, policy: ActorCritic, visible: int | None = None) -> str:
        """obs → encoder → trunk → actor; of a vector's entries only the first `visible` come in."""
        value = "obs"
        if isinstance(policy.encoder, OneHot):
            value = self.add("Gather", [self.constant(policy.encoder.rows), value], {"axis": 0})
        elif isinstance(policy.encoder, Image):
            value = self.add("Div", [value, self.constant(np.float32(255.0))], {})
        elif isinstance(policy.encoder, NormalizedVector):
            value = self.normalized(policy.encoder, value, visible)
        elif isinstance(policy.encoder, Flattened):
            value = self.add("Flatten", [value], {"axis": 1})
        elif not isinstance(policy.encoder, Vector):
            raise ConfigError(f"no ONNX export for the encoder {type(policy.encoder).__name__}")
        if policy.trunk is not None:
            value = self.module(policy.trunk, value)
        return self.module(policy.actor, value)

    def normalized(self, encoder: NormalizedVector, value: str, visible: int | None) -> str:
        """Less the mean, over the spread, clipped: of the first `visible` entries, or of all."""
        value = self.add("Sub", [value, self.constant(encoder.mean[..., :visible].float())], {})
        value = self.add("Mul", [value, self.constant(encoder.scale[..., :visible])], {})
        return self.add("Clip", [value, self.constant(np.float32(-BOUND)), self.constant(np.float32(BOUND))], {})

    def module(self, module: nn.Module, value: str) -> str:
        """One of the modules our networks are made of."""
        if isinstance(module, nn.Flatten):
            return self.add("Flatten", [value], {"axis": 1})
        if isinstance(module, nn.ReLU):
            return self.add("Relu", [value], {})
        if isinstance(module, nn.Linear):
            weights = [self.constant(module.weight), self.constant(module.bias)]
            return self.add("Gemm", [value, *weights], {"transB": 1})
        if isinstance(module, nn.Conv2d):
            weights = [self.constant(module.weight), self.constant(module.bias)]
            return self.add("Conv", [value, *weights], {"strides": list(module.stride)})
        if isinstance(module, nn.Sequential):
            for part in module:
                value = self.module(part, value)
            return value
        if isinstance(module, MLP):
            return self.mlp(module, value)
        if isinstance(module, PartialActor):
            return self.partial_actor(module, value)
        raise ConfigError(f"no ONNX export for {type(module).__name__}")

    def mlp(self, mlp: MLP, value: str) -> str:
        """Linear layers with an activation between them."""
        *inner, last = (module for module in mlp.modules() if isinstance(module, nn.Linear))
        for layer in inner:
            value = self.add("Relu" if mlp.activation == "relu" else "Tanh", [self.module(layer, value)], {})
        return self.module(last, value)

    def partial_actor(self, partial: PartialActor, value: str) -> str:
        """An actor on part of the inputs, forbidden actions masked."""
        seen = self.columns(value, 0, partial.visible)
        params = self.module(partial.actor, seen)
        if not partial.masked:
            return params
        mask = self.columns(seen, partial.visible - partial.masked, partial.visible)
        forbidden = self.add("Equal", [mask, self.constant(np.float32(0.0))], {})
        return self.add("Where", [forbidden, self.constant(np.float32(FORBIDDEN)), params], {})

    def columns(self, value: str, begin: int, end: int) -> str:
        """Columns begin..end−1."""
        bounds = [self.constant(np.array([bound])) for bound in (begin, end, 1)]
        return self.add("Slice", [value, *bounds], {})
