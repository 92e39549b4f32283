"""Sweeps small enough for a test: a small DeepSea, a few updates, a checkpoint every second update."""

from __future__ import annotations

from pathlib import Path

from optimist.sweep.plan import Plan, make_plan

DOCUMENT = {
    "presets": ["deepsea/ppo", "deepsea/opr"],
    "seeds": 2,
    "flags": {"size": 5},
    "settings": {
        "total_steps": 2_048,
        "checkpoint_every": 512,
        "tensorboard": False,
        "env": {"num_envs": 4},
        "algorithm": {"epochs": 1},
    },
}
TEXT = """
presets = ["deepsea/ppo", "deepsea/opr"]
seeds = {seeds}
flags.size = 5
[settings]
total_steps = {steps}
checkpoint_every = 512
tensorboard = false
env.num_envs = 4
algorithm.epochs = 1
"""


def tiny_plan(**changes) -> Plan:
    return make_plan({**DOCUMENT, **changes})


def tiny_file(folder: Path, steps: int = 2_048, seeds: int = 2, more: str = "") -> Path:
    """A sweep file; `more` is put before its tables."""
    path = folder / "tiny.toml"
    path.write_text(more + TEXT.format(steps=steps, seeds=seeds), encoding="utf-8")
    return path


def results(folder: Path) -> tuple[str, str]:
    """table.md and runs.jsonl: they do not depend on when or where the runs were done."""
    return (folder / "table.md").read_text(), (folder / "runs.jsonl").read_text()
