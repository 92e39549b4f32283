"""Train PPO and PPO+OPR on DeepSea-12, and compare how often the goal is learned after it was reached once."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.cli.arguments import print_result
from optimist.cli.demo.shared import best_run, parse_demo, plan_demo, show_comparison, show_next, train_demo
from optimist.report.formatting import counted

PRESETS = ["deepsea/ppo", "deepsea/opr"]
MEASURES = ["goal_seen", "solved", "solved/goal_seen"]
BEST = ("solved", "goal_rate", "goal_seen")
"""What makes a run the best: an agent that reaches the goal."""


def main(argv: Sequence[str]) -> int:
    """Train all seeds of both methods and print the conversion table."""
    options = parse_demo(argv, "deepsea", __doc__ or "", seeds=16, total_steps=100_000)
    plan = plan_demo(options, presets=PRESETS, measures=MEASURES)
    title = f"DeepSea-12, {options.total_steps:,} steps"
    what = f"{title}, {counted(options.seeds, 'seed')} of {' and '.join(PRESETS)}; one of 4,096 paths leads to the goal"
    rows = train_demo(plan, options, what)
    show_comparison(plan, rows, f"{title}: solved/goal_seen = P(solved | goal reached)")
    print(f"Runs, metrics and table are in {options.out}")
    if any(row["metrics"]["goal_seen"] for row in rows):
        best = f"{options.out}/runs/{best_run(rows, BEST)}"
        print(f"The best run is {best}")
        show_next([f"watch {best}", f"evaluate {best}", f"report {options.out}/runs"])
    else:
        print("No run reached the goal, so there was nothing to keep.")
        show_next([f"demo deepsea --seeds {max(16, 2 * options.seeds)}", f"report {options.out}/runs"])
    if options.json:
        print_result({"out": str(options.out), "rows": rows}, as_json=True)
    return 0
