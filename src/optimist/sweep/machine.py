"""Machine: the cores and GPUs of this computer, shared out to runs; several runs to a GPU."""

from __future__ import annotations

import os
from dataclasses import dataclass

from optimist.cores import available_cores
from optimist.errors import ConfigError
from optimist.sweep.plan import Run

_SLACK = 1e-9


@dataclass(frozen=True)
class Place:
    """What a run was given; `gpu` is an index among the visible ones."""

    cpus: float
    gpus: float
    gpu: int | None


class Machine:
    """Free cores and free shares of each GPU."""

    def __init__(self, cpus: float, gpus: int) -> None:
        self.cpus, self.gpus = cpus, gpus
        self.free_cpus = cpus
        self.free_gpus = [1.0] * gpus

    @classmethod
    def here(cls, *, count_gpus: bool) -> Machine:
        """This computer: the cores the process may use, and the GPUs torch sees if anybody wants one."""
        gpus = 0
        if count_gpus:
            import torch

            gpus = torch.cuda.device_count()
        return cls(float(available_cores()), gpus)

    def check(self, run: Run) -> None:
        """Raises for a run that will never fit."""
        index = _index(run)
        if run.gpus and (not self.gpus or (index is not None and index >= self.gpus)):
            raise ConfigError(
                f"{run.name} asks for device '{run.config.device}', but this machine has {self.gpus} GPUs"
            )

    def take(self, run: Run) -> Place | None:
        """Room for the run, or None while there is none; a run larger than the machine gets all of it."""
        cpus = min(run.cpus, self.cpus)
        if cpus > self.free_cpus + _SLACK:
            return None
        gpu = self._gpu_for(run) if run.gpus else None
        if run.gpus and gpu is None:
            return None
        self.free_cpus -= cpus
        if gpu is not None:
            self.free_gpus[gpu] -= run.gpus
        return Place(cpus, run.gpus, gpu)

    def give_back(self, place: Place) -> None:
        """The run has ended."""
        self.free_cpus += place.cpus
        if place.gpu is not None:
            self.free_gpus[place.gpu] += place.gpus

    def _gpu_for(self, run: Run) -> int | None:
        """The GPU the run names, else the one with the most room."""
        index = _index(run)
        if index is None:
            index = max(range(self.gpus), key=lambda gpu: self.free_gpus[gpu])
        return index if self.free_gpus[index] + _SLACK >= run.gpus else None


def _index(run: Run) -> int | None:
    _, _, number = run.config.device.partition(":")
    return int(number) if number.isdigit() else None


def visible_name(gpu: int) -> str:
    """What CUDA_VISIBLE_DEVICES must say for a process to see only this one of the GPUs we see."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return visible[gpu] if visible else str(gpu)
