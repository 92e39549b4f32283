"""Runs → a folder with an agent for the original game: weights as npz, one Python file that needs numpy only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from optimist.deploy.defenders import CARDIFF, PLAIN, TrainedRun, experts_of, load_runs, make_defender
from optimist.deploy.folder import new_folder
from optimist.errors import ConfigError

AGENT, WEIGHTS = "agent.py", "weights.npz"


def export_cyborg(names: Sequence[str], folder: Path) -> list[Path]:
    """Writes the agent that `optimist cage2 score` would play; the files."""
    runs = load_runs(names)
    make_defender(runs)  # the same checks
    networks = {"policy": runs[0]} if len(runs) == 1 else experts_of(runs)
    settings: dict[str, Any] = {"activation": runs[0].agent.config.network.activation}
    if runs[0].interface == PLAIN:
        settings["layers"] = len(layers_of(runs[0]))
        return write_agent(folder, "plain_agent.py", settings, networks)
    if runs[0].interface == CARDIFF:
        settings |= {"opening": runs[0].opening, "experts": len(runs) > 1}
        settings["networks"] = {name: len(layers_of(run)) for name, run in networks.items()}
        return write_agent(folder, "cardiff_agent.py", settings, networks)
    raise ConfigError(f"no CybORG agent for runs on {runs[0].interface}; expected {PLAIN} or {CARDIFF}")


def layers_of(run: TrainedRun) -> list[nn.Linear]:
    """The linear layers of the run's actor, in order."""
    return [module for module in run.agent.policy.actor.modules() if isinstance(module, nn.Linear)]


def write_agent(
    folder: Path, template: str, settings: Mapping[str, Any], networks: Mapping[str, TrainedRun]
) -> list[Path]:
    """The template and the weights in a new folder."""
    arrays: dict[str, NDArray[Any]] = {"settings": np.array(json.dumps(settings))}
    for name, run in networks.items():
        for number, layer in enumerate(layers_of(run)):
            arrays[f"{name}.{number}.weight"] = layer.weight.detach().cpu().numpy()
            arrays[f"{name}.{number}.bias"] = layer.bias.detach().cpu().numpy()
    source = resources.files("optimist.deploy.templates").joinpath(template).read_text(encoding="utf-8")
    with new_folder(folder):
        (folder / AGENT).write_text(source, encoding="utf-8")
        np.savez(folder / WEIGHTS, **arrays)  # type: ignore[arg-type]
    return [folder / AGENT, folder / WEIGHTS]
