"""Returns of the CAGE 2 simulator and of the original: results/cage2-simulator/reference_returns.{json,md}.

python packages/cage2/benchmarks/reference_returns.py [--episodes 20000] [--seed 0] [--out results/cage2-simulator]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

import cage2
from cage2.reference import compare_returns, reference_cells, summary

SCRIPT = "packages/cage2/benchmarks/reference_returns.py"
COLUMNS = ("rules", "table", "green", "blue", "red", "horizon")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/cage2-simulator"))
    arguments = parser.parse_args()

    comparisons = compare_returns(
        reference_cells(), arguments.episodes, arguments.seed, lambda what: print(what, file=sys.stderr)
    )
    result = {
        "command": f"python {SCRIPT} --episodes {arguments.episodes} --seed {arguments.seed}",
        "version": cage2.__version__,
        "python": platform.python_version(),
        **summary(comparisons),
        "rows": [comparison.as_dict for comparison in comparisons],
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "reference_returns.json").write_text(json.dumps(result, indent=1) + "\n")
    (arguments.out / "reference_returns.md").write_text(as_markdown(result))
    print({key: value for key, value in result.items() if key != "rows"})
    return 1 if result["disagreements"] else 0


def count(result: dict[str, Any], verdict: str) -> int:
    return sum(row["tost"] == verdict for row in result["rows"])


def as_markdown(result: dict[str, Any]) -> str:
    lines = [
        "# CAGE 2: returns of the simulator and of the original",
        "",
        f"`{result['command']}` (cage2 {result['version']}). {result['cells']} cells, "
        f"{result['disagreements']} disagreements (z-test, Holm's correction, {result['significance']:.0%} over all; "
        f"equality in the {result['cells_of_equality']} cells where the original never varies). "
        f"TOST at 5 %, margin 10 % of the original's mean: {count(result, 'equivalent')} equivalent, "
        f"{count(result, 'undecided')} undecided (standard error above a third of the margin), "
        f"{count(result, 'not shown')} not shown. rms z {result['z_rms']}, largest |z| {result['z_max']}. "
        "Returns at 30 and 50 steps are prefixes of the same games.",
        "",
        "| rules | table | green | blue | red | steps | original: mean | std | episodes | ours: mean | std | z "
        "| TOST |",
        "|---|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in result["rows"]:
        z = ("equal" if row["agrees"] else "**differs**") if row["z"] is None else f"{row['z']:+.2f}"
        if not row["agrees"] and row["z"] is not None:
            z = f"**{z}**"
        cells = [str(row[name]) for name in COLUMNS]
        cells += [f"{row['original_mean']:.3f}", f"{row['original_std']:.3f}", str(row["original_n"])]
        cells += [f"{row['mean']:.3f}", f"{row['std']:.3f}", z, row["tost"]]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
