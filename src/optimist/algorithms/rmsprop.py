"""RMSprop with ε under the root: centred as in Mnih et al. (2015), and as TensorFlow has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class RMSpropUnderRoot(torch.optim.Optimizer):
    """What both have in common: a step of every parameter that has a gradient."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float | Tensor, alpha: float, eps: float) -> None:
        super().__init__(parameters, {"lr": lr, "alpha": alpha, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step down the gradients there are."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, group)

    def _move(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        raise NotImplementedError


class CenteredRMSprop(RMSpropUnderRoot):
    """θ ← θ − η g / √(E[g²] − E[g]² + ε), both means with smoothing α.

    η as a tensor on the parameters' device can be changed where a recorded step reads it.
    """

    def _move(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if not state:
            state.update(self.fresh_state(parameter))
        state["mean"].lerp_(gradient, 1.0 - group["alpha"])
        state["square"].lerp_(gradient.square(), 1.0 - group["alpha"])
        variance = (state["square"] - state["mean"].square()).clamp_min(0.0)  # rounding may leave it below
        spread = (variance + group["eps"]).sqrt()
        rate = group["lr"]
        if isinstance(rate, Tensor):
            parameter.addcmul_(gradient / spread, rate, value=-1.0)
        else:
            parameter.addcdiv_(gradient, spread, value=-rate)

    @staticmethod
    def fresh_state(parameter: Tensor) -> dict[str, Tensor]:
        """Both means before the first step."""
        return {"mean": torch.zeros_like(parameter.data), "square": torch.zeros_like(parameter.data)}


class TensorFlowRMSprop(RMSpropUnderRoot):
    """θ ← θ − η g / √(E[g²] + ε), the mean with smoothing α and 1 before the first step: A2C's in OpenAI baselines."""

    def _move(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if not state:
            state["square"] = torch.ones_like(parameter.data)
        state["square"].lerp_(gradient.square(), 1.0 - group["alpha"])
        parameter.addcdiv_(gradient, (state["square"] + group["eps"]).sqrt(), value=-group["lr"])
