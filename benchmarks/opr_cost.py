"""Cost of OPR: training speed with and without it, alternated update by update in one process.

    python benchmarks/opr_cost.py --tasks deepsea cage2-cardiff --steps 200000 --pairs 3 --out rows.jsonl \
        --variants today= quarter=opr.bc_batch_size=0.25 recent=opr.max_age_updates=100

A pair trains the plain learner and every variant with one seed. They take turns, `--turn` updates at a time, so that
all see the same load of the machine; torch has one thread. Each pair adds one line for each variant to `--out`:
processor seconds and wall-clock seconds of both, without start-up. The table shows the median over pairs of the
variant's steps per processor second as a share of the plain learner's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimist.config import RunConfig
from optimist.config.toml import merge
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer

TASKS: dict[str, tuple[str, str]] = {
    "deepsea": ("deepsea/ppo", "deepsea/opr"),
    "keydoor": ("keydoor/ppo", "keydoor/opr"),
    "cage2-cardiff": ("cage2/cardiff", "cage2/cardiff-opr"),
    "cage2-a2c": ("cage2/a2c", "cage2/a2c-opr"),
}
"""Task → presets without and with OPR."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=["deepsea", "cage2-cardiff"])
    parser.add_argument("--variants", nargs="+", default=["today="], help="NAME=SETTING=VALUE,… over the preset")
    parser.add_argument("--steps", type=int, default=200_000, help="of each training (default 200000)")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--turn", type=int, default=5, help="updates between two changes of turn (default 5)")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    variants = dict(word.split("=", 1) for word in args.variants)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for task in args.tasks:
        rows = [row for pair in range(args.pairs) for row in measure(task, variants, args.steps, pair, args.turn)]
        with args.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        for name in variants:
            ratios = [row["plain"]["cpu"] / row["opr"]["cpu"] for row in rows if row["variant"] == name]
            shown = f"{statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}"
            print(f"{task:14} {name:20} {shown}", flush=True)


@dataclass
class Side:
    """One training and the seconds that its updates took."""

    trainer: Trainer
    cpu: float = 0.0
    wall: float = 0.0

    def take_turn(self, updates: int) -> bool:
        """Do so many updates; whether any is left."""
        started, cpu = time.perf_counter(), time.process_time()
        for _ in range(min(updates, self.trainer.total_updates - self.trainer.update)):
            self.trainer.one_update()
        self.wall, self.cpu = self.wall + time.perf_counter() - started, self.cpu + time.process_time() - cpu
        return self.trainer.update < self.trainer.total_updates

    @property
    def seconds(self) -> dict[str, float]:
        """Processor and wall-clock seconds."""
        return {"cpu": round(self.cpu, 3), "wall": round(self.wall, 3)}


def measure(task: str, variants: dict[str, str], steps: int, seed: int, turn: int) -> list[dict[str, Any]]:
    """A row for each variant, next to the plain learner with the same seed."""
    plain, opr = (config_of(preset, steps, seed) for preset in TASKS[task])
    configs = [plain, *(merge(opr, nested(words)) for words in variants.values())]
    with tempfile.TemporaryDirectory() as folder:
        sides = [
            Side(Trainer(config, RunDir.create(Path(folder) / str(number), config)))
            for number, config in enumerate(configs)
        ]
        active = list(sides)
        while active:
            active = [side for side in active if side.take_turn(turn)]
        for side in sides:
            side.trainer.close()
    about = {"task": task, "seed": seed, "steps": sides[0].trainer.step, "plain": sides[0].seconds}
    return [
        {**about, "variant": name, "settings": variants[name], "opr": side.seconds}
        for name, side in zip(variants, sides[1:], strict=True)
    ]


def config_of(preset: str, steps: int, seed: int) -> RunConfig:
    """The preset with these steps and this seed, on one thread."""
    return merge(get_preset(preset)(), {"total_steps": steps, "seed": seed, "threads": 1})


def nested(words: str) -> dict[str, Any]:
    """`a.b=1,c=2` as nested settings; values are JSON, or text."""
    settings: dict[str, Any] = {}
    for word in filter(None, words.split(",")):
        name, _, value = word.partition("=")
        *tables, last = name.split(".")
        table = settings
        for part in tables:
            table = table.setdefault(part, {})
        table[last] = _value(value)
    return settings


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main()
