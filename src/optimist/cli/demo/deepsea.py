"""Train PPO and PPO+OPR on DeepSea-12, and compare how often the goal is learned after it was reached once."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.cli.arguments import print_result
from optimist.cli.demo.shared import parse_demo, plan_demo, show_comparison, train_demo
from optimist.report.formatting import counted

PRESETS = ["deepsea/ppo", "deepsea/opr"]
MEASURES = ["goal_seen", "solved", "solved/goal_seen"]
CORE_SECONDS = 60.0
"""Seconds of one core per million steps, measured on two cores."""


def main(argv: Sequence[str]) -> int:
    """Train all seeds of both methods and print the conversion table."""
    options = parse_demo(argv, "deepsea", __doc__ or "", seeds=16, total_steps=100_000)
    plan = plan_demo(options, presets=PRESETS, measures=MEASURES)
    title = f"DeepSea-12, {options.total_steps:,} steps"
    what = f"{title}, {counted(options.seeds, 'seed')} of {' and '.join(PRESETS)}; one of 4,096 paths leads to the goal"
    rows = train_demo(plan, options, what, CORE_SECONDS)
    show_comparison(plan, rows, f"{title}: solved/goal_seen = P(solved | goal reached)")
    print(f"Runs, metrics and table are in {options.out}; next: optimist evaluate {options.out}/runs/{rows[1]['run']}")
    if options.json:
        print_result({"out": str(options.out), "rows": rows}, as_json=True)
    return 0
