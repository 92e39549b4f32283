"""All methods side by side on CAGE 2: B_line and Meander, 30 steps a game, equal training steps.

    python benchmarks/cage2_methods.py --seeds 5 --jobs 2 --out results/cage2/methods

A method is a preset's name behind cage2/, optionally with settings changed, as in cage2_claim.py; without `--methods`,
every preset but `best`, which plays another game (100 steps, its own interface). Each run is scored with its final
policy on fresh games, argmax and sampled. Raw data goes to runs.jsonl, one line a run, as in cage2_claim.py; runs
that stand there with the same number of steps are not run again, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from cage2_claim import KEY, compile_rules, run_one, scores_of
from resumable import Runs

from optimist.presets import all_presets
from optimist.report.means import mean_interval

REDS = ["B_line", "Meander"]
RULES = "final"
MODES = ("argmax", "sampled")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reds", nargs="+", default=REDS)
    parser.add_argument("--methods", nargs="+", default=all_methods())
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=500_000)
    parser.add_argument("--episodes", type=int, default=1_000, help="fresh games of each score")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    steps = args.total_steps
    jobs = [(method, red, RULES, seed, steps) for seed in seeds for red in args.reds for method in args.methods]
    runs = Runs(args.out / "runs.jsonl", KEY, sort_names=False)
    todo = runs.missing(jobs)
    if todo:
        compile_rules()
    runs.add(partial(run_one, episodes=args.episodes, device="cpu"), todo, args.jobs)
    order = {method: place for place, method in enumerate(args.methods)}
    rows = runs.sort(
        lambda row: (row["total_steps"], row["red"], order.get(row["method"], 99), row["method"], row["seed"])
    )
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def all_methods() -> list[str]:
    """The presets of CAGE 2 on games of 30 steps, in the order of registration."""
    names = [known.name.split("/") for known in all_presets()]
    return [method for family, method in names if family == "cage2" and method != "best"]


def render(rows: list[dict[str, Any]]) -> str:
    """A table for each number of steps: means over seeds for each attacker, and of the mean of the attackers."""
    lines = [
        f"CAGE 2, rules {RULES}, games of 30 steps. Raw return of the final policy on fresh games, mean over seeds ± "
        "95 % (Student); all columns count the seeds that have every attacker. For DQN and Rainbow, sampled is drawn "
        "from softmax(Q / temperature). s a run: training alone."
    ]
    for budget in dict.fromkeys(row["total_steps"] for row in rows):
        here = [row for row in rows if row["total_steps"] == budget]
        reds = list(dict.fromkeys(row["red"] for row in here))
        groups = [[red] for red in reds] + ([reds] if len(reds) > 1 else [])
        titles = [group[0] if len(group) == 1 else "mean" for group in groups]
        columns = [f"{title} {mode}" for title in titles for mode in MODES]
        played = " or ".join(f"{number:,}" for number in sorted({row["episodes"] for row in here}))
        lines += ["", f"**{budget:,} steps**, {played} fresh games a score", ""]
        lines += [f"| method | seeds | {' | '.join(columns)} | s a run |", "|---|---|" + "---|" * (len(columns) + 1)]
        for method in dict.fromkeys(row["method"] for row in here):
            own = scores_of(here, RULES, method, reds)
            seconds = [row["seconds"] for row in here if row["method"] == method]
            cells = [cell(own, group, mode) for group in groups for mode in MODES]
            lines.append(f"| {method} | {len(own)} | {' | '.join(cells)} | {sum(seconds) / len(seconds):.0f} |")
    return "\n".join(lines) + "\n"


def cell(seeds: list[dict[str, Any]], reds: list[str], mode: str) -> str:
    """Mean over seeds of the mean over these attackers."""
    values = [sum(seed[red][mode] for red in reds) / len(reds) for seed in seeds]
    return str(mean_interval(values)) if values else "–"


if __name__ == "__main__":
    main()
