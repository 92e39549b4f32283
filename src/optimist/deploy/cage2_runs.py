"""Run folders or names of shipped agents as defenders of CAGE 2, and their export to the original game (CybORG)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cage2.agents.defender import Defender, Logits, PolicyDefender
from cage2.agents.shipped import SHIPPED_AGENTS, load_agent
from cage2.cardiff import CardiffDefender
from cage2.deploy.export import Layers, export_agent, write_agent
from cage2.expert.env import ExpertDefender
from cage2.rules.state import REDS
from optimist.api import Agent, load
from optimist.errors import ConfigError, unknown_name
from optimist.networks.actor_critic import as_actor_critic
from optimist.networks.policy import PolicyNetwork
from optimist.tracking.files import create_empty, disk_errors

PLAIN, CARDIFF, EXPERT = "optimist/CAGE2-v0", "optimist/CAGE2Cardiff-v0", "optimist/CAGE2Expert-v0"


@dataclass(frozen=True, kw_only=True)
class TrainedRun:
    """A finished run on one of the interfaces of CAGE 2, with the settings of its training."""

    path: str
    agent: Agent
    interface: str
    """Id of its environment."""
    red: str
    rules: str
    table: str
    opening: bool
    """Whether the Cardiff agent's opening was forced."""
    shows_mask: bool
    """Whether its input has the action mask."""
    obeys_mask: bool
    """Whether it takes only allowed actions."""

    @classmethod
    def load(cls, path: str) -> TrainedRun:
        """Load the run in this folder; raises if it is not a run on CAGE 2."""
        return cls.of(path, load(path))

    @classmethod
    def of(cls, path: str, agent: Agent) -> TrainedRun:
        """The run of an agent, which may be from a checkpoint; raises if it is not a run on CAGE 2."""
        env = agent.config.env
        if env.id not in (PLAIN, CARDIFF, EXPERT):
            raise ConfigError(f"{path} was trained on {env.id}; expected CAGE 2")
        return cls(
            path=path,
            agent=agent,
            interface=env.id,
            red=str(env.kwargs.get("red", "B_line")),
            rules=str(env.kwargs.get("rules", "final")),
            table=str(env.kwargs.get("table", "cardiff" if env.id == CARDIFF else "official")),
            opening=bool(env.kwargs.get("opening", False)),
            shows_mask=bool(env.kwargs.get("mask", True)),
            obeys_mask=agent.config.network.action_mask,
        )


def find_rules(names: Sequence[str]) -> str:
    """The rule set that the runs were trained under; `final` for a shipped agent."""
    if names[0] in SHIPPED_AGENTS:
        return "final"
    rules = {run.rules for run in load_runs(names)}
    if len(rules) > 1:
        raise ConfigError(
            f"the runs were trained under different rules ({', '.join(sorted(rules))}); choose one with --rules"
        )
    return rules.pop()


def load_defender(names: Sequence[str], rules: str) -> Defender:
    """The defender of one name (a shipped agent, or a run against all attackers) or of several runs (specialists)."""
    if len(names) == 1 and names[0] in SHIPPED_AGENTS:
        return load_agent(names[0], rules)
    return make_defender(load_runs(names))


def load_runs(names: Sequence[str]) -> list[TrainedRun]:
    """Load the runs in these folders."""
    for name in names:
        if name in SHIPPED_AGENTS:
            raise ConfigError(
                f"'{name}' is a shipped agent, which cannot be combined; several names must be run folders"
            )
        if not Path(name).exists():
            raise unknown_name("run folder or shipped agent", name, SHIPPED_AGENTS)
    return [TrainedRun.load(name) for name in names]


def make_defender(runs: Sequence[TrainedRun]) -> Defender:
    """One run against all attackers; of several runs, each against the attacker of its training."""
    first, *others = runs
    if others:
        return CardiffDefender(
            {REDS.index(red): policy_logits(run.agent.policy) for red, run in specialists_of(runs).items()},
            opening=first.opening,
            table=first.table,
        )
    network = policy_logits(first.agent.policy)
    if first.interface == PLAIN:
        return PolicyDefender(network, first.table)
    if first.interface == EXPERT:
        return ExpertDefender(network, first.table, shows_mask=first.shows_mask, obeys_mask=first.obeys_mask)
    return CardiffDefender(network, opening=first.opening, table=first.table)


def specialists_of(runs: Sequence[TrainedRun]) -> dict[str, TrainedRun]:
    """Attacker → run trained against it; all with the same Cardiff interface."""
    specialists: dict[str, TrainedRun] = {}
    for run in runs:
        if run.interface != CARDIFF:
            raise ConfigError(f"several runs need the Cardiff interface, but {run.path} was trained on {run.interface}")
        if (run.opening, run.table) != (runs[0].opening, runs[0].table):
            raise ConfigError(f"{run.path} and {runs[0].path} differ in opening or table; expected the same for all")
        if run.red not in REDS or run.red in specialists:
            raise ConfigError(
                f"several runs need one attacker each, but {run.path} was trained against {run.red}"
                + (f" like {specialists[run.red].path}" if run.red in specialists else "")
            )
        specialists[run.red] = run
    return specialists


def policy_logits(policy: PolicyNetwork) -> Logits:
    """A trained policy as the network of a defender."""
    device = next(policy.parameters()).device

    @torch.no_grad()
    def logits(inputs: NDArray[np.int8]) -> NDArray[np.float32]:
        params: NDArray[np.float32] = policy.action_params(torch.from_numpy(inputs).to(device)).cpu().numpy()
        return params

    return logits


def export_cyborg(names: Sequence[str], folder: Path, rules: str | None = None) -> list[Path]:
    """Write the agent that `optimist score` would play, as one Python file that needs NumPy only and weights as npz.

    Return its files; `rules` is for shipped agents.
    """
    if len(names) == 1 and names[0] in SHIPPED_AGENTS:
        create_empty(folder)
        return export_agent(names[0], folder, rules or find_rules(names))
    runs = load_runs(names)
    defender = make_defender(runs)
    for run in runs:
        if rules is not None and run.rules != rules:
            raise ConfigError(f"{run.path} was trained under the rules {run.rules}; leave --rules {rules} out")
        if run.agent.config.network.normalize_observations:
            raise ConfigError(f"the CybORG export does not support normalize_observations, which {run.path} has")
    if len(runs) == 1:
        networks = {0: _network(runs[0])}
    else:
        networks = {REDS.index(red): _network(run) for red, run in specialists_of(runs).items()}
    create_empty(folder)
    with disk_errors(folder):
        return write_agent(folder, defender, sorted({run.rules for run in runs}), networks)


def layers_of(actor: nn.Module) -> Layers:
    """Weights [out, in] and biases of an actor's linear layers, in order."""
    linear = (module for module in actor.modules() if isinstance(module, nn.Linear))
    return [(layer.weight.detach().cpu().numpy(), layer.bias.detach().cpu().numpy()) for layer in linear]


def _network(run: TrainedRun) -> tuple[Layers, str]:
    """The layers of a run's actor, and its activation."""
    policy = as_actor_critic(run.agent.policy, "the CybORG export")
    return layers_of(policy.actor), run.agent.config.network.activation
