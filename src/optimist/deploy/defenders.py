"""Run folders, or the name of an agent that comes with the package → a defender of the original CAGE-2 game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from optimist.door import Agent, load
from optimist.envs.cage2.agents import LOADERS, load_agent
from optimist.envs.cage2.cardiff_defender import CardiffDefender
from optimist.envs.cage2.defender import Defender, Logits, PolicyDefender
from optimist.envs.cage2.expert_defender import ExpertDefender
from optimist.envs.cage2.state import REDS
from optimist.errors import ConfigError, unknown_name
from optimist.networks.policy import PolicyNetwork

PLAIN, CARDIFF, EXPERT = "optimist/CAGE2-v0", "optimist/CAGE2Cardiff-v0", "optimist/CAGE2Expert-v0"


@dataclass(frozen=True)
class TrainedRun:
    """A finished run on one of the interfaces of CAGE 2."""

    path: str
    agent: Agent

    @classmethod
    def load(cls, path: str) -> TrainedRun:
        """The run in this folder, if it was trained on CAGE 2."""
        agent = load(path)
        if agent.config.env.id not in (PLAIN, CARDIFF, EXPERT):
            raise ConfigError(f"{path} was trained on {agent.config.env.id}, which is not CAGE 2")
        return cls(path, agent)

    @property
    def interface(self) -> str:
        """The environment's id."""
        return self.agent.config.env.id

    @property
    def opening(self) -> bool:
        """Whether it was trained behind the Cardiff agent's opening."""
        return bool(self.agent.config.env.kwargs.get("opening", False))

    @property
    def red(self) -> str:
        """The attacker it was trained against."""
        return str(self._setting("red", "B_line"))

    @property
    def rules(self) -> str:
        """The rule set it was trained under."""
        return str(self._setting("rules", "final"))

    @property
    def table(self) -> str:
        """The table of alarms it was trained with."""
        return str(self._setting("table", "cardiff" if self.interface == CARDIFF else "official"))

    @property
    def shows_mask(self) -> bool:
        """Whether its network sees which actions can be of use."""
        return bool(self._setting("mask", True))

    @property
    def obeys_mask(self) -> bool:
        """Whether it plays no others."""
        return self.agent.config.network.action_mask

    def _setting(self, name: str, default: Any) -> Any:
        return self.agent.config.env.kwargs.get(name, default)


def find_rules(names: Sequence[str]) -> str:
    """The rule set that the runs were trained under; `final` for an agent that comes with the package."""
    if names[0] in LOADERS:
        return "final"
    rules = {run.rules for run in load_runs(names)}
    if len(rules) > 1:
        raise ConfigError(f"the runs were trained under different rules ({', '.join(sorted(rules))}): name one")
    return rules.pop()


def load_defender(names: Sequence[str], rules: str) -> Defender:
    """The defender behind one name (a shipped agent, or a run that plays all attackers) or several runs (experts)."""
    if len(names) == 1 and names[0] in LOADERS:
        return load_agent(names[0], rules)
    return make_defender(load_runs(names))


def load_runs(names: Sequence[str]) -> list[TrainedRun]:
    """The runs in these folders."""
    for name in names:
        if name in LOADERS:
            raise ConfigError(f"'{name}' comes with the package and plays alone; several names must be run folders")
        if not Path(name).exists():
            raise unknown_name("run folder or shipped agent", name, LOADERS)
    return [TrainedRun.load(name) for name in names]


def make_defender(runs: Sequence[TrainedRun]) -> Defender:
    """One run plays all attackers; of several, each plays the attacker it was trained against."""
    first, *others = runs
    if others:
        return CardiffDefender(
            {REDS.index(red): policy_logits(run.agent.policy) for red, run in experts_of(runs).items()},
            opening=first.opening,
            table=first.table,
        )
    network = policy_logits(first.agent.policy)
    if first.interface == PLAIN:
        return PolicyDefender(network, first.table)
    if first.interface == EXPERT:
        return ExpertDefender(network, first.table, shows_mask=first.shows_mask, obeys_mask=first.obeys_mask)
    return CardiffDefender(network, opening=first.opening, table=first.table)


def experts_of(runs: Sequence[TrainedRun]) -> dict[str, TrainedRun]:
    """Attacker → the run that was trained against it; all on the same Cardiff interface."""
    experts: dict[str, TrainedRun] = {}
    for run in runs:
        if run.interface != CARDIFF:
            raise ConfigError(f"experts play on the Cardiff interface, but {run.path} was trained on {run.interface}")
        if (run.opening, run.table) != (runs[0].opening, runs[0].table):
            raise ConfigError(f"{run.path} and {runs[0].path} differ in opening or table; experts must share both")
        if run.red not in REDS or run.red in experts:
            raise ConfigError(
                f"experts need one attacker each, but {run.path} was trained against {run.red}"
                + (f" like {experts[run.red].path}" if run.red in experts else "")
            )
        experts[run.red] = run
    return experts


def policy_logits(policy: PolicyNetwork) -> Logits:
    """What a trained policy says about each action, as a defender's network."""
    device = next(policy.parameters()).device

    @torch.no_grad()
    def logits(inputs: NDArray[np.int8]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = policy.action_params(torch.from_numpy(inputs).to(device)).cpu().numpy()
        return found

    return logits
