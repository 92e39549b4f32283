"""The Cardiff interface: CardiffVectorEnv for training, and CardiffDefender, its networks as a defender of the game.

In training, a decoy output after the end of its list places the list's first decoy again. In evaluation, the Cardiff
agent replaces such outputs (`fall_back`), and identifies the attacker after its opening (`fingerprint`). With
`CardiffVectorEnv(opening=True, sleep_output=True)` its evaluation is, at each step:

1. at the fourth decision, choose B_line's or Meander's network by `fingerprint(scan_memory(observations))`; against
   Sleep, take `SLEEP_OUTPUT` for the rest of the game;
2. take the argmax of the network's probabilities, or a sample;
3. replace decoys after the end of their list: `fall_back(outputs, probabilities, env.free_decoys())`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cage2.agents.defender import Logits, choose_action
from cage2.cardiff_rules import (
    CARDIFF_VIEW,
    DECOY_ACTIONS,
    DECOY_HOSTS,
    EARLIER,
    FIRST_DECOY,
    FLAT_ACTIONS,
    LATEST,
    LIST_LENGTHS,
    MEMORY,
    MEMORY_RANGES,
    NUM_OUTPUTS,
    NUM_SCANS,
    OPENING,
    SCAN_HOSTS,
    SLEEP_OUTPUT,
    reset_cardiff_games,
    step_cardiff_games,
)
from cage2.errors import ConfigError
from cage2.rules.scenario import HOST_OF, HOSTS, RESTORE, VERB_OF
from cage2.rules.state import (
    B_LINE,
    MEANDER,
    NUM_BITS,
    REDS,
    SLEEPER,
    check_arrays,
    from_arrays,
    to_arrays,
)
from cage2.vector_env import CageVectorEnv, Infos, Outputs
from cage2.words import describe_action

NUM_INPUTS: Final = NUM_BITS + NUM_SCANS
RESTORED_LIST: Final = np.array(
    [DECOY_HOSTS.index(HOST_OF[action]) if VERB_OF[action] == RESTORE else -1 for action in FLAT_ACTIONS]
)
"""List of decoys that an output resets, or −1."""


class CardiffVectorEnv(CageVectorEnv):
    """N games with the Cardiff interface: 62 inputs (52 bits, 10 values of scan memory) and 36 outputs.

    With `opening`, the first three outputs of a game are replaced by decoys on User2, User2 and Enterprise0;
    `infos["executed"]` has the outputs that were executed, `infos["forced"]` where they were replaced. `sleep_output`
    adds output 36, which sleeps.
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
        """`keywords` are those of `CageVectorEnv`; `table` defaults to that of the Cardiff agent."""
        self.num_actions = NUM_OUTPUTS + sleep_output
        self.opening = opening
        self.memories = np.zeros(num_envs, MEMORY)
        self._executed = np.zeros(num_envs, np.int64)
        super().__init__(num_envs, table=table, **keywords)

    def step(
        self, actions: ArrayLike
    ) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], Infos]:
        """Play one step of all games; `infos["executed"]` has the outputs that were executed."""
        forced = (self.games["steps"] < len(OPENING)) & self.opening
        *results, infos = super().step(actions)
        infos["executed"], infos["_executed"] = self._executed, self._all_read_only
        infos["forced"], infos["_forced"] = forced, self._all_read_only
        return *results, infos  # type: ignore[return-value]

    def describe(self, action: int) -> str:
        """An output in words, such as `Restore Enterprise0` or `Decoy User1`."""
        output = self._checked_action(action)
        if FIRST_DECOY <= output < NUM_OUTPUTS:
            return f"Decoy {HOSTS[DECOY_HOSTS[output - FIRST_DECOY]]}"
        return describe_action(FLAT_ACTIONS[output])

    def free_decoys(self) -> NDArray[np.bool_]:
        """Whether the list of each decoy output 27..35 has an entry left: [N, 9]."""
        return self.memories["placed"] < LIST_LENGTHS

    def state_dict(self) -> dict[str, Any]:
        """The state that `load_state_dict` restores exactly."""
        own = {"opening": self.opening, "num_actions": self.num_actions, "memories": to_arrays(self.memories)}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a `state_dict`."""
        for name, value in (("opening", self.opening), ("num_actions", self.num_actions)):
            if state.get(name, value) != value:
                raise ConfigError(f"saved games have {name}={state[name]}; this environment has {name}={value}")
        check_arrays(self.memories, state["memories"], MEMORY_RANGES)
        super().load_state_dict(state)
        from_arrays(self.memories, state["memories"], MEMORY_RANGES)

    def _reset_games(self, mask: NDArray[np.bool_], outputs: Outputs) -> None:
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
    """The scan memory in the 62 inputs: [..., 62] → [..., 10]."""
    return observations[..., NUM_BITS:]


def fingerprint(scans: NDArray[Any]) -> NDArray[np.int64]:
    """Identify the attacker (index in `REDS`) by the scan memory at the fourth decision: [N, 10] → [N].

    By then Meander has scanned two hosts (1 + 2 = 3), B_line one (2), Sleep none; any other sum counts as Sleep.
    Unreliable with an active green agent.
    """
    total = np.asarray(scans).sum(axis=-1)
    return np.select([total == 3, total == 2], [MEANDER, B_LINE], SLEEPER)


def fall_back(outputs: NDArray[Any], probabilities: NDArray[Any], free_decoys: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Replace outputs [N] that are decoys without an entry left, as the Cardiff agent does in evaluation.

    The replacement is the most probable output that is neither a Restore nor such a decoy. `probabilities` (or logits)
    is [N, 36], or [N, 37] with the output that sleeps; `free_decoys` is [N, 9] as in `CardiffVectorEnv.free_decoys`.
    """
    outputs = np.asarray(outputs, np.int64)
    usable = np.ones((len(outputs), SLEEP_OUTPUT + 1), np.bool_)
    usable[:, FIRST_DECOY:NUM_OUTPUTS] = free_decoys
    allowed = (usable & (RESTORED_LIST < 0))[:, : probabilities.shape[1]]
    best = np.where(allowed, probabilities, -np.inf).argmax(axis=1)
    return np.where(usable[np.arange(len(outputs)), outputs], outputs, best)


class CardiffInterface:
    """Memory of the Cardiff agent for N games: scans, and the decoys placed, computed from observations and actions."""

    def __init__(self, num_games: int) -> None:
        self.scans = np.zeros((num_games, NUM_SCANS), np.int8)
        self.placed = np.zeros((num_games, len(DECOY_HOSTS)), np.int64)

    def inputs(self, observations: NDArray[np.int8]) -> NDArray[np.int8]:
        """Update the scan memory and return the 62 inputs [N, 62]."""
        activity = observations.reshape(len(observations), -1, 4)[:, SCAN_HOSTS, :2]
        scanned = (activity[..., 0] == 1) & (activity[..., 1] == 0)
        games = np.flatnonzero(scanned.any(axis=1))
        self.scans[games] = np.minimum(self.scans[games], EARLIER)
        self.scans[games, scanned[games].argmax(axis=1)] = LATEST
        return np.concatenate([observations, self.scans], axis=1)

    def free_decoys(self) -> NDArray[np.bool_]:
        """Whether the list of each decoy output 27..35 has an entry left: [N, 9]."""
        return self.placed < LIST_LENGTHS

    def flat_actions(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the flat actions [N] of the outputs, and update the number of placed decoys."""
        flat = FLAT_ACTIONS[outputs]
        games = np.flatnonzero((outputs >= FIRST_DECOY) & (outputs < SLEEP_OUTPUT))
        lists = outputs[games] - FIRST_DECOY
        placed = self.placed[games, lists]
        free = placed < LIST_LENGTHS[lists]
        flat[games] = DECOY_ACTIONS[lists, np.where(free, placed, 0)]
        self.placed[games, lists] = placed + free
        restored = np.flatnonzero(RESTORED_LIST[outputs] >= 0)
        self.placed[restored, RESTORED_LIST[outputs[restored]]] = 0
        return flat


class CardiffDefender:
    """One network for all attackers, or specialists: one network per attacker, chosen by the fingerprint.

    Specialists (`REDS` index → network, at least B_line and Meander) need the fixed opening. Without one against Sleep,
    the defender sleeps too.
    """

    def __init__(
        self, networks: Logits | Mapping[int, Logits], *, opening: bool = True, table: str = "cardiff"
    ) -> None:
        self.fingerprints = isinstance(networks, Mapping)
        self.networks = dict(networks) if isinstance(networks, Mapping) else {0: networks}
        self.opening, self.table = opening, table
        if self.fingerprints and not (opening and {B_LINE, MEANDER} <= self.networks.keys()):
            found = ", ".join(REDS[red] for red in self.networks) or "none"
            raise ConfigError(
                "specialists need the opening and one network each for B_line and Meander; "
                f"got {found} {'with' if opening else 'without'} the opening"
            )
        self.reset(0)

    def reset(self, num_games: int) -> None:
        """Start new games and clear the memory of the last ones."""
        self.interface = CardiffInterface(num_games)
        self.steps = 0
        self.attackers = np.zeros(num_games, np.int64)

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """Flat actions [N]: the opening, then the network's outputs with `fall_back`."""
        inputs = self.interface.inputs(observations)
        if self.opening and self.steps < len(OPENING):
            outputs = np.full(len(observations), OPENING[self.steps])
        else:
            if self.fingerprints and self.steps == len(OPENING):
                self.attackers = fingerprint(inputs[:, NUM_BITS:])
            outputs = self._outputs(inputs, greedy, generator)
        self.steps += 1
        return self.interface.flat_actions(outputs)

    def _outputs(self, inputs: NDArray[np.int8], greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        outputs = np.full(len(inputs), SLEEP_OUTPUT)
        free: NDArray[Any] = self.interface.free_decoys()
        for attacker, network in self.networks.items():
            games = np.flatnonzero(self.attackers == attacker)
            if len(games):
                logits = network(inputs[games])
                chosen = choose_action(logits, greedy=greedy, generator=generator)
                outputs[games] = fall_back(chosen, logits, free[games])
        return outputs
