"""Train PPO, Cardiff and Cardiff+OPR on CAGE Challenge 2 against B_line, 30 steps per episode, and compare them.

A shortened version of the paper's comparison, which trains for 3,000,000 steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from optimist.cli.arguments import print_result
from optimist.cli.cage2 import load
from optimist.cli.demo.shared import best_run, parse_demo, plan_demo, show_comparison, show_next, train_demo
from optimist.report.charts import require_matplotlib
from optimist.report.formatting import counted
from optimist.report.identify import CAGE2
from optimist.report.rows import collect
from optimist.report.study import Study
from optimist.report.training_charts import cage_zoom
from optimist.stats.intervals import difference_interval
from optimist.sweep.results import markdown
from optimist.tracking.files import write_text

PLAIN, WITH_OPR = "cage2/cardiff", "cage2/cardiff-opr"
MEASURES = ["argmax_return", "sampled_return"]
FLAGS = {"red": "B_line", "rules": "final", "horizon": 30}
EPISODES = 1_000
TITLE = "CAGE 2, B_line-30, rules final"
PAPER_STEPS = 3_000_000
PUBLISHED = (
    ("Cardiff, published weights, rules competition (leaderboard)", "-3.47"),
    ("Cardiff, published weights, rules final (measured on the original, argmax)", "-5.03"),
    ("the paper: Cardiff, 3,000,000 steps (sampled curve, rules not stated)", "-6.2"),
    ("the paper: Cardiff+OPR, 3,000,000 steps (sampled curve, rules not stated)", "-4.2"),
)


def main(argv: Sequence[str]) -> int:
    """Train, score the final policies, and print and write the comparison."""
    options = parse_demo(argv, "cage2", __doc__ or "", seeds=3, total_steps=1_500_000)
    load("vector_env")  # raises before training if an extra is missing
    require_matplotlib()
    presets = ["cage2/ppo", PLAIN, WITH_OPR]
    plan = plan_demo(options, presets=presets, flags=FLAGS, score_episodes=EPISODES, measures=MEASURES)
    shortened = f"shortened: {options.total_steps:,} of the paper's {PAPER_STEPS:,} steps"
    what = f"{TITLE}; {counted(options.seeds, 'seed')} per method ({shortened})"
    rows = train_demo(plan, options, what)
    title = f"{TITLE}: mean return of the final policy, {EPISODES:,} new episodes per seed"
    show_comparison(plan, rows, title, caption=f"± 95 % over seeds; {shortened}")
    notes = [f"{name}: {score}\n" for name, score in PUBLISHED] + [verdict(rows)]
    print("".join(notes), end="")
    out = options.out
    write_text(out / "table.md", f"{TITLE}; {shortened}.\n\n{markdown(rows, plan.file)}\n" + "\n".join(notes))
    chart = cage_zoom(Study(*collect([out / "runs"])).family(CAGE2))
    if chart is not None:
        replace(chart, name="curves", title=f"{TITLE} ({shortened})").save(out)
    best = f"{out}/runs/{best_run(rows, MEASURES)}"
    print(f"Runs, table and curves are in {out}; the best run is {best}")
    show_next([f"watch {best} --text", f"score {best}", f"report {out}/runs"])
    if options.json:
        print_result({"out": str(out), "rows": rows}, as_json=True)
    return 0


def verdict(rows: list[dict[str, Any]]) -> str:
    """A note if the 95 % interval of OPR's difference includes 0, else nothing."""
    undecided = []
    for measure in MEASURES:
        plain, with_opr = (
            [row["metrics"][measure] for row in rows if row["method"] == method] for method in (PLAIN, WITH_OPR)
        )
        difference = difference_interval(with_opr, plain)
        if not abs(difference.mean) > difference.half_width:
            undecided.append(measure)
    if not undecided:
        return ""
    return (
        f"With {counted(len(plain), 'short run')} of each, {WITH_OPR} and {PLAIN} do not differ significantly "
        f"({', '.join(undecided)}). `optimist demo deepsea` shows an effect of OPR.\n"
    )
