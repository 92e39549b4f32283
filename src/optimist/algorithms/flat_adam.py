"""Adam on one flat vector: the same steps as torch's, without what its wrapper costs a small network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class FlatAdam(torch.optim.Optimizer):
    """Adam (Kingma and Ba, 2015) with bias correction, as torch.optim.Adam computes it."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step down the gradients there are."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)

    step.hooked = True  # type: ignore[attr-defined]  # torch then does not wrap it for its profiler

    def _move(self, parameter: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state.update(step=0, exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
        state["step"] += 1
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(gradient, 1.0 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1.0 - beta2)
        # m̂ / (√v̂ + ε) = (c₂ / c₁) m / (√v + c₂ ε), with c₂ the root of the second correction
        first, second = 1.0 - beta1 ** state["step"], (1.0 - beta2 ** state["step"]) ** 0.5
        spread = square.sqrt().add_(second * group["eps"])
        parameter.addcdiv_(mean, spread, value=-group["lr"] * second / first)
