"""`optimist watch RUN`: a GIF or MP4 of the agent or of an episode in its memory; text where nothing can be drawn."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from ctypes.util import find_library
from pathlib import Path
from typing import TYPE_CHECKING

from optimist.cli.arguments import Parser, add_env_flag
from optimist.errors import ConfigError

if TYPE_CHECKING:
    from optimist.training.watch import Film


def main(argv: Sequence[str]) -> int:
    """Show one episode of the agent, or one of its memory."""
    parser = Parser(
        prog="optimist watch", description="Show an episode of a run's agent, or one of its good-episode memory."
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="run folder; of a run in progress, its newest checkpoint is shown"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="film to write, .gif or .mp4 (default: RUN/watch.gif)")
    parser.add_argument(
        "--episode", type=int, metavar="N", help="show the N-th best episode of the memory instead of playing one"
    )
    parser.add_argument("--greedy", action="store_true", help="take the most likely action instead of sampling")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episode (default: 0)")
    parser.add_argument("--steps", type=int, default=2_000, metavar="N", help="stop after N steps (default: 2,000)")
    add_env_flag(parser)
    parser.add_argument("--text", action="store_true", help="print the steps and write no film")
    options = parser.parse_all(list(argv))
    if options.steps < 1 or options.seed < 0:
        raise ConfigError(f"--steps must be at least 1 and --seed 0, got {options.steps}, {options.seed}")

    if options.episode is not None and (options.greedy or options.seed):
        raise ConfigError("--episode shows a stored episode: leave out --greedy and --seed, which only a new one uses")
    if options.out is not None:
        check_target(options.out)

    film = _film(options)
    if options.out is not None and not film.pictures:
        source = "its environment has" if options.episode is None else "its memory stores"
        raise ConfigError(f"{options.run} cannot be drawn: {source} no pictures; leave out --out to see it as text")
    if options.text or not film.pictures:
        print("\n".join(film.lines))
    if film.grid:
        print(film.grid)
    print(film.title)
    if film.pictures and not options.text:
        name = "watch.gif" if options.episode is None else f"memory-{options.episode}.gif"
        _write(film, options.out or options.run / name)
    return 0


def check_target(out: Path) -> None:
    """Raise if no film can be written to `out`; loads nothing heavy and creates nothing."""
    from optimist.training.video import check_kind

    check_kind(out)
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if out.is_dir():
        reason = "it is a folder"
    elif there != out and not there.is_dir():
        reason = f"{there} is not a folder"
    elif not os.access(there, os.W_OK):
        reason = f"{there} is not writable"
    else:
        return
    raise ConfigError(f"cannot write {out}: {reason}; choose another --out")


def _film(options: Namespace) -> Film:
    from optimist.training.watch import film_agent, film_memory

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and find_library("EGL"):
        os.environ.setdefault("MUJOCO_GL", "egl")  # renders without a screen
    if options.episode is not None:
        return film_memory(options.run, options.episode, max_steps=options.steps, env=options.env)
    return film_agent(
        options.run,
        seed=options.seed,
        greedy=options.greedy,
        max_steps=options.steps,
        env=options.env,
        progress=True,
    )


def _write(film: Film, out: Path) -> None:
    from optimist.training.video import write_film

    check_target(out)
    print(f"writing {len(film.pictures):,} pictures ...", file=sys.stderr, flush=True)
    write_film(film.pictures, out, film.fps)
    print(f"written to {out}")
