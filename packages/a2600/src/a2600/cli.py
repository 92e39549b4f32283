"""The command line: `a2600 games | verify | bench`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from a2600.bench import bench, summary
from a2600.errors import A2600Error
from a2600.games import Game, all_games, find_game
from a2600.verify import ALE_VERSION, append_row, import_ale, read_rows, table, verify


def main(argv: list[str] | None = None) -> int:
    """Run a command; errors are one line."""
    parser = argparse.ArgumentParser(prog="a2600", description="An exact, fast Atari 2600 console for training agents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    games = commands.add_parser("games", help="list the games")
    games.set_defaults(run=_games)
    check = commands.add_parser("verify", help="compare every frame with ale-py")
    check.add_argument("--frames", type=int, default=20_000, help="frames of play for each game and seed")
    check.add_argument("--seed", type=int, nargs="+", default=[1], help="seeds of the play")
    check.add_argument(
        "--out", type=Path, help="a JSONL file: one row for each game and seed; rows in it are not run again"
    )
    check.add_argument("--all-actions", action="store_true", help="use all 18 actions instead of the game's own")
    check.set_defaults(run=_verify)
    speed = commands.add_parser("bench", help="measure speed against ale-py, alternated")
    speed.add_argument("--num-envs", type=int, default=8)
    speed.add_argument("--threads", type=int, default=1, help="threads of both; 1 measures CPU time")
    speed.add_argument("--seconds", type=float, default=2.0, help="time for each game and emulator")
    speed.add_argument("--rounds", type=int, default=3, help="turns that this time is divided into")
    speed.add_argument("--json", action="store_true", help="print one line of JSON; `ratio` is the geometric mean")
    speed.set_defaults(run=_bench)
    for command in (check, speed):
        command.add_argument("games", nargs="*", metavar="GAME")
        command.add_argument("--all", action="store_true", help="all 49 games")
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except (A2600Error, ImportError) as error:
        print(f"a2600: {error}", file=sys.stderr)
        return 2


def _chosen(args: argparse.Namespace) -> list[Game]:
    if args.all == bool(args.games):
        raise A2600Error("name the games or pass --all, not both; `a2600 games` lists them")
    return [find_game(name, allow_inexact=True) for name in args.games or all_games()]


def _at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise A2600Error(f"--{name} must be at least {least}, got {value}")


def _games(args: argparse.Namespace) -> int:
    for game in all_games().values():
        print(f"{game.name:18} {game.kind}  {len(game.actions):2} actions  {game.inexact or 'exact'}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    games = _chosen(args)
    _at_least("frames", args.frames, 1)
    _at_least("seed", min(args.seed), 0)
    if (version := import_ale().__version__) != ALE_VERSION:
        print(f"a2600: the reference is ale-py {ALE_VERSION}; this is {version}", file=sys.stderr)
    done = read_rows(args.out)
    reports = []
    for game in games:
        for seed in args.seed:
            key = (game.name, seed, args.frames, args.all_actions)
            if (report := done.get(key)) is None:
                report = verify(game, args.frames, seed, all_actions=args.all_actions)
                append_row(args.out, report)
            reports.append(report)
            print(report.line(), file=sys.stderr if args.all else sys.stdout, flush=True)
    if args.all:
        print(table(reports))
    return int(not all(report.exact for report in reports))


def _bench(args: argparse.Namespace) -> int:
    games = _chosen(args)
    for name, least in (("num-envs", 1), ("threads", 1), ("seconds", 0.01), ("rounds", 1)):
        _at_least(name, getattr(args, name.replace("-", "_")), least)
    rows = []
    for game in games:
        rows.append(bench(game, num_envs=args.num_envs, threads=args.threads, seconds=args.seconds, rounds=args.rounds))
        if not args.json:
            row = rows[-1]
            print(
                f"{row['game']:18} {row['a2600']:9,.0f} frames/s, ale-py {row['ale']:8,.0f}: {row['ratio']:5.2f} x",
                flush=True,
            )
    result = summary(rows)
    if args.json:
        print(json.dumps(result))
    else:
        span = f"({result['least']:.2f} to {result['most']:.2f})"
        print(f"{result['games']} games: geometric mean {result['ratio']:.2f} x {span}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
