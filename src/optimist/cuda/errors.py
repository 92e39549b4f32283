"""What goes wrong on a GPU, as one line each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from optimist.errors import DeviceError


@contextmanager
def explained(run: Path) -> Iterator[None]:
    """Errors of the GPU during a run, with what to do; the checkpoints of the run are safe."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceError(
            "the GPU is out of memory: lower env.num_envs, opr.max_episode_steps or opr.capacity_transitions, or stop "
            f"what else runs there; `optimist resume {run}` goes on from the last checkpoint"
        ) from error
    except RuntimeError as error:
        if "CUDA error" not in str(error) and "CUDA driver" not in str(error):
            raise
        reason = str(error).splitlines()[0]
        raise DeviceError(
            f"the GPU no longer answers ({reason}); look at nvidia-smi, then `optimist resume {run}` goes on from the "
            "last checkpoint"
        ) from error
