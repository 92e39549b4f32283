"""Writes the actor of a run of `cage2/best` as the agent `best` that comes with the package.

    python benchmarks/cage2_best_ship.py RUN...

One run for each rule set; half-precision weights, and where they come from as metadata.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from optimist.deploy.cyborg import layers_of
from optimist.deploy.defenders import EXPERT, TrainedRun
from optimist.envs.cage2.agents.best import weights_of


def ship(run: TrainedRun) -> Path:
    config = run.agent.config
    if run.interface != EXPERT or config.network.activation != "relu":
        raise SystemExit(f"{run.path} is no run of cage2/best: expected the expert interface and ReLU")
    arrays = {}
    for number, layer in enumerate(layers_of(run)):
        arrays[f"{number}.weight"] = layer.weight.detach().cpu().numpy().astype(np.float16)
        arrays[f"{number}.bias"] = layer.bias.detach().cpu().numpy().astype(np.float32)
    origin = {"preset": config.preset, "rules": run.rules, "seed": config.seed, "total_steps": config.total_steps}
    path = weights_of(run.rules)
    save_file(arrays, path, {name: str(value) for name, value in origin.items()})
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+")
    for name in parser.parse_args().runs:
        path = ship(TrainedRun.load(name))
        print(f"{name} → {path} ({path.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()
