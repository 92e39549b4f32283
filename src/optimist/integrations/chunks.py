"""Join the chunks of episodes that RLlib's environment runners send to whole episodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Columns = dict[str, Tensor]
"""Name → [L, ...], one column of data for L steps."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive steps of one episode."""

    episode_id: str
    start: int  # steps of the episode before this chunk
    raw_rewards: NDArray[np.float64]
    terminated: bool
    truncated: bool
    recorded_return: float | None = None  # return of the whole episode where RecordEpisodeStatistics reports one

    def __len__(self) -> int:
        return len(self.raw_rewards)

    @property
    def done(self) -> bool:
        """Whether the episode ends with this chunk."""
        return self.terminated or self.truncated

    @property
    def at_time_limit(self) -> bool:
        """Whether a time limit ends the episode, so that its last state is bootstrapped."""
        return self.truncated and not self.terminated

    @classmethod
    def from_rllib(cls, episode: Any) -> Chunk:
        """Read a `SingleAgentEpisode`.

        A wrapper may clip rewards. The return of RecordEpisodeStatistics is taken if it counts the same steps; it
        counts those of the whole game where the environment ends an episode with every life.
        """
        statistics = (episode.get_infos(-1) or {}).get("episode") or {}
        same_steps = "r" in statistics and int(statistics.get("l", -1)) == episode.t
        recorded = float(statistics["r"]) if same_steps else None
        rewards = np.array(episode.get_rewards(), np.float64)
        return cls(episode.id_, episode.t_started, rewards, episode.is_terminated, episode.is_truncated, recorded)


@dataclass
class PartialEpisode:
    """An unfinished episode: its length and return so far, and its newest steps."""

    length: int = 0
    total: float = 0.0
    parts: list[Columns] = field(default_factory=list)


class EpisodeAssembler:
    """Joins chunks by episode id and returns whole episodes.

    An episode with a missing chunk is dropped. So is one that the next batch does not continue: environment runners
    send every unfinished episode with every batch, so its runner has lost it.
    """

    def __init__(self, max_steps: int) -> None:
        """`max_steps`: older chunks of an unfinished episode are dropped while at least this many steps remain."""
        self.max_steps = max_steps
        self.episodes: dict[str, PartialEpisode] = {}

    def add(self, chunks: Iterable[tuple[Chunk, Columns]]) -> list[Columns]:
        """Add a batch of chunks and return the finished episodes; the last step of each holds its raw return."""
        previous, self.episodes, finished = self.episodes, {}, []
        for chunk, columns in sorted(chunks, key=lambda pair: pair[0].start):  # a remote learner gets them by length
            name = chunk.episode_id
            episode = self.episodes.pop(name, None) or previous.pop(name, None) or PartialEpisode()
            if episode.length != chunk.start:
                continue
            # Added step by step: the sum does not depend on where chunks end, so equal episodes have equal returns.
            episode.total = float(np.cumsum([episode.total, *chunk.raw_rewards])[-1])
            episode.length += len(chunk)
            episode.parts.append(columns)
            if chunk.done:
                finished.append(_join(episode, chunk))
            else:
                self.episodes[name] = self._trim(episode)
        return finished

    def state_dict(self) -> dict[str, Any]:
        """Return the unfinished episodes."""
        return {name: {**vars(episode), "parts": list(episode.parts)} for name, episode in self.episodes.items()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore the unfinished episodes."""
        self.episodes = {
            name: PartialEpisode(
                episode["length"],
                episode["total"],
                [{key: column.to(device) for key, column in part.items()} for part in episode["parts"]],
            )
            for name, episode in state.items()
        }

    def _trim(self, episode: PartialEpisode) -> PartialEpisode:
        episode.parts[-1] = {name: column.clone() for name, column in episode.parts[-1].items()}  # frees the batch
        kept = sum(map(_length, episode.parts))
        while kept - _length(episode.parts[0]) > self.max_steps:  # one more than `max_steps` marks it as clipped
            kept -= _length(episode.parts.pop(0))
        return episode


def _join(episode: PartialEpisode, last: Chunk) -> Columns:
    whole = {name: torch.cat([part[name] for part in episode.parts]) for name in episode.parts[0]}
    whole["raw_rewards"] = torch.zeros(_length(whole), dtype=torch.float64, device=whole["rewards"].device)
    whole["raw_rewards"][-1] = episode.total if last.recorded_return is None else last.recorded_return
    return whole


def _length(part: Columns) -> int:
    return len(part["rewards"])
