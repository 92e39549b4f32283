"""Record golden.json again: `python -m tests.golden.record [NAME…]`, all runs or the named ones.

A recording is a change of behaviour: the commit that makes one says why. Equality is exact on the kind of processor
that recorded a run, which each run names. On another one, record the code before a change, and compare the code after
it:

    GOLDEN=before.json python -m tests.golden.record      # in a work tree of the code before
    GOLDEN=before.json python -m pytest tests/golden      # in the one after
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.golden.runs import GOLDEN, RUNS, machine, play


def main(names: list[str]) -> None:
    """Play and write."""
    known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {"runs": {}}
    runs = known["runs"]
    for run in RUNS:
        if not names or run.name in names:
            with tempfile.TemporaryDirectory() as folder:
                runs[run.name] = {"machine": machine()} | play(run, Path(folder) / "run")
            print(run.name, runs[run.name]["weights"], flush=True)
    ordered = {run.name: runs[run.name] for run in RUNS if run.name in runs}
    text = json.dumps({"runs": ordered}, indent=1)
    GOLDEN.write_text(_compact(text) + "\n")


def _compact(text: str) -> str:
    """One line for each list of numbers."""
    lines, inside = [], ""
    for line in text.splitlines():
        if inside:
            inside += line.strip() + " "
            if line.strip().startswith("]"):
                lines.append(inside.strip().replace("[ ", "[").replace(" ]", "]"))
                inside = ""
        elif line.endswith("["):
            inside = line
        else:
            lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
