"""Work beside other work: small kernels that do not need each other need not wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

Result = TypeVar("Result")


class Beside:
    """A second stream, for what is recorded as a graph; without a CUDA device the work is done at once."""

    def __init__(self, device: torch.device | None) -> None:
        on_gpu = device is not None and device.type == "cuda"
        self.stream = torch.cuda.Stream(device) if on_gpu else None  # type: ignore[no-untyped-call]

    def begin(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Begin `work`; what is returned gives its result, once it is there.

        Call it before what `work` reads changes, and before the next `begin`.
        """
        if self.stream is None:
            result = work()
            return lambda: result
        side = self.stream
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = work()

        def joined() -> Result:
            torch.cuda.current_stream().wait_stream(side)
            return result

        return joined
