"""Metrics: what each means, and where a run writes them.

metrics.jsonl is always written, TensorBoard where it is installed, Weights & Biases on request. A module declares what
it logs in a table `METRICS = {"station/name": ("unit", "meaning")}`; so does the module of an anchor that another
package adds. `python tools/metrics_page.py` prints docs/metrics.md.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from optimist.config import RunConfig
from optimist.config.toml import effective, flat, to_dict
from optimist.errors import RunFolderError, install_command, missing_extra
from optimist.tracking.files import disk_error, disk_errors

STATIONS = ("rollout", "loss", "policy", "q", "replay", "opr", "sil", "acper", "evaluation", "time")
"""The first part of a metric's name, in the order of the page; others follow."""
TAGS = {
    "rollout/raw_return": "rollout/ep_rew_mean",
    "rollout/length": "rollout/ep_len_mean",
    "evaluation/mean_return": "eval/mean_reward",
    "evaluation/step": "eval/step",
    "loss/policy": "train/policy_gradient_loss",
    "loss/td": "train/loss",
    "policy/kl": "train/approx_kl",
    "policy/epsilon": "rollout/exploration_rate",
    "time/steps_per_second": "time/fps",
}
"""Metric → its name in TensorBoard and Weights & Biases: that of Stable-Baselines3, where it has the metric."""
GROUPS = ("optimist.anchors", "optimist.presets")
"""Entry points whose modules may declare metrics."""


class MetricsLog:
    """metrics.jsonl, flushed line by line; a line that a kill cut short is removed when the file is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors(path):
            path.touch()
            os.truncate(path, _complete_bytes(path))
            self._file = path.open("ab", buffering=0)

    @property
    def offset(self) -> int:
        """Bytes written so far; a checkpoint records this."""
        return self._file.tell()

    def append(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Append `{"step": …, …}`; nan and infinities are null."""
        line = {"step": step} | {name: _plain(value) for name, value in metrics.items()}
        rest = json.dumps(line, allow_nan=False).encode() + b"\n"
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise disk_error(self.path, error) from error

    def sync(self) -> int:
        """Wait until all lines are on the disk; return the offset after the last one."""
        with disk_errors(self.path):
            os.fsync(self._file.fileno())
        return self.offset

    def truncate(self, offset: int) -> None:
        """Cut the file back to the `offset` that a checkpoint recorded."""
        content = self.path.read_bytes()
        if len(content) < offset or (offset and content[offset - 1 : offset] != b"\n"):
            raise RunFolderError(
                f"{self.path} was changed: it has {len(content):,} bytes, and the checkpoint was saved at the end of a "
                f"line after {offset:,}; restore the file, or train a new run"
            )
        with disk_errors(self.path):
            self._file.truncate(offset)
            self._file.seek(offset)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl, null as nan; an incomplete last line is left out."""
    text = path.read_bytes()[: _complete_bytes(path)].decode()
    lines = [json.loads(line) for line in text.splitlines()]
    return [{name: math.nan if value is None else value for name, value in line.items()} for line in lines]


def _plain(value: Any) -> float | int | str | None:
    """A number as JSON writes it: tensors and numpy scalars unpacked, nan and infinities as None."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _complete_bytes(path: Path) -> int:
    """Bytes up to and including the last newline."""
    return path.read_bytes().rfind(b"\n") + 1


class Writers:
    """All destinations of a run's metrics; `notes` names them, one line each."""

    def __init__(self, log: MetricsLog, config: RunConfig, resumed_at: int | None = None) -> None:
        self.log, folder = log, log.path.parent
        self._tags = tags(config)
        self.sinks: list[_TensorBoard | _WandB] = []
        self.notes: list[str] = []
        if config.wandb:
            self.sinks.append(_WandB(folder, config))
            self.notes.append("Weights & Biases: on")
        if config.tensorboard and importlib.util.find_spec("tensorboard") is None:
            self.notes.append(f"TensorBoard: not installed ({install_command('report')})")
        elif config.tensorboard:
            self.sinks.append(_TensorBoard(folder, config, resumed_at))
            self.notes.append(f"TensorBoard: tensorboard --logdir {folder}")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line to metrics.jsonl, and its finite numbers to every sink by the names of Stable-Baselines3."""
        self.log.append(step, metrics)
        named = {}
        for name, value in metrics.items():
            if math.isfinite(value):
                tag, factor = self._tags.get(name, (name, 1.0))
                named[tag] = factor * float(value)
        for sink in self.sinks:
            sink.write(step, named)

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *error: object) -> None:
        for sink in self.sinks:
            sink.close()


def tags(config: RunConfig) -> dict[str, tuple[str, float]]:
    """Metric → its name in Stable-Baselines3 and the factor to that library's unit: its losses have no coefficient."""
    value_coef = getattr(config.algorithm, "value_coef", 0.0)
    scaled = {"loss/value": ("train/value_loss", 1.0 / value_coef)} if value_coef else {}
    return {name: (tag, 1.0) for name, tag in TAGS.items()} | scaled | {"policy/entropy": ("train/entropy_loss", -1.0)}


class _TensorBoard:
    """Event files and hyper-parameters in the run folder; after a resume, events beyond the checkpoint are purged."""

    def __init__(self, folder: Path, config: RunConfig, resumed_at: int | None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = None if resumed_at is None else resumed_at + 1
        self.writer = SummaryWriter(str(folder), purge_step=purge)
        if resumed_at is None:
            self._write_settings(config)

    def _write_settings(self, config: RunConfig) -> None:
        """Fill the tab HParams, without the run of its own that `add_hparams` would make."""
        from torch.utils.tensorboard.summary import hparams

        values = dict(flat(effective(config)))
        shown = {name: value if isinstance(value, bool | int | float) else str(value) for name, value in values.items()}
        results = [TAGS["rollout/raw_return"], *([TAGS["evaluation/mean_return"]] if config.evaluate_every else [])]
        file: Any = self.writer.file_writer
        for part in hparams(shown, dict.fromkeys(results, 0.0)):  # type: ignore[no-untyped-call]
            file.add_summary(part)

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        evaluated = int(metrics.get("eval/step", step))  # background results arrive later
        for name, value in metrics.items():
            if name != "eval/step":
                self.writer.add_scalar(name, value, evaluated if name.startswith("eval/") else step)

    def close(self) -> None:
        self.writer.close()


class _WandB:
    """A Weights & Biases run; its id is derived from the folder's path, so that a resumed run continues it."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        if importlib.util.find_spec("wandb") is None:
            raise missing_extra("logging to Weights & Biases", "wandb", "wandb")
        import wandb

        name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        self.run = wandb.init(
            project="optimist", name=folder.name, id=name, resume="allow", dir=str(folder), config=to_dict(config)
        )

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        self.run.finish()


class Metric(NamedTuple):
    """What a number in metrics.jsonl measures."""

    unit: str
    meaning: str


@functools.cache
def known_metrics() -> dict[str, Metric]:
    """All declared metrics, by station."""
    found = {name: Metric(*entry) for path in _sources() for name, entry in declared_metrics(path.read_text("utf-8"))}
    order = {station: place for place, station in enumerate(STATIONS)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0].partition("/")[0], len(order))))


def declared_metrics(source: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Name, unit and meaning of the metrics in the source's table `METRICS`; nothing is imported."""
    if re.search(r"^METRICS = \{", source, re.MULTILINE):
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "METRICS":
                yield from ast.literal_eval(node.value).items()


def _sources() -> Iterator[Path]:
    yield from sorted(Path(__file__).parents[1].rglob("*.py"))
    for module in {entry.module for group in GROUPS for entry in entry_points(group=group)}:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin)
