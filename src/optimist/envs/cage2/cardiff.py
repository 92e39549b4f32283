"""The Cardiff agent's interface: CardiffVectorEnv for training, and what its evaluation needs besides.

In training a decoy output whose list is used up issues the list's first entry again, a wasted step. In evaluation the
agent looks for something better (`fall_back`), and after its opening it decides who the attacker is (`fingerprint`).
A scorer that follows the agent to the letter plays `CardiffVectorEnv(opening=True, sleep_output=True)` and at each step

1. at the fourth decision (three steps played) takes `fingerprint(scan_memory(observations))`: B_line's or Meander's
   network plays the rest of the game, and against Sleep the output `SLEEP_OUTPUT` is played for ever;
2. takes the argmax of the chosen network's probabilities, or samples from them;
3. replaces outputs whose list is used up: `fall_back(outputs, probabilities, env.free_decoys())`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimist.envs.cage2.actions import RESTORE, VERB_OF
from optimist.envs.cage2.cardiff_rules import (
    CARDIFF_VIEW,
    DECOY_ORDER,
    DIRECT_OUTPUTS,
    FIRST_DECOY,
    LATEST,
    MEMORY,
    NUM_OUTPUTS,
    NUM_SCANS,
    OPENING,
    SLEEP_OUTPUT,
    reset_cardiff_games,
    step_cardiff_games,
)
from optimist.envs.cage2.env import CageVectorEnv, Infos, Outputs
from optimist.envs.cage2.state import B_LINE, MEANDER, NUM_BITS, SLEEPER, check_arrays, from_arrays, to_arrays
from optimist.errors import ConfigError

__all__ = ["NUM_OUTPUTS", "SLEEP_OUTPUT", "CardiffVectorEnv", "fall_back", "fingerprint", "scan_memory"]

NUM_INPUTS: Final = NUM_BITS + NUM_SCANS
DECISION_OF_FINGERPRINT: Final = len(OPENING)
"""Steps played when the fingerprint is taken: after the three opening decoys."""
LIST_LENGTHS: Final = np.array([len(order) for order in DECOY_ORDER])
RESTORES: Final = np.array([VERB_OF[action] == RESTORE for action in DIRECT_OUTPUTS])


class CardiffVectorEnv(CageVectorEnv):
    """N games behind the Cardiff interface: the 52 bits and 10 values of scan memory in, 36 outputs.

    With `opening` the first three actions of a game are decoys on User2, User2 and Enterprise0 whatever is asked;
    `infos["executed"]` always says which output was played. `sleep_output` adds output 36, which sleeps.
    """

    observation_high, observation_width = LATEST, NUM_INPUTS

    def __init__(
        self,
        num_envs: int = 1,
        *,
        table: str = "cardiff",
        opening: bool = False,
        sleep_output: bool = False,
        **keywords: Any,
    ) -> None:
        """The keywords of `CageVectorEnv`; `table` is the one that the Cardiff agent was trained with."""
        self.num_actions = NUM_OUTPUTS + sleep_output
        self.opening = opening
        self.memories = np.zeros(num_envs, MEMORY)
        self._executed = np.zeros(num_envs, np.int64)
        super().__init__(num_envs, table=table, **keywords)

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """One step of every game; `infos["executed"]` holds the outputs that were played."""
        *results, infos = super().step(actions)
        infos["executed"], infos["_executed"] = self._executed, self._shown
        return *results, infos  # type: ignore[return-value]

    def free_decoys(self) -> NDArray[np.bool_]:
        """Whether the list behind each decoy output 27..35 still has an entry [N, 9]."""
        return self.memories["placed"] < LIST_LENGTHS

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        own = {"opening": self.opening, "num_actions": self.num_actions, "memories": to_arrays(self.memories)}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state_dict`."""
        for name, here in (("opening", self.opening), ("num_actions", self.num_actions)):
            if state.get(name, here) != here:
                raise ConfigError(f"the saved games have {name}={state[name]}, this environment {here}")
        check_arrays(self.memories, state["memories"])
        super().load_state_dict(state)
        from_arrays(self.memories, state["memories"])

    def _begin(self, mask: NDArray[np.bool_], outputs: Outputs) -> None:
        view = outputs.observations.view(CARDIFF_VIEW)[:, 0]
        reset_cardiff_games(self.games, self.memories, mask, self.settings, view["seen"], view["scans"])

    def _step_kernel(self, actions: NDArray[np.int64], outputs: Outputs) -> tuple[Any, ...]:
        view = outputs.observations.view(CARDIFF_VIEW)[:, 0]
        final = self._final.view(CARDIFF_VIEW)[:, 0]
        if self._reused is None:
            self._executed = np.empty(self.num_envs, np.int64)
        return (
            step_cardiff_games,
            self.games,
            self.memories,
            actions,
            self.opening,
            self.settings,
            view["seen"],
            view["scans"],
            outputs.rewards,
            outputs.truncated,
            final["seen"],
            final["scans"],
            self._executed,
        )


def scan_memory(observations: NDArray[Any]) -> NDArray[Any]:
    """The ten values of scan memory in the 62 inputs: [..., 62] → [..., 10]."""
    return observations[..., NUM_BITS:]


def fingerprint(scans: NDArray[Any]) -> NDArray[np.int64]:
    """Who attacks, as an index of `REDS`, from the scan memory at the fourth decision: [N, 10] → [N].

    By then Meander has scanned two hosts (1 + 2 = 3), B_line one (2), Sleep none. Any other sum is taken for Sleep.
    With a noisy green agent this is unreliable.
    """
    total = np.asarray(scans).sum(axis=-1)
    return np.select([total == 3, total == 2], [MEANDER, B_LINE], SLEEPER)


def fall_back(outputs: NDArray[Any], probabilities: NDArray[Any], free_decoys: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The outputs [N] with those replaced whose decoy list is used up, as the Cardiff agent does in evaluation.

    In their place comes the most probable output that is neither a Restore nor a decoy output whose list is used up.
    `probabilities` is [N, 36], or [N, 37] with an output that sleeps (logits do as well), `free_decoys` [N, 9] as
    `CardiffVectorEnv.free_decoys` gives it.
    """
    outputs = np.asarray(outputs, np.int64)
    decoy = outputs - FIRST_DECOY
    used_up = np.zeros(len(outputs), np.bool_)
    asks = (decoy >= 0) & (outputs < NUM_OUTPUTS)
    used_up[asks] = ~free_decoys[asks, decoy[asks]]
    allowed = np.ones(probabilities.shape, np.bool_)
    allowed[:, :FIRST_DECOY] = ~RESTORES
    allowed[:, FIRST_DECOY:NUM_OUTPUTS] = free_decoys
    best = np.where(allowed, probabilities, -np.inf).argmax(axis=1)
    return np.where(used_up, best, outputs)
