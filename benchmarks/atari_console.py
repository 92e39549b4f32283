"""Preprocessed frames per CPU second of the Atari console (`packages/a2600`) and of ale-py's vector environment.

    python benchmarks/atari_console.py --out results/speed/console.jsonl     # 49 games, one core, CPU time
    python benchmarks/atari_console.py Alien Pong --threads 16 --num-envs 64 --out x.jsonl   # wall-clock time

Both are alternated in one process with the same random actions. A row has the rates of each turn and the ratio of the
medians; ale-py has the better of 1 and `--num-envs` environments. Games that the file has are not measured again.
`--table` prints the table of a file.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

from a2600.bench import bench, summary
from a2600.core import load_core
from a2600.games import all_games, find_game


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", metavar="GAME", help="default: all 49")
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1, help="threads of both; 1 measures CPU time")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each game and emulator")
    parser.add_argument("--rounds", type=int, default=5, help="turns that this time is divided into")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="print the table of the file and measure nothing")
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    done = {row["game"] for row in rows}
    for name in [] if args.table else args.games or all_games():
        game = find_game(name, allow_inexact=True)
        if game.name in done:
            continue
        row = bench(game, num_envs=args.num_envs, threads=args.threads, seconds=args.seconds, rounds=args.rounds)
        rows.append(row | {"processor": processor(), "core": Path(load_core()._name).name})
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with args.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def table(rows: list[dict]) -> str:
    """Markdown: frames/s of both and the ratio, then the geometric mean."""
    lines = ["| game | a2600, frames/s | ale-py, frames/s | ratio |", "|---|---|---|---|"]
    lines += [f"| {row['game']} | {row['a2600']:,.0f} | {row['ale']:,.0f} | {row['ratio']:.2f} |" for row in rows]
    mean = summary(rows)
    span = f"{mean['least']:.2f} to {mean['most']:.2f}"
    return "\n".join([*lines, "", f"Geometric mean of {mean['games']} games: {mean['ratio']:.2f} ({span})."])


if __name__ == "__main__":
    main()
