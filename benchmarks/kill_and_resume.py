"""Kill a run at random moments, resume it, and compare it with one that was never interrupted.

    python benchmarks/kill_and_resume.py --moments 20 --out results/resume

Each run has its own process, killed at a random moment of its duration (SIGKILL, or each of `--signals` in turn), and
once more while it resumes with `--twice`. The last policy and the last checkpoint (weights, optimizer, generators,
memory, windows) are compared byte for byte, and metrics and summary without times.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported; child processes are forked

import torch._dynamo  # noqa: F401  torch's optimizers import it, which would take most of a short run

from optimist.config import RunConfig
from optimist.core.config import OPRConfig
from optimist.presets import get_preset
from optimist.tracking.writers import read_metrics
from optimist.training.resume import resume
from optimist.training.trainer import train

TASKS: dict[str, RunConfig] = {
    "deepsea": dataclasses.replace(  # environments save their state
        get_preset("deepsea/opr")(size=5), total_steps=20_480, checkpoint_every=2_048, tensorboard=False
    ),
    "cartpole": dataclasses.replace(  # environments restart at each checkpoint, in both runs
        get_preset("gym/opr")(env="CartPole-v1"), total_steps=8_192, checkpoint_every=1_024, tensorboard=False
    ),
}
ARRAYS = ("tensors.safetensors", "arrays.safetensors")


@dataclass(frozen=True)
class Outcome:
    """One run that was killed and resumed."""

    task: str
    signal: str
    moment: float  # seconds after its start
    reached: int  # steps logged when it was killed
    resumed_from: int | None  # steps of the checkpoint it resumed from; None: from the start
    policy: bool  # final.safetensors, byte for byte
    checkpoint: bool  # the last checkpoint, byte for byte
    metrics: bool  # metrics.jsonl without times
    summary: bool

    @property
    def equal(self) -> bool:
        """Whether everything equals the run that was never interrupted."""
        return self.policy and self.checkpoint and self.metrics and self.summary


def main() -> int:
    args = parse_arguments()
    started, draw = time.perf_counter(), random.Random(args.seed)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        for task in args.tasks:
            config = dataclasses.replace(TASKS[task], opr=dataclasses.replace(OPRConfig(), **json.loads(args.opr)))
            whole = Path(folder) / task
            seconds = run_to_end(lambda c=config, p=whole: train(c, p, progress=False))
            for number in range(args.moments):
                name = args.signals[number % len(args.signals)]
                path = Path(folder) / f"{task}-{number}"
                outcomes.append(try_once(task, config, whole, path, name, seconds, draw, twice=args.twice))
                print(row(outcomes[-1]), file=sys.stderr, flush=True)
    table = render(outcomes, time.perf_counter() - started)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "table.md").write_text(table)
        lines = [json.dumps(dataclasses.asdict(outcome)) + "\n" for outcome in outcomes]
        (args.out / "moments.jsonl").write_text("".join(lines))
    print(table)
    return 0 if all(outcome.equal for outcome in outcomes) else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--moments", type=int, default=20, help="for each task")
    parser.add_argument("--signals", nargs="+", choices=["SIGKILL", "SIGTERM", "SIGINT"], default=["SIGKILL"])
    parser.add_argument("--twice", action="store_true", help="kill it once more while it resumes")
    parser.add_argument("--opr", default="{}", help='OPR settings as JSON, for example \'{"reference": "cloned"}\'')
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, help="folder for table.md and moments.jsonl")
    return parser.parse_args()


def try_once(
    task: str,
    config: RunConfig,
    whole: Path,
    path: Path,
    name: str,
    seconds: float,
    draw: random.Random,
    *,
    twice: bool,
) -> Outcome:
    """Start, stop at a random moment, resume to the end, compare. Repeat if the run ends before the moment."""
    number = getattr(signal, name)
    while True:
        moment = draw.uniform(0.0, seconds)
        if stop_after(moment, number, lambda: train(config, path, progress=False)):
            break
        shutil.rmtree(path)
    reached, resumed_from = last_step(path), last_checkpoint(path)
    if twice:
        stop_after(draw.uniform(0.0, seconds / 2), number, lambda: resume_or_train(config, path))
    run_to_end(lambda: resume_or_train(config, path))
    return Outcome(task, name, moment, reached, resumed_from, **compare(path, whole))


def resume_or_train(config: RunConfig, path: Path) -> None:
    if (path / "config.toml").exists():
        resume(path, progress=False)
    else:  # killed before the run had a config
        shutil.rmtree(path, ignore_errors=True)
        train(config, path, progress=False)


def compare(path: Path, whole: Path) -> dict[str, bool]:
    newest = f"checkpoints/step-{last_checkpoint(whole)}"
    return {
        "policy": same(path, whole, "final.safetensors"),
        "checkpoint": all(same(path, whole, f"{newest}/{name}") for name in ARRAYS)
        and saved_state(path / newest) == saved_state(whole / newest),
        "metrics": lines_of(path) == lines_of(whole),
        "summary": summary_of(path) == summary_of(whole),
    }


def same(path: Path, whole: Path, name: str) -> bool:
    return (path / name).read_bytes() == (whole / name).read_bytes()


def saved_state(checkpoint: Path) -> Any:
    """state.json without the size of metrics.jsonl, which depends on the number of digits of times."""
    state = json.loads((checkpoint / "state.json").read_text())
    del state["metrics_bytes"]
    return state


def without_time(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if not name.startswith("time/")}


def lines_of(path: Path) -> list[str]:
    return [json.dumps(without_time(line)) for line in read_metrics(path / "metrics.jsonl")]


def summary_of(path: Path) -> Any:
    return without_time(json.loads((path / "summary.json").read_text())) | {"run": ""}


def last_step(path: Path) -> int:
    lines = read_metrics(path / "metrics.jsonl") if (path / "metrics.jsonl").exists() else []
    return int(lines[-1]["step"]) if lines else 0


def last_checkpoint(path: Path) -> int | None:
    steps = [int(folder.name.removeprefix("step-")) for folder in (path / "checkpoints").glob("step-*")]
    return max(steps, default=None)


def in_child(work: Callable[[], object]) -> int:
    """Process id of a forked child that calls `work` and exits; torch is already imported in it."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except KeyboardInterrupt:
        code = 130
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run_to_end(work: Callable[[], object]) -> float:
    """Call `work` in a child process; seconds it took."""
    started = time.perf_counter()
    _, status = os.waitpid(in_child(work), 0)
    if status != 0:
        raise SystemExit(f"a run without a signal ended with exit code {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - started


def stop_after(seconds: float, number: int, work: Callable[[], object]) -> bool:
    """Call `work` in a child process and send it a signal; whether it had not ended before."""
    child = in_child(work)
    time.sleep(seconds)
    os.kill(child, number)  # the id of an ended child is not reused before waitpid
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) != 0


def render(outcomes: list[Outcome], seconds: float) -> str:
    equal = sum(outcome.equal for outcome in outcomes)
    lines = [
        f"Command: `python {' '.join(sys.argv)}`",
        "",
        f"{equal} of {len(outcomes)} runs ended as if they had never been interrupted; {seconds:.0f} s in all. "
        "`reached`: steps logged when the signal came; `resumed from`: steps of the checkpoint (– for none yet).",
        "",
        "| task | signal | moment (s) | reached | resumed from | policy | checkpoint | metrics | summary |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(row, outcomes)]) + "\n"


def row(outcome: Outcome) -> str:
    resumed = "–" if outcome.resumed_from is None else f"{outcome.resumed_from:,}"
    equal = [
        "equal" if same else "DIFFERENT"
        for same in (outcome.policy, outcome.checkpoint, outcome.metrics, outcome.summary)
    ]
    cells = [outcome.task, outcome.signal, f"{outcome.moment:.2f}", f"{outcome.reached:,}", resumed, *equal]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    raise SystemExit(main())
