"""ExpertDefender: a policy of the expert interface behind the game's own, 52 bits in and one of 145 actions out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optimist.envs.cage2.defender import Logits, choose
from optimist.envs.cage2.expert_actions import NUM_EXPERT_ACTIONS
from optimist.envs.cage2.expert_features import NUM_ACTOR_BITS, NUM_FEATURES
from optimist.envs.cage2.expert_kernels import look_at_games, take_actions
from optimist.envs.cage2.expert_memory import EXPERT_MEMORY, FRESH_EXPERT_MEMORY
from optimist.errors import ShapeMismatch


class ExpertDefender:
    """Remembers each game as `ExpertVectorEnv` does, asks its network, and plays the best action that is allowed.

    `shows_mask`: the network sees which actions can be of use; it sees all ones if it was trained so. `obeys_mask`:
    the others are not played.
    """

    def __init__(
        self, network: Logits, table: str = "official", *, shows_mask: bool = True, obeys_mask: bool = True
    ) -> None:
        self.network, self.table = network, table
        self.shows_mask, self.obeys_mask = shows_mask, obeys_mask
        self.memories = np.zeros(0, EXPERT_MEMORY)
        self.begun = False

    def reset(self, num_games: int) -> None:
        """So many new games begin."""
        self.memories = np.repeat(FRESH_EXPERT_MEMORY, num_games)
        self.begun = False

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """Flat actions [N] for the observations [N, 52]."""
        rows = self.look(observations)
        logits = self.network(rows)
        if self.obeys_mask:
            logits = masked_logits(logits, rows)
        actions = choose(logits, greedy=greedy, generator=generator)
        flat = np.empty(len(rows), np.int64)
        take_actions(self.memories, actions, flat)
        return flat

    def look(self, observations: NDArray[np.int8]) -> NDArray[np.int8]:
        """Takes in what the last actions led to; what the policy sees now, [N, NUM_ACTOR_BITS]."""
        if observations.shape != (len(self.memories), 52):
            raise ShapeMismatch(f"observations are {list(observations.shape)}; expected [{len(self.memories)}, 52]")
        rows = np.empty((len(self.memories), NUM_ACTOR_BITS), np.int8)
        look_at_games(self.memories, np.ascontiguousarray(observations, np.int8), self.begun, self.shows_mask, rows)
        self.begun = True
        return rows


def masked_logits(logits: NDArray[np.float32], rows: NDArray[np.int8]) -> NDArray[np.float32]:
    """The logits [N, A] with those of forbidden actions at −∞, as the mask in the rows says."""
    allowed = rows[:, NUM_FEATURES : NUM_FEATURES + NUM_EXPERT_ACTIONS] == 1
    return np.where(allowed, logits, np.float32(-np.inf))
