"""`optimist bench atari`: the emulators alone next to PPO and PPO with OPR, in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optimist.cli.arguments import show_table
from optimist.cores import available_cores
from optimist.errors import ConfigError

if TYPE_CHECKING:
    from optimist.envs.atari.bench import EmulatorSetup

TRAINED = ("atari/ppo", "atari/opr", "atari/paper", "atari/fast-ppo", "atari/fast")
RATIOS = (("8 envs", "atari/opr", "atari/ppo"), ("fast", "atari/fast", "atari/fast-ppo"))
"""Presets with OPR and without that are compared."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `optimist bench atari`."""
    parser.add_argument("--game", default="Alien", help="one of the games `optimist games` lists (default Alien)")
    parser.add_argument("--device", default=None, help="cpu or cuda (default: cuda if there is one)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time per measurement after its start (default 5)")
    parser.add_argument("--presets", nargs="*", default=list(TRAINED), help="presets to train; no value for none")
    parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")


def atari(arguments: argparse.Namespace) -> int:
    """Measure and print; the exit code is always 0."""
    check(arguments)
    result = measure(arguments.game, arguments.device, arguments.seconds, arguments.presets)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_figures(result)
    return 0


def check(arguments: argparse.Namespace) -> None:
    """Raise an error for a wrong argument before anything is measured."""
    from optimist.envs.atari.games import find_rom
    from optimist.presets import get_preset
    from optimist.training.build import usable_device

    if not arguments.seconds > 0:
        raise ConfigError(f"--seconds must be above 0, got {arguments.seconds}")
    if arguments.device is not None:
        usable_device(arguments.device)
    find_rom(arguments.game)
    for name in arguments.presets:
        get_preset(name)
        if not name.startswith("atari/"):
            raise ConfigError(f"--presets must be presets of Atari, got {name}")


def measure(game: str, device: str | None, seconds: float, presets: list[str]) -> dict[str, Any]:
    """Steps per second of emulators and training, and their ratios; each is reported on stderr when it is known."""
    import torch

    from optimist.envs.atari import bench

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    setups = bench.emulator_setups(game)
    _report(f"{len(setups) + len(presets)} measurements of {seconds:g} s each; starting them may take longer")
    speeds: dict[EmulatorSetup, float] = {}
    for setup in setups:
        _report(f"measuring {game}, emulator alone, {setup.name} ... ", end="")
        speeds[setup] = bench.emulator_speed(game, setup, seconds)
        _report(f"{speeds[setup]:,.0f} steps/s")
    training = {}
    for preset in presets:
        _report(f"measuring {game}, training {preset} ... ", end="")
        training[preset] = _measure_training(preset, game, device, seconds, speeds)
        _report(f"{training[preset]['steps_per_second']:,.0f} steps/s")
    return {
        "game": game,
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU",
        "cores": available_cores(),
        "seconds_per_figure": seconds,
        "emulator": {setup.name: speed for setup, speed in speeds.items()},
        "training": training,
        "opr_over_ppo": {
            name: training[with_opr]["steps_per_second"] / training[plain]["steps_per_second"]
            for name, with_opr, plain in RATIOS
            if {with_opr, plain} <= set(training)
        },
    }


def _measure_training(
    preset: str, game: str, device: str, seconds: float, speeds: Mapping[EmulatorSetup, float]
) -> dict[str, Any]:
    """Speed of training, and its share of the fastest emulators: with as many environments, by ale-py and by any, and
    of all."""
    from optimist.presets import get_preset
    from optimist.training.speed import sustained_speed

    config = replace(get_preset(preset)(game=game), device=device)
    figures = sustained_speed(config, seconds)
    num_envs = config.env.num_envs
    same_size = [setup for setup in speeds if setup.num_envs == num_envs and setup.emulator != "EnvPool"]
    compared = {
        "ale": [speeds[setup] for setup in same_size if setup.emulator == "ale"],
        "at_this_size": [speeds[setup] for setup in same_size],
        "at_its_best": speeds.values(),
    }
    for name, found in compared.items():
        if found:
            figures[f"share_of_emulator_{name}"] = figures["steps_per_second"] / max(found)
    return {"num_envs": num_envs, **figures}


def print_figures(result: dict[str, Any]) -> None:
    """Print tables."""
    speeds = [[name, f"{speed:,.0f}"] for name, speed in result["emulator"].items()]
    title = f"{result['game']}, emulator alone, {result['cores']} cores: steps per second"
    show_table(["setup", "steps/s"], *speeds, title=title)
    if result["training"]:
        _print_training(result)
    for name, ratio in result["opr_over_ppo"].items():
        print(f"OPR over PPO, {name}: {ratio:.3f}")


def _print_training(result: dict[str, Any]) -> None:
    """Print a row for each preset, on a GPU with its memory."""
    on_gpu = any("gpu_bytes" in figures for figures in result["training"].values())
    caption = (
        "ale, same, best: share of the fastest emulator with as many envs, of ale-py and of all, and at any size; "
        "start: seconds to the end of the first update" + "; GiB: GPU memory" * on_gpu
    )
    header = ["preset", "envs", "steps/s", "ale", "same", "best", "start", *["GiB"] * on_gpu]  # 80 columns are full
    rows = []
    for name, figures in result["training"].items():
        shares = [figures.get(f"share_of_emulator_{share}") for share in ("ale", "at_this_size", "at_its_best")]
        row = [name, str(figures["num_envs"]), f"{figures['steps_per_second']:,.0f}"]
        row += ["–" if share is None else f"{share:.0%}" for share in shares]
        row.append(f"{figures['start_up_seconds']:.1f}")
        rows.append(row + ([f"{figures['gpu_bytes'] / 2**30:.1f}"] if on_gpu else []))
    show_table(header, *rows, title=f"Training on {result['device']}", caption=caption)


def _report(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)
