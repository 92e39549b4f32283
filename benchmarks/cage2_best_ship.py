"""Write the actor of a run of `cage2/best` as the agent `best` of the package.

    python benchmarks/cage2_best_ship.py RUN...

Give one run for each rule set. The weights are stored in half precision, with their origin as metadata.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cage2.agents.shipped import save_weights
from optimist.deploy.cage2_runs import EXPERT, TrainedRun, layers_of
from optimist.networks.actor_critic import as_actor_critic


def ship(run: TrainedRun) -> Path:
    config = run.agent.config
    if run.interface != EXPERT or config.network.activation != "relu":
        raise SystemExit(f"{run.path} is not a run of cage2/best; expected the expert interface and ReLU")
    policy = as_actor_critic(run.agent.policy, "the agent `best`")
    origin = {"preset": config.preset, "rules": run.rules, "seed": config.seed, "total_steps": config.total_steps}
    return save_weights(run.rules, layers_of(policy.actor), {name: str(value) for name, value in origin.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+")
    for name in parser.parse_args().runs:
        path = ship(TrainedRun.load(name))
        print(f"{name} → {path} ({path.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()
