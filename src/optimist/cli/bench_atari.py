"""`optimist bench atari`: the emulator alone beside PPO and PPO with OPR, in one run."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from optimist.cores import available_cores
from optimist.errors import ConfigError

if TYPE_CHECKING:
    from optimist.envs.atari.bench import Division

SIZES = (8, 10, 64, 128)
"""Games whose emulators are measured alone."""
TRAINED = ("atari/ppo", "atari/opr", "atari/paper", "atari/fast-ppo", "atari/fast")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `optimist bench atari`."""
    parser.add_argument("--game", default="Alien", help="one of the games `optimist games` lists (default Alien)")
    parser.add_argument("--device", default=None, help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time per figure, beside making games (default 5)")
    parser.add_argument("--presets", nargs="*", default=list(TRAINED), help="presets to train; none for none")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def atari(arguments: argparse.Namespace) -> int:
    """Measures and prints; always 0."""
    check(arguments)
    result = measure(arguments.game, arguments.device, arguments.seconds, arguments.presets)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_figures(result)
    return 0


def check(arguments: argparse.Namespace) -> None:
    """Raises for what would only come to light after minutes of measuring."""
    from optimist.envs.atari.emulator import find_rom
    from optimist.presets import get_preset
    from optimist.training.build import usable_device

    if not arguments.seconds > 0:
        raise ConfigError(f"--seconds must be above 0, got {arguments.seconds}")
    if arguments.device is not None:
        usable_device(arguments.device)
    find_rom(arguments.game)
    for name in arguments.presets:
        if not name.startswith("atari/"):
            get_preset(name)  # a wrong name has an error of its own
            raise ConfigError(f"--presets takes presets of Atari, and {name} is none")
        get_preset(name)


def measure(game: str, device: str | None, seconds: float, presets: list[str]) -> dict[str, Any]:
    """All figures, steps per second; ratios to the emulator at a preset's own size (its best, and in threads of one
    process, as elsewhere), and at its best of all. Each is told on stderr as it comes."""
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    divisions = _divisions()
    _say(f"{len(divisions) + len(presets)} figures of {seconds:g} s each; making games and warming up may take longer")
    emulator = _measure_emulator(game, divisions, seconds)
    training = _measure_training(game, device, divisions, emulator, seconds, presets)
    about = torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU"
    return {
        "game": game,
        "device": about,
        "cores": available_cores(),
        "seconds_per_figure": seconds,
        "emulator": emulator,
        "training": training,
        "opr_over_ppo": {
            name: training[with_opr]["steps_per_second"] / training[plain]["steps_per_second"]
            for name, with_opr, plain in (
                ("8 games", "atari/opr", "atari/ppo"),
                ("fast", "atari/fast", "atari/fast-ppo"),
            )
            if {with_opr, plain} <= set(training)
        },
    }


def _measure_emulator(game: str, divisions: list[Division], seconds: float) -> dict[str, float]:
    from optimist.envs.atari.bench import emulator_speed

    found = {}
    for division in divisions:
        _say(f"measuring {game}, emulator alone, {division.name} ... ", end="")
        found[division.name] = emulator_speed(game, division, seconds)
        _say(f"{found[division.name]:,.0f} steps/s")
    return found


def _measure_training(
    game: str,
    device: str,
    divisions: list[Division],
    emulator: dict[str, float],
    seconds: float,
    presets: list[str],
) -> dict[str, Any]:
    from optimist.presets import get_preset
    from optimist.training.speed import sustained_speed

    found: dict[str, Any] = {}
    for name in presets:
        config = replace(get_preset(name)(game=game), device=device)
        _say(f"measuring {game}, training {name} ... ", end="")
        figures = sustained_speed(config, seconds)
        _say(f"{figures['steps_per_second']:,.0f} steps/s")
        size = config.env.num_envs
        backend = config.env.kwargs.get("backend", "ale")
        alone = [division for division in divisions if (division.games, division.backend) == (size, backend)]
        in_threads = [division for division in alone if division.workers == "threads"]
        for how, measured in (("at_this_size", alone), ("in_threads", in_threads)):
            if measured:
                most = max(emulator[division.name] for division in measured)
                figures[f"share_of_emulator_{how}"] = figures["steps_per_second"] / most
        figures["share_of_emulator_at_its_best"] = figures["steps_per_second"] / max(emulator.values())
        found[name] = {"games": size, **figures}
    return found


def _divisions() -> list[Division]:
    """What is measured of the emulators alone."""
    from optimist.envs.atari.apart import CAN_SHARE
    from optimist.envs.atari.bench import Division
    from optimist.envs.atari.pool import is_installed

    found = [Division(games, lanes=1) for games in SIZES if games <= 16]  # all wait for the slowest, as elsewhere
    found += [Division(games) for games in SIZES if games <= 64]  # more take half a minute to make
    if CAN_SHARE:
        found += [Division(games, workers="processes") for games in SIZES]
    if is_installed():
        found += [Division(games, lanes=1, backend="envpool") for games in SIZES if games <= 16]
        found += [Division(games, backend="envpool", ready_first=True) for games in SIZES if games > 16]
    return found


def print_figures(result: dict[str, Any]) -> None:
    """Tables for people."""
    console = Console()
    table = Table(title=f"{result['game']}, emulator alone, {result['cores']} cores: steps per second")
    table.add_column("games")
    table.add_column("steps/s", justify="right")
    for name, speed in result["emulator"].items():
        table.add_row(name, f"{speed:,.0f}")
    console.print(table)
    if not result["training"]:
        return
    _print_training(result, console)
    for name, ratio in result["opr_over_ppo"].items():
        console.print(f"OPR over PPO, {name}: {ratio:.3f}")


def _print_training(result: dict[str, Any], console: Console) -> None:
    """A row a preset; on a GPU with the memory it took."""
    on_gpu = any("gpu_bytes" in figures for figures in result["training"].values())
    meanings = (
        "same, threads, best: share of the emulator with as many games, with these in threads, and at its best; "
        "start: seconds to the end of the first update" + "; GiB: of the GPU's memory" * on_gpu
    )
    table = Table(title=f"Training on {result['device']}", caption=meanings)
    table.add_column("preset", no_wrap=True)
    for name in ("games", "steps/s", "same", "threads", "best", "start", *["GiB"] * on_gpu):  # 80 columns are full
        table.add_column(name, justify="right", no_wrap=True)
    for name, figures in result["training"].items():
        same, threads = (figures.get(f"share_of_emulator_{how}") for how in ("at_this_size", "in_threads"))
        table.add_row(
            name,
            str(figures["games"]),
            f"{figures['steps_per_second']:,.0f}",
            "–" if same is None else f"{same:.0%}",
            "–" if threads is None else f"{threads:.0%}",
            f"{figures['share_of_emulator_at_its_best']:.0%}",
            f"{figures['start_up_seconds']:.1f}",
            *([f"{figures['gpu_bytes'] / 2**30:.1f}"] if on_gpu else []),
        )
    console.print(table)


def _say(what: str, end: str = "\n") -> None:
    print(what, end=end, file=sys.stderr, flush=True)
