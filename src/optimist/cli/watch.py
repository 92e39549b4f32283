"""`optimist watch RUN`: a GIF or MP4 of the agent, or of an episode in its good-episode memory; text where need be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from ctypes.util import find_library
from pathlib import Path

from optimist.cli.arguments import Parser
from optimist.errors import ConfigError


def main(argv: Sequence[str]) -> int:
    """Plays or recalls one episode and shows it."""
    parser = Parser(prog="optimist watch", description="See what a run's agent does, or what its memory holds.")
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="run folder; a run in progress shows its newest checkpoint"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="film to write, .gif or .mp4 (default: RUN/watch.gif)")
    parser.add_argument("--episode", type=int, metavar="N", help="N-th best episode of the memory, instead of playing")
    parser.add_argument("--greedy", action="store_true", help="take the most likely action; without, sample it")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episode (default: 0)")
    parser.add_argument("--steps", type=int, default=2_000, metavar="N", help="stop after N steps (default: 2,000)")
    parser.add_argument("--text", action="store_true", help="print the steps, also where a film could be written")
    options = parser.parse_all(list(argv))
    if options.steps < 1 or options.seed < 0:
        raise ConfigError(f"--steps must be at least 1 and --seed 0, got {options.steps}, {options.seed}")

    from optimist.report.film import check_kind, write_film
    from optimist.training.watch import film_agent, film_memory

    if options.out is not None:
        check_kind(options.out)
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and find_library("EGL"):
        os.environ.setdefault("MUJOCO_GL", "egl")  # draws without a screen
    if options.episode is None:
        film = film_agent(options.run, seed=options.seed, greedy=options.greedy, max_steps=options.steps)
    else:
        if options.greedy or options.seed:
            raise ConfigError("--episode shows what was played, so --greedy and --seed have no part in it")
        film = film_memory(options.run, options.episode, max_steps=options.steps)
    if options.out is not None and not film.pictures:
        lacking = "its environment has" if options.episode is None else "the steps that its memory keeps have"
        raise ConfigError(f"{options.run} cannot be drawn, {lacking} no pictures; without --out it is text")
    if options.text or not film.pictures:
        print("\n".join(film.lines))
    print(film.title)
    if film.pictures and not options.text:
        name = "watch.gif" if options.episode is None else f"memory-{options.episode}.gif"
        out = options.out or options.run / name
        write_film(film.pictures, out, film.fps)
        print(f"written to {out}")
    return 0
