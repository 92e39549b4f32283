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
from optimist.deploy.defenders import CARDIFF, PLAIN, experts_of, find_rules, load_runs, make_defender
from optimist.deploy.folder import new_folder
from optimist.envs.cage2 import expert_features, expert_kernels, expert_memory
from optimist.envs.cage2.agents import LOADERS, load_agent
from optimist.envs.cage2.agents.best import ReluNetwork
from optimist.envs.cage2.expert_defender import ExpertDefender
from optimist.errors import ConfigError
from optimist.networks.actor_critic import as_actor_critic

AGENT, WEIGHTS = "agent.py", "weights.npz"
Layers = list[tuple[NDArray[np.float32], NDArray[np.float32]]]
RULES_BEGIN, RULES_END = "# rules begin\n", "# rules end\n"


def export_cyborg(names: Sequence[str], folder: Path, rules: str | None = None) -> list[Path]:
    """Writes the agent that `optimist cage2 score` would play; the files. `rules` chooses among shipped agents."""
    if len(names) == 1 and names[0] in LOADERS:
        return _export_shipped(names[0], folder, rules or find_rules(names))
    runs = load_runs(names)
    make_defender(runs)  # the same checks
    for run in runs:
        if rules is not None and run.rules != rules:
            raise ConfigError(f"{run.path} was trained under the rules {run.rules}; leave --rules {rules} out")
        if run.agent.config.network.normalize_observations:
            raise ConfigError(f"{run.path} normalises its observations, for which the CybORG export has no place")
    experts = {"policy": runs[0]} if len(runs) == 1 else experts_of(runs)
    policies = {name: as_actor_critic(run.agent.policy, "the CybORG export") for name, run in experts.items()}
    networks = {name: layers_of(policy.actor) for name, policy in policies.items()}
    settings: dict[str, Any] = {"rules": sorted({run.rules for run in runs})}
    activations = {name: run.agent.config.network.activation for name, run in experts.items()}
    if runs[0].interface == CARDIFF:
        settings |= {"opening": runs[0].opening, "experts": len(runs) > 1, "activations": activations}
        settings["networks"] = {name: len(layers) for name, layers in networks.items()}
        return write_agent(folder, template("cardiff_agent.py"), settings, networks)
    settings |= {"activation": activations["policy"], "layers": len(networks["policy"])}
    if runs[0].interface == PLAIN:
        return write_agent(folder, template("plain_agent.py"), settings, networks)
    settings |= {"shows_mask": runs[0].shows_mask, "obeys_mask": runs[0].obeys_mask}
    return write_agent(folder, with_rules(template("expert_agent.py")), settings, networks)


def _export_shipped(name: str, folder: Path, rules: str) -> list[Path]:
    defender = load_agent(name, rules)
    if not isinstance(defender, ExpertDefender) or not isinstance(defender.network, ReluNetwork):
        raise ConfigError(f"'{name}' plays through {type(defender).__name__}, which has no export")
    layers = defender.network.layers
    settings = {"rules": [rules], "activation": "relu", "layers": len(layers), "shows_mask": True, "obeys_mask": True}
    return write_agent(folder, with_rules(template("expert_agent.py")), settings, {"policy": layers})


def rules_of(folder: Path) -> list[str]:
    """The rule sets that an exported agent was trained under."""
    with np.load(folder / WEIGHTS, allow_pickle=False) as arrays:
        found: list[str] = json.loads(str(arrays["settings"]))["rules"]
        return found


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


def layers_of(actor: nn.Module) -> Layers:
    """Weight [out, in] and bias of the linear layers of an actor, in order."""
    linear = (module for module in actor.modules() if isinstance(module, nn.Linear))
    return [(layer.weight.detach().cpu().numpy(), layer.bias.detach().cpu().numpy()) for layer in linear]


def write_agent(folder: Path, source: str, settings: Mapping[str, Any], networks: Mapping[str, Layers]) -> list[Path]:
    """The agent and its weights in a new folder."""
    arrays: dict[str, NDArray[Any]] = {"settings": np.array(json.dumps(settings))}
    for name, layers in networks.items():
        for number, (weight, bias) in enumerate(layers):
            arrays |= {f"{name}.{number}.weight": weight, f"{name}.{number}.bias": bias}
    with new_folder(folder):
        (folder / AGENT).write_text(source, encoding="utf-8")
        np.savez(folder / WEIGHTS, **arrays)  # type: ignore[arg-type]
    return [folder / AGENT, folder / WEIGHTS]
