"""Blue policies without a network: asleep, random of several kinds, and the scripted agents of the original.

A policy is made for an environment and a generator, and then called at each step for the actions of all games.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimist.envs.cage2.actions import ANALYSE, DECOY, MONITOR, NUM_ACTIONS, REMOVE, RESTORE, SLEEP
from optimist.envs.cage2.cardiff import NUM_OUTPUTS, CardiffVectorEnv
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.network import DECOYS, NOWHERE, NUM_HOSTS, USER0

Act = Callable[[], NDArray[np.int64]]
Policy = Callable[[CageVectorEnv, np.random.Generator], Act]


def sleep(env: CageVectorEnv, rng: np.random.Generator) -> Act:
    """Does nothing."""
    return lambda: np.full(env.num_envs, SLEEP)


def random145(env: CageVectorEnv, rng: np.random.Generator) -> Act:
    """Uniform over the 145 actions."""
    return lambda: rng.integers(NUM_ACTIONS, size=env.num_envs)


def random_cardiff(env: CageVectorEnv, rng: np.random.Generator) -> Act:
    """Uniform over the 36 Cardiff outputs; for a `CardiffVectorEnv` without forced opening."""
    return lambda: rng.integers(NUM_OUTPUTS, size=env.num_envs)


def _by_family(shares: dict[int, float]) -> Policy:
    """Draws a family of actions, then a host uniformly over 13 and, among decoys, a type uniformly over 8."""
    families, chances = list(shares), list(shares.values())

    def policy(env: CageVectorEnv, rng: np.random.Generator) -> Act:
        def act() -> NDArray[np.int64]:
            verbs = rng.choice(families, size=env.num_envs, p=chances)
            verbs += np.where(verbs == DECOY, rng.integers(len(DECOYS), size=env.num_envs), 0)
            hosts = rng.integers(NUM_HOSTS, size=env.num_envs)
            return np.where(verbs <= MONITOR, verbs, 2 + (verbs - 2) * NUM_HOSTS + hosts)

        return act

    return policy


def _react(verb: int) -> Policy:
    """Monitors until a reverse shell is seen on a host other than User0, then acts on that host in the next step.

    The original looks for connections that carry a process id; only detected reverse shells do. It looks at what a
    Monitor brought and at nothing else, so there is never more than one host to act on.
    """

    def policy(env: CageVectorEnv, rng: np.random.Generator) -> Act:
        looking = np.zeros(env.num_envs, np.bool_)

        def act() -> NDArray[np.int64]:
            looking[env.games["steps"] == 0] = False
            host = env.games["shell_host"].astype(np.int64)
            reacts = looking & (host != NOWHERE) & (host != USER0)
            looking[:] = ~reacts
            return np.where(reacts, 2 + (verb - 2) * NUM_HOSTS + host, MONITOR)

        return act

    return policy


POLICIES: Final[dict[str, Policy]] = {
    "sleep": sleep,
    "random145": random145,
    "random_cardiff": random_cardiff,
    "arr_heavy": _by_family({SLEEP: 0.03, MONITOR: 0.02, DECOY: 0.10, ANALYSE: 0.30, REMOVE: 0.35, RESTORE: 0.20}),
    "decoy_heavy": _by_family({SLEEP: 0.02, ANALYSE: 0.07, REMOVE: 0.07, RESTORE: 0.04, DECOY: 0.80}),
    "react_remove": _react(REMOVE),
    "react_restore": _react(RESTORE),
}
"""By the names under which returns of the original were measured."""


def interface_of(policy: str) -> type[CageVectorEnv]:
    """The environment whose actions a policy speaks."""
    return CardiffVectorEnv if policy == "random_cardiff" else CageVectorEnv
