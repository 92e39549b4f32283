"""Writers: metrics to metrics.jsonl always, to TensorBoard where it is installed, to Weights & Biases by flag."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

from optimist.config import RunConfig
from optimist.errors import missing_extra
from optimist.tracking.config_io import to_dict
from optimist.tracking.metrics_log import MetricsLog, plain
from optimist.tracking.run_dir import RunDir


class Sink(Protocol):
    """Somewhere metrics go besides metrics.jsonl."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Takes the finite metrics of one line."""

    def close(self) -> None:
        """Sends what is left."""


class Writers:
    """All places a run's metrics go to; `notes` says which, one line each."""

    def __init__(self, run: RunDir, config: RunConfig, resumed_at: int | None = None) -> None:
        self.log: MetricsLog = run.metrics
        self.sinks: list[Sink] = []
        self.notes: list[str] = []
        if config.wandb:
            self.sinks.append(_WandB(run, config))
            self.notes.append("Weights & Biases: on")
        if config.tensorboard:
            self._add_tensorboard(run, resumed_at)

    def write(self, step: int, metrics: Mapping[str, Any]) -> None:
        """One line in metrics.jsonl, and the same numbers everywhere else."""
        self.log.append(step, metrics)
        numbers = {name: plain(value) for name, value in metrics.items()}
        finite = {name: float(value) for name, value in numbers.items() if isinstance(value, int | float)}
        for sink in self.sinks:
            sink.write(step, finite)

    def close(self) -> None:
        """Closes the sinks; metrics.jsonl belongs to the run folder."""
        for sink in self.sinks:
            sink.close()

    def _add_tensorboard(self, run: RunDir, resumed_at: int | None) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            self.notes.append("TensorBoard: not installed (pip install 'optimist[report]')")
            return
        self.sinks.append(_TensorBoard(run, resumed_at))
        self.notes.append(f"TensorBoard: tensorboard --logdir {run.path}")

    def __enter__(self) -> Writers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _TensorBoard:
    """Event files in the run folder; after a resume the events beyond the checkpoint are marked as void."""

    def __init__(self, run: RunDir, resumed_at: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = None if resumed_at is None else resumed_at + 1
        self.writer = SummaryWriter(str(run.path / "tensorboard"), purge_step=purge)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        evaluated = int(metrics.get("evaluation/step", step))  # one in the background becomes known later
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, evaluated if name.startswith("evaluation/") else step)

    def close(self) -> None:
        self.writer.close()


class _WandB:
    """A Weights & Biases run; its id comes from the folder's path, so a resumed run goes on in the same one."""

    def __init__(self, run: RunDir, config: RunConfig) -> None:
        if importlib.util.find_spec("wandb") is None:
            raise missing_extra("logging to Weights & Biases", "wandb", "wandb")
        import wandb

        name = hashlib.sha256(str(run.path.resolve()).encode()).hexdigest()[:16]
        self.run = wandb.init(
            project="optimist", name=run.path.name, id=name, resume="allow", dir=str(run.path), config=to_dict(config)
        )

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        self.run.finish()
