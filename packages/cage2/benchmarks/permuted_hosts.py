"""The shipped defender with the hosts Op_Host0, 1 and 2 exchanged: results/cage2-best/permuted_hosts.json.

    python packages/cage2/benchmarks/permuted_hosts.py [--episodes 4000]

These three are the only hosts that the rules treat alike. The defender sees their bits, and acts on them, in another
order; both orders play the same games.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cage2
from cage2.agents.shipped import load_agent
from cage2.rules.scenario import HOST_OF, HOSTS, NOWHERE, VERB_OF, flat_action
from cage2.rules.state import RULES

ORDER = ("Op_Host1", "Op_Host2", "Op_Host0")
OUT = Path("results/cage2-best/permuted_hosts.json")


class Permuted:
    """A defender to which host h is host `order[h]`."""

    def __init__(self, defender: Any, order: list[int]) -> None:
        self.defender, self.table = defender, defender.table
        self.bits = np.concatenate([np.arange(4 * host, 4 * host + 4) for host in order])
        self.actions = np.array(
            [
                action if host == NOWHERE else flat_action(int(verb), order[host])
                for action, (verb, host) in enumerate(zip(VERB_OF, HOST_OF, strict=True))
            ]
        )

    def reset(self, num_games: int) -> None:
        """Start new games."""
        self.defender.reset(num_games)

    def act(self, observations: NDArray[np.int8], **keywords: Any) -> NDArray[np.int64]:
        """Actions on the hosts as the game numbers them."""
        found: NDArray[np.int64] = self.actions[self.defender.act(observations[:, self.bits], **keywords)]
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=4000)
    episodes = parser.parse_args().episodes
    order = [HOSTS.index(dict(zip(ORDER, sorted(ORDER), strict=True)).get(host, host)) for host in HOSTS]
    result: dict[str, Any] = {
        "command": f"python packages/cage2/benchmarks/permuted_hosts.py --episodes {episodes}",
        "order": list(ORDER),
        "rules": {},
    }
    for rules in RULES:
        agents = {"as trained": load_agent("best", rules), "permuted": Permuted(load_agent("best", rules), order)}
        scores = {name: cage2.score(agent, rules=rules, episodes=episodes) for name, agent in agents.items()}
        result["rules"][rules] = {name: score.as_dict() for name, score in scores.items()}
        print(rules, {name: (round(score.total, 3), round(score.half_width, 3)) for name, score in scores.items()})
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
