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

from optimist.deploy.bundle import bundle
from optimist.deploy.defenders import CARDIFF, PLAIN, TrainedRun, experts_of, load_runs, make_defender
from optimist.deploy.folder import new_folder
from optimist.envs.cage2 import expert_features, expert_kernels, expert_memory

AGENT, WEIGHTS = "agent.py", "weights.npz"
RULES_BEGIN, RULES_END = "# rules begin\n", "# rules end\n"


def export_cyborg(names: Sequence[str], folder: Path) -> list[Path]:
    """Writes the agent that `optimist cage2 score` would play; the files."""
    runs = load_runs(names)
    make_defender(runs)  # the same checks
    networks = {"policy": runs[0]} if len(runs) == 1 else experts_of(runs)
    settings: dict[str, Any] = {"activation": runs[0].agent.config.network.activation}
    if runs[0].interface == CARDIFF:
        settings |= {"opening": runs[0].opening, "experts": len(runs) > 1}
        settings["networks"] = {name: len(layers_of(run)) for name, run in networks.items()}
        return write_agent(folder, template("cardiff_agent.py"), settings, networks)
    settings["layers"] = len(layers_of(runs[0]))
    if runs[0].interface == PLAIN:
        return write_agent(folder, template("plain_agent.py"), settings, networks)
    return write_agent(folder, with_rules(template("expert_agent.py")), settings, networks)


def template(name: str) -> str:
    """The source of an agent."""
    return resources.files("optimist.deploy.templates").joinpath(name).read_text(encoding="utf-8")


def with_rules(source: str) -> str:
    """The source of the expert agent with the rules that it imports from here written out."""
    before, _, rest = source.partition(RULES_BEGIN)
    names = (
        (expert_features, "NUM_ACTOR_BITS"),
        (expert_features, "NUM_FEATURES"),
        (expert_kernels, "write_actor_bits"),
        (expert_memory, "FRESH_EXPERT_MEMORY"),
        (expert_memory, "remember"),
        (expert_memory, "take_action"),
    )
    rules = bundle({name: getattr(module, name) for module, name in names})
    return f"{before}{rules}\n{rest.partition(RULES_END)[2]}"


def layers_of(run: TrainedRun) -> list[nn.Linear]:
    """The linear layers of the run's actor, in order."""
    return [module for module in run.agent.policy.actor.modules() if isinstance(module, nn.Linear)]


def write_agent(
    folder: Path, source: str, settings: Mapping[str, Any], networks: Mapping[str, TrainedRun]
) -> list[Path]:
    """The agent and its weights in a new folder."""
    arrays: dict[str, NDArray[Any]] = {"settings": np.array(json.dumps(settings))}
    for name, run in networks.items():
        for number, layer in enumerate(layers_of(run)):
            arrays[f"{name}.{number}.weight"] = layer.weight.detach().cpu().numpy()
            arrays[f"{name}.{number}.bias"] = layer.bias.detach().cpu().numpy()
    with new_folder(folder):
        (folder / AGENT).write_text(source, encoding="utf-8")
        np.savez(folder / WEIGHTS, **arrays)  # type: ignore[arg-type]
    return [folder / AGENT, folder / WEIGHTS]
