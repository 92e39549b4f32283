"""Episodes that come in chunks, as RLlib's environment runners send them, put together again by their id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Columns = dict[str, Tensor]
"""Name → [L, ...], what is known of each of L steps."""


@dataclass(frozen=True)
class Chunk:
    """Some steps in a row of one episode."""

    episode: str  # the id, the same for all chunks of an episode
    begin: int  # steps before it
    raw_rewards: NDArray[np.float64]
    terminated: bool
    truncated: bool
    game: float | None = None  # return of the whole episode where a monitor saw it

    def __len__(self) -> int:
        return len(self.raw_rewards)

    @property
    def done(self) -> bool:
        """Whether the episode ends here."""
        return self.terminated or self.truncated

    @property
    def cut_off(self) -> bool:
        """Whether a time limit ends it, so that the state behind it has a value."""
        return self.truncated and not self.terminated

    @classmethod
    def of(cls, episode: Any) -> Chunk:
        """Read from RLlib's `SingleAgentEpisode`.

        Rewards may be clipped by a wrapper: Gymnasium's RecordEpisodeStatistics knows the game's, and is believed where
        it counted the same steps (where a life is an episode it counts those of the whole game).
        """
        seen = (episode.get_infos(-1) or {}).get("episode") or {}
        game = float(seen["r"]) if "r" in seen and int(seen.get("l", -1)) == episode.t else None
        rewards = np.array(episode.get_rewards(), np.float64)
        return cls(episode.id_, episode.t_started, rewards, episode.is_terminated, episode.is_truncated, game)


@dataclass
class Held:
    """An episode in play: its length and return so far, and the steps that are kept of it."""

    length: int = 0
    total: float = 0.0
    parts: list[Columns] = field(default_factory=list)


class EpisodesInPlay:
    """Chunks in, whole episodes out.

    An episode of which a chunk is missing is left out. One that a batch does not continue is forgotten: environment
    runners send every episode they play with every batch, so its runner has lost it.
    """

    def __init__(self, max_steps: int) -> None:
        """`max_steps`: of an episode that goes on, older chunks are dropped while more steps than these are left."""
        self.max_steps = max_steps
        self.episodes: dict[str, Held] = {}  # by id

    def add(self, chunks: Iterable[tuple[Chunk, Columns]]) -> list[Columns]:
        """The steps of each episode that ends in these chunks; its raw return stands at the last one."""
        before, self.episodes, finished = self.episodes, {}, []
        for chunk, columns in sorted(chunks, key=lambda pair: pair[0].begin):  # a remote learner gets them by length
            held = self.episodes.pop(chunk.episode, None) or before.pop(chunk.episode, None) or Held()
            if held.length != chunk.begin:
                continue
            # Step by step: sums then do not depend on where chunks end, and equal episodes tie.
            held.total = float(np.cumsum([held.total, *chunk.raw_rewards])[-1])
            held.length += len(chunk)
            held.parts.append(columns)
            if chunk.done:
                finished.append(_whole(held, chunk))
            else:
                self.episodes[chunk.episode] = self._trimmed(held)
        return finished

    def state_dict(self) -> dict[str, Any]:
        """The episodes in play."""
        return {name: {**vars(held), "parts": list(held.parts)} for name, held in self.episodes.items()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Take over the episodes in play."""
        self.episodes = {
            name: Held(held["length"], held["total"], [_on(device, part) for part in held["parts"]])
            for name, held in state.items()
        }

    def _trimmed(self, held: Held) -> Held:
        held.parts[-1] = {name: column.clone() for name, column in held.parts[-1].items()}  # not the whole batch
        kept = sum(map(_length, held.parts))
        while kept - _length(held.parts[0]) > self.max_steps:  # more than these: M still sees that it is clipped
            kept -= _length(held.parts.pop(0))
        return held


def _whole(held: Held, last: Chunk) -> Columns:
    whole = {name: torch.cat([part[name] for part in held.parts]) for name in held.parts[0]}
    whole["raw_rewards"] = torch.zeros(_length(whole), dtype=torch.float64, device=whole["rewards"].device)
    whole["raw_rewards"][-1] = held.total if last.game is None else last.game
    return whole


def _on(device: torch.device | str, part: Columns) -> Columns:
    return {name: column.to(device) for name, column in part.items()}


def _length(part: Columns) -> int:
    return len(part["rewards"])
