"""Concurrent runs on one machine with a timeline, as in results/speed.

    python benchmarks/side_by_side.py --presets atari/fast-ppo atari/fast --game Pong --seconds 1500 --out runs/pong \
        --keep results/atari/pong --flags "--device cuda --evaluate-every 1000000 --evaluate-in background"

Runs that are unfinished after so many seconds save and stop; the same command resumes them and leaves finished runs
alone. timeline.jsonl has step and score every few seconds, segments.jsonl one line for each process of a run: command,
seconds and the cores it used. `--keep` copies both, and of each run the config, the summary, every n-th line of its
metrics, those with an evaluation, and the last; returns.jsonl has a line for every update, with the returns of the
policy and of the memory. Exit code 1 if a run failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INTERVAL = 2.0
"""Seconds between two entries of the timeline."""
SHOWN = {"step": "step", "rollout/raw_return": "raw_return", "rollout/episodes": "episodes"}
RETURNS = SHOWN | {
    "opr/admitted": "admitted",
    "opr/memory_episodes": "memory_episodes",
    "opr/memory_return": "memory_return",
}
"""What is kept of every update."""
TAIL = 16_384
"""Bytes that hold the last line of metrics."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", required=True)
    parser.add_argument("--game", required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="then the runs save and stop")
    parser.add_argument("--flags", type=shlex.split, default=[], help='of every run, as one word: --flags="--seed 1"')
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="a folder for copies of the results")
    parser.add_argument("--every", type=int, default=4, help="lines of metrics of which one is kept (default 4)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    names = {preset: preset.rpartition("/")[2] for preset in args.presets}
    flags = ["--game", args.game, *args.flags]
    sides = [Side.start(args.out / name, preset, flags) for preset, name in names.items() if not done(args.out / name)]
    failed = watch(sides, args.out, time.monotonic() + args.seconds)
    if args.keep:
        started = [name for name in names.values() if (args.out / name / "metrics.jsonl").exists()]
        keep(args.out, started, args.keep, args.every)
    return int(failed)


def done(run: Path) -> bool:
    """Whether the run is finished."""
    return (run / "summary.json").exists()


@dataclass
class Side:
    """The process of one run."""

    run: Path
    process: subprocess.Popen[bytes]
    command: str
    started: float
    asked_to_stop: bool = False
    last: dict[str, Any] | None = None

    @classmethod
    def start(cls, run: Path, preset: str, flags: list[str]) -> Side:
        """Start the run, or resume it."""
        words = ["train", preset, "--out", str(run), "--save-when-stopped", *flags]
        if run.exists():
            words = ["resume", str(run)]
            print(f"{run} is resumed with its config.toml; --flags have no effect", file=sys.stderr)
        command = ["optimist", *words, "--quiet"]
        process = subprocess.Popen([sys.executable, "-m", *command])
        return cls(run, process, shlex.join(command), time.monotonic())

    @property
    def seconds(self) -> float:
        """Seconds since the process started."""
        return round(time.monotonic() - self.started, 1)

    def new_metrics(self) -> dict[str, Any] | None:
        """Step and score of the run, if they have changed."""
        now = last_line(self.run / "metrics.jsonl")
        if now is None or now == self.last:
            return None
        self.last = now
        return {"run": self.run.name, "seconds": self.seconds, **shown(now)}

    def ended(self) -> dict[str, Any] | None:
        """The entry of segments.jsonl, once the process has ended."""
        pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        cores = round((used.ru_utime + used.ru_stime) / self.seconds, 1)
        last = shown(last_line(self.run / "metrics.jsonl") or {})
        entry = {
            "run": self.run.name,
            "command": self.command,
            "exit": self.process.returncode,
            "finished": done(self.run),
        }
        return {**entry, "seconds": self.seconds, "cores": cores, **last}


def watch(sides: list[Side], out: Path, deadline: float) -> bool:
    """Record the runs until all have ended; whether one of them failed."""
    failed = False
    while sides:
        time.sleep(INTERVAL)
        for side in list(sides):
            write(out / "timeline.jsonl", side.new_metrics())
            end = side.ended()
            if end is not None:
                write(out / "segments.jsonl", end)
                print(json.dumps(end), flush=True)
                sides.remove(side)
                failed |= not end["finished"] and not side.asked_to_stop
            elif (
                time.monotonic() > deadline and side.last and not side.asked_to_stop
            ):  # before its first update there is nothing to save
                side.process.send_signal(signal.SIGINT)
                side.asked_to_stop = True
    return failed


def write(file: Path, row: dict[str, Any] | None) -> None:
    """Append the row, if there is one."""
    if row is not None:
        with file.open("a") as lines:
            lines.write(json.dumps(row) + "\n")


def shown(line: dict[str, Any]) -> dict[str, Any]:
    """Step and score of a line of metrics."""
    return {name: line[metric] for metric, name in SHOWN.items() if metric in line}


def returns_of(line: dict[str, Any]) -> dict[str, float]:
    """The entry of returns.jsonl for a line of metrics, rounded to three decimals."""
    return {name: round(line[metric], 3) for metric, name in RETURNS.items() if line.get(metric) is not None}


def last_line(file: Path) -> dict[str, Any] | None:
    """The last complete line of a file that is being written."""
    if not file.exists():
        return None
    with file.open("rb") as lines:
        lines.seek(max(0, lines.seek(0, os.SEEK_END) - TAIL))
        whole = lines.read().split(b"\n")[:-1]
    return json.loads(whole[-1]) if whole else None


def keep(out: Path, names: list[str], kept: Path, every: int) -> None:
    """Copy the files and lines of each run that are worth keeping."""
    for name in names:
        (kept / name).mkdir(parents=True, exist_ok=True)
        for file in ("config.toml", "summary.json"):
            if (out / name / file).exists():
                (kept / name / file).write_text((out / name / file).read_text())
        lines = (out / name / "metrics.jsonl").read_text().splitlines()
        wanted = [
            line
            for number, line in enumerate(lines)
            if number % every == 0 or number == len(lines) - 1 or '"evaluation/mean_return"' in line
        ]
        (kept / name / "metrics.jsonl").write_text("".join(line + "\n" for line in wanted))
        returns = [returns_of(json.loads(line)) for line in lines]
        (kept / name / "returns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in returns))
    for file in ("timeline.jsonl", "segments.jsonl"):
        if (out / file).exists():
            (kept / file).write_text((out / file).read_text())


if __name__ == "__main__":
    sys.exit(main())
