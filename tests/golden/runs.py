"""Short runs whose weights and metrics are recorded in golden.json, and how each is summarised."""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file

import optimist

GOLDEN = Path(os.environ.get("GOLDEN") or Path(__file__).with_name("golden.json"))
TENSOR_NAMES: dict[str, str] = {}
"""New name → the name at recording, of tensors in final.safetensors."""
METRIC_NAMES: dict[str, str] = {}
"""New name → the name at recording, of metrics in metrics.jsonl."""
SAMPLED = 4
"""Entries of each tensor that are recorded as numbers, next to its norm."""


class Run(NamedTuple):
    """One recorded run: a preset and what is changed in it."""

    name: str
    preset: str
    settings: dict[str, Any]

    @property
    def steady(self) -> bool:
        """Whether rounding leaves its actions alone, so that weights agree between processors."""
        return self.name in STEADY


def _run(name: str, preset: str, **settings: Any) -> Run:
    return Run(name, preset, {"seed": 3, "tensorboard": False} | settings)


SPARSE = {"size": 6, "total_steps": 8_192}  # small enough that the goal is found and the memory fills
RUNS = (
    _run("deepsea-ppo", "deepsea/ppo", **SPARSE),
    _run("deepsea-opr", "deepsea/opr", **SPARSE),
    _run("deepsea-opr-checkpoints", "deepsea/opr", **SPARSE, checkpoint_every=3_000),
    _run("deepsea-opr-paper", "deepsea/opr-paper", **SPARSE),
    _run("deepsea-opr-lag", "deepsea/opr", **SPARSE, policy_lag=1),
    _run("deepsea-opr-cloned", "deepsea/opr", **SPARSE, opr={"reference": "cloned", "shaping_scale": 0.5}),
    _run("deepsea-opr-replayed", "deepsea/opr", **SPARSE, opr={"augment_share": 0.25}),
    _run("deepsea-opr-luck", "deepsea/opr", **SPARSE, opr={"bc_luck": 1.0, "max_age_updates": 3}),
    _run("deepsea-opr-phases", "deepsea/opr", **SPARSE, opr={"bc_coef": 0.0, "bc_phase_interval": 2}),
    _run("deepsea-a2c-opr", "deepsea/a2c-opr", **SPARSE),
    _run("deepsea-ppo-opr-sil", "deepsea/ppo-opr-sil", **SPARSE),
    _run("deepsea-acper-opr", "deepsea/acper-opr", **SPARSE),
    _run("deepsea-dqn-opr", "deepsea/dqn-opr", size=6, total_steps=3_072),
    _run("deepsea-rainbow-opr", "deepsea/rainbow-opr", size=6, total_steps=2_048),
    _run("keydoor-opr", "keydoor/opr", total_steps=8_192),
    _run("keydoor-a2c-sil", "keydoor/a2c-sil", total_steps=8_192),
    _run("gym-ppo", "gym/ppo", total_steps=4_096),
    _run("gym-opr-pendulum", "gym/opr", env="Pendulum-v1", total_steps=4_096),
    _run("gym-opr-paper", "gym/opr-paper", total_steps=4_096),
    _run("gym-dqn", "gym/dqn", total_steps=3_072),
    _run("cage2-cardiff", "cage2/cardiff", total_steps=12_000),
    _run("cage2-cardiff-opr", "cage2/cardiff-opr", red="Meander", total_steps=12_000),
    _run("cage2-cardiff-opr-paper", "cage2/cardiff-opr-paper", total_steps=12_000),
    _run("cage2-a2c-sil", "cage2/a2c-sil", total_steps=6_000),
    _run("cage2-ppo", "cage2/ppo", total_steps=6_000),
    _run("cage2-best", "cage2/best", total_steps=1, env={"num_envs": 64}, final_episodes=0),
    _run("mujoco-ppo-opr", "mujoco/ppo-opr", env="Hopper-v5", delay=20, total_steps=4_096),
    _run("atari-smoke", "atari/smoke", game="Pong", total_steps=1_024, final_episodes=0),
    _run("atari-paper", "atari/paper", game="Breakout", total_steps=1_024, final_episodes=0),
    _run("atari-rainbow-opr", "atari/rainbow-opr", game="Breakout", total_steps=256, final_episodes=0,
         algorithm={"learning_starts": 64, "replay_capacity": 1_000}),
)  # fmt: skip
STEADY = {
    "deepsea-dqn-opr", "deepsea-rainbow-opr", "gym-dqn", "cage2-cardiff", "cage2-cardiff-opr",
    "cage2-cardiff-opr-paper", "cage2-a2c-sil", "atari-smoke", "atari-rainbow-opr",
}  # fmt: skip
"""Runs whose weights agreed to 1e-6 between two makes of processors; in others rounding changed a sampled action."""


def summarize(folder: Path) -> dict[str, Any]:
    """What is recorded of a run: hashes of its weights and metrics, some weights, and its first line of metrics."""
    tensors = {TENSOR_NAMES.get(name, name): value for name, value in load_file(folder / "final.safetensors").items()}
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    return {
        "weights": digest.hexdigest()[:16],
        "numbers": {name: _numbers(tensors[name]) for name in sorted(tensors)},
        "metrics": _hashed_metrics(lines),
        "first": {METRIC_NAMES.get(name, name): value for name, value in _of_training(lines[0])},
    }


def _numbers(tensor: torch.Tensor) -> list[float]:
    flat = tensor.double().flatten()
    picks = torch.linspace(0, len(flat) - 1, min(SAMPLED, len(flat))).long()
    return [round(float(value), 9) for value in (flat.norm(), *flat[picks])]


def _of_training(line: dict[str, Any]) -> list[tuple[str, Any]]:
    """The metrics of a line without its step and without times."""
    return [(name, value) for name, value in sorted(line.items()) if name != "step" and not name.startswith("time/")]


def _hashed_metrics(lines: list[dict[str, Any]]) -> dict[str, str]:
    """A hash of each metric's values with their steps, by the name at recording."""
    columns: dict[str, Any] = {}
    for line in lines:
        for name, value in _of_training(line):
            number = math.nan if value is None else value
            digest = columns.setdefault(METRIC_NAMES.get(name, name), hashlib.sha256())
            digest.update(f"{line['step']} {number!r};".encode())
    return {name: columns[name].hexdigest()[:12] for name in sorted(columns)}


def play(run: Run, folder: Path) -> dict[str, Any]:
    """Train `run` into `folder`; its summary."""
    optimist.train(run.preset, out=folder, progress=False, **run.settings)
    return summarize(folder)


def machine() -> dict[str, str]:
    """What exact equality depends on; the kernels of one capability differ between makes of processors."""
    return {
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__.partition("+")[0],
        "kernels": _hash_of_kernels(),
    }


def _hash_of_kernels() -> str:
    """A hash of what torch's kernels compute on fixed numbers: products, convolutions, activations, their gradients."""
    rows = torch.linspace(-2, 2, 64 * 144).sin().view(64, 144).requires_grad_()
    weights = torch.linspace(-1, 1, 144 * 64).cos().view(144, 64).requires_grad_()
    images = torch.linspace(-3, 3, 4 * 4 * 36 * 36).sin().view(4, 4, 36, 36)
    filters = torch.linspace(-1, 2, 8 * 4 * 8 * 8).cos().view(8, 4, 8, 8).requires_grad_()
    features = torch.tanh(rows @ weights / 12).log_softmax(-1)
    pictures = torch.nn.functional.conv2d(images, filters, stride=4).exp().log1p()
    results = torch.autograd.grad(features.square().sum() + pictures.sum(), [rows, weights, filters])
    bits = b"".join(result.detach().numpy().tobytes() for result in (features, pictures, *results))
    return hashlib.sha256(bits).hexdigest()[:12]
