"""A rare good mode of CAGE 2: who finds it, and after how many steps?

    python benchmarks/cage2_user3.py [--seeds 5] [--steps 2000000] [--out results/cage2/user3] [--workers 2]

Under `competition` a Restore breaks User3's mail server for the attacker. Restored early, before Meander has taken it,
User3 becomes a target that fails most of the time, is tried again and again, and shields the rest; it costs 1 and pays
about 2.5 over 100 steps. The sign of it is a User3 that is still attacked in the second half of the game: otherwise
Meander has it by then and does not come back. A run has found the mode once more than half of its training games show
that sign, and keeps it if its last ones do. Runs that stand in runs.jsonl are not run again.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from resumable import Runs

METHODS = ("ppo", "opr", "opr-paper")
HALF = 50


def make_config(method: str, mask: bool, gamma: float, seed: int, steps: int) -> Any:
    """PPO as in `cage2/best`, but plain rewards, Meander alone and a small network."""
    from optimist.core.config import OPRConfig
    from optimist.presets import get_preset

    base = get_preset("cage2/best")(rules="competition", red="Meander", games=128)
    opr = {"ppo": base.opr, "opr": OPRConfig(), "opr-paper": OPRConfig.paper("cage2")}[method]
    if method == "opr-paper":  # episodes of 100 steps
        opr = replace(opr, capacity_transitions=100_000)
    game = {"red": "Meander", "rules": "competition", "horizon": 100, "mask": mask}
    return replace(
        base,
        total_steps=steps,
        seed=seed,
        env=replace(base.env, kwargs=game),
        network=replace(base.network, hidden=(64, 64)),
        algorithm=replace(base.algorithm, gamma=gamma, minibatch_size=1_600),
        opr=opr,
    )


def train(method: str, mask: bool, gamma: float, seed: int, steps: int) -> dict[str, Any]:
    """One run: return and share of games in the mode, update by update (sampled actions)."""
    import torch

    from optimist.envs.cage2.expert_names import feature_names
    from optimist.envs.make import make_envs
    from optimist.rollout.collector import Collector
    from optimist.training.build import make_algorithm, make_anchor, make_policy, prepare_torch
    from optimist.training.seeding import derive_seed

    config = make_config(method, mask, gamma, seed, steps)
    prepare_torch(config)
    envs = make_envs(config.env, seed=seed)
    policy = make_policy(config, envs)
    algorithm = make_algorithm(config, policy, make_anchor(config))
    generator = torch.Generator().manual_seed(derive_seed(seed, "acting"))
    collector = Collector(envs, config.env, policy, config.algorithm.rollout_steps, generator)
    collector.restart(derive_seed(seed, "envs"))
    attacked = feature_names().index("User3: active")
    begin, returns, shares = time.perf_counter(), [], []
    for update in range(config.total_updates):
        rollout = collector.collect(progress=update / config.total_updates)
        algorithm.update(rollout)
        returns.append(float(rollout.raw_rewards.sum(0).mean()))
        shares.append(float(rollout.obs[HALF:, :, attacked].any(0).float().mean()))
    return {
        "method": method,
        "mask": mask,
        "gamma": gamma,
        "seed": seed,
        "steps": steps,
        "seconds": round(time.perf_counter() - begin, 1),
        "batch": config.batch_size,
        "returns": [round(value, 3) for value in returns],
        "mode_shares": [round(value, 3) for value in shares],
    }


def found_at(run: dict[str, Any]) -> int | None:
    """Steps after which more than half of the games are in the mode, for good to the end of the run."""
    late = None
    for update in range(len(run["mode_shares"]) - 1, -1, -1):
        if run["mode_shares"][update] <= 0.5:
            break
        late = (update + 1) * run["batch"]
    return late


def table(runs: list[dict[str, Any]]) -> str:
    lines = [
        "| method | mask | γ | runs in the mode at the end | after steps (median) | return of the last 10 updates |",
        "|---|---|---|---|---|---|",
    ]
    cells = sorted({(r["gamma"], not r["mask"], METHODS.index(r["method"])) for r in runs})
    for gamma, unmasked, number in cells:
        of = [r for r in runs if (r["gamma"], r["mask"], r["method"]) == (gamma, not unmasked, METHODS[number])]
        found = sorted(step for step in map(found_at, of) if step is not None)
        last = sorted(sum(r["returns"][-10:]) / 10 for r in of)
        median = f"{found[len(found) // 2] / 1e6:.2f} M" if found else "–"
        returns = " ".join(f"{value:.1f}" for value in last)
        columns = (METHODS[number], "no" if unmasked else "yes", gamma, f"{len(found)}/{len(of)}", median, returns)
        lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2_000_000)
    parser.add_argument("--gammas", type=float, nargs="+", default=[0.99])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["ppo", "opr"])
    parser.add_argument("--masks", nargs="+", choices=["yes", "no"], default=["yes", "no"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/cage2/user3"))
    a = parser.parse_args()
    seeds = range(a.first_seed, a.first_seed + a.seeds)
    jobs = [(m, mask == "yes", g, s, a.steps) for s in seeds for g in a.gammas for mask in a.masks for m in a.methods]
    runs = Runs(a.out / "runs.jsonl", ("method", "mask", "gamma", "seed", "steps"), sort_names=False)
    runs.add(train, runs.missing(jobs), a.workers)
    (a.out / "table.md").write_text(table(runs.rows) + "\n")
    print(table(runs.rows))


if __name__ == "__main__":
    main()
