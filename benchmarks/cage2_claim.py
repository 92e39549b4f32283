"""The paper's CAGE-2 claim at its own size: does OPR lift the Cardiff agent, 100,000 episodes of 30 steps?

    python benchmarks/cage2_claim.py --seeds 10 --rules final --jobs 2 --out results/cage2/claim

A method is `ppo145` (145 actions, 52 bits), `cardiff`, `cardiff-opr-paper` or `cardiff-opr`, optionally with settings
changed: `cardiff-opr:bc_coef=1.0,env.truncation=ignored,algorithm.entropy_coef=0.02` (OPR's unless another part of the
config is named). Every run is scored with its final policy on fresh games of 30 steps, argmax and sampled. Raw data
goes to runs.jsonl, one line a run; runs that stand there are not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from resumable import Runs
from variants import changed

from optimist.report.means import difference_interval, mean_interval

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before a process loads torch

METHODS = {"ppo145": "cage2/ppo"}
BASELINE = "cardiff"
CURVE_POINTS = 50
KEY = ("method", "red", "rules", "seed", "total_steps")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["ppo145", "cardiff", "cardiff-opr-paper", "cardiff-opr"])
    parser.add_argument("--reds", nargs="+", default=["B_line", "Meander"])
    parser.add_argument("--rules", nargs="+", default=["final"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=3_000_000)
    parser.add_argument("--episodes", type=int, default=2_000, help="fresh games of each score")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: several runs share the GPU")
    parser.add_argument("--out", type=Path, default=Path("results/cage2/claim"))
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    jobs = [
        (method, red, rules, seed, args.total_steps)
        for seed in range(args.first_seed, args.first_seed + args.seeds)
        for rules in args.rules
        for red in args.reds
        for method in args.methods
    ]
    runs = Runs(args.out / "runs.jsonl", KEY, sort_names=False)
    todo = runs.missing(jobs)
    started = time.perf_counter()
    if todo:
        compile_rules()
    runs.add(partial(run_one, episodes=args.episodes, device=args.device), todo, args.jobs)
    order = {job: place for place, job in enumerate(jobs)}
    rows = runs.sort(lambda row: order.get(runs.job_of(row), len(jobs)))
    table = render([row for row in rows if runs.job_of(row) in order], args)
    (args.out / "table.md").write_text(table)
    draw(rows, args.out)
    print(f"{table}\n{len(todo)} runs in {time.perf_counter() - started:.0f} s; raw data: {runs.file}")


def compile_rules() -> None:
    """Fills the compiler's cache once, before many processes ask for it."""
    from optimist.envs.cage2.cardiff import CardiffVectorEnv
    from optimist.envs.cage2.env import CageVectorEnv

    for kind in (CageVectorEnv, CardiffVectorEnv):
        env = kind(1)
        env.reset(seed=0)
        env.close()


def make_config(method: str, red: str, rules: str, seed: int, total_steps: int) -> Any:
    """The method's preset with its changes."""
    from optimist.presets import get_preset

    name, _, changes = method.partition(":")
    config = changed(get_preset(METHODS.get(name, f"cage2/{name}"))(red=red, rules=rules), changes)
    return dataclasses.replace(
        config, seed=seed, total_steps=total_steps, threads=1, tensorboard=False, checkpoint_every=10**9
    )


def run_one(
    method: str, red: str, rules: str, seed: int, total_steps: int, episodes: int, device: str
) -> dict[str, Any]:
    """One training run and its score, in a process of its own."""
    from optimist.deploy.defenders import load_defender
    from optimist.envs.cage2.score import play
    from optimist.training.loop import train

    config = dataclasses.replace(make_config(method, red, rules, seed, total_steps), device=device)
    row: dict[str, Any] = dict(zip(KEY, (method, red, rules, seed, total_steps), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        summary = train(config, run, progress=False)
        metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        defender = load_defender([str(run)], rules)
        for name, greedy in (("argmax", True), ("sampled", False)):
            returns = play(
                defender,
                episodes,
                red=red,
                horizon=config.env.kwargs["horizon"],
                rules=rules,
                table=defender.table,
                greedy=greedy,
                seed=10_000 + seed,
            )
            row[name] = {"mean": round(float(returns.mean()), 4), "std": round(float(returns.std(ddof=1)), 4)}
    return row | {
        "episodes": episodes,
        "device": device,
        "updates": summary["updates"],
        "last_100_return": round(summary["last_100_return"], 4),
        "seconds": round(summary["time/seconds"], 1),
        "curve": thin(
            [[line["step"], round(line["rollout/raw_return"], 3)] for line in metrics if "rollout/raw_return" in line]
        ),
    }


def thin(points: list[list[float]]) -> list[list[float]]:
    """About `CURVE_POINTS` of the points, the last always among them."""
    every = max(1, len(points) // CURVE_POINTS)
    return points[::-1][::every][::-1]


def render(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """One table a rule set: means over seeds with Student's intervals, differences to Cardiff with Welch's."""
    lines = [
        f"Command: `python benchmarks/cage2_claim.py {' '.join(sys.argv[1:])}`",
        "",
        f"CAGE 2, games of 30 steps, {args.total_steps:,} training steps; final policy, {args.episodes:,} fresh games "
        "a score; mean over seeds ± 95 % (Student); against cardiff: difference of the argmax means ± 95 % (Welch).",
    ]
    for rules in args.rules:
        reds = [red for red in args.reds if any((row["rules"], row["red"]) == (rules, red) for row in rows)]
        columns = [f"{red} {mode}" for red in reds for mode in ("argmax", "sampled", "against cardiff")]
        columns += ["mean argmax", "mean sampled", "mean against cardiff"] if len(reds) > 1 else []
        lines += ["", f"## Rules {rules}", "", f"| method | seeds | {' | '.join(columns)} |"]
        lines.append("|---|---|" + "---|" * len(columns))
        for method in args.methods:
            own = scores_of(rows, rules, method, reds)
            base = scores_of(rows, rules, BASELINE, reds)
            if own:
                lines.append(f"| {method} | {len(own)} | {' | '.join(cells(own, base, reds))} |")
    return "\n".join(lines) + "\n"


def draw(rows: list[dict[str, Any]], out: Path) -> None:
    """Training curves of each attacker and rule set, the last half enlarged beside, as in the paper's figure."""
    from optimist.report.figures import draw_curves

    for red, rules in sorted({(row["red"], row["rules"]) for row in rows}):
        here = [row for row in rows if (row["red"], row["rules"]) == (red, rules)]
        curves = {
            method: [row["curve"] for row in here if row["method"] == method]
            for method in dict.fromkeys(row["method"] for row in here)
        }
        title = f"CAGE 2, {red}, 30 steps a game, rules {rules}"
        draw_curves(curves, out / f"curves-{red}-{rules}", title=title, zoom=(-16.0, -2.0))


def scores_of(rows: list[dict[str, Any]], rules: str, method: str, reds: list[str]) -> list[dict[str, Any]]:
    """For each seed that has all attackers: attacker → argmax and sampled mean."""
    seeds: dict[int, dict[str, Any]] = {}
    for row in rows:
        if (row["rules"], row["method"]) == (rules, method):
            seeds.setdefault(row["seed"], {})[row["red"]] = {mode: row[mode]["mean"] for mode in ("argmax", "sampled")}
    return [seeds[seed] for seed in sorted(seeds) if set(reds) <= set(seeds[seed])]


def cells(own: list[dict[str, Any]], base: list[dict[str, Any]], reds: list[str]) -> list[str]:
    """The columns of one method."""
    found = []
    for group in [[red] for red in reds] + ([reds] if len(reds) > 1 else []):
        values, others = (
            {
                mode: [sum(seed[red][mode] for red in group) / len(group) for seed in side]
                for mode in ("argmax", "sampled")
            }
            for side in (own, base)
        )
        found += [str(mean_interval(values[mode])) for mode in ("argmax", "sampled")]
        found.append("–" if not base or own == base else str(difference_interval(values["argmax"], others["argmax"])))
    return found


if __name__ == "__main__":
    main()
