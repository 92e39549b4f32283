"""One stored episode for the playback: its film, action probabilities now, R and V, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from optimist.core.cloning import advantage_weights
from optimist.core.eviction import StoredEpisode
from optimist.envs.tabular.grid import TabularVectorEnv
from optimist.envs.tabular.picture import picture_of
from optimist.networks.actor_critic import ActorCritic
from optimist.networks.distributions import Categorical
from optimist.networks.q_network import QNetwork

if TYPE_CHECKING:
    from optimist.ui.memory import Remembered, Row

MOST_STEPS: Final = 5_000
"""Steps of an episode that are shown."""
MOST_ACTIONS: Final = 20
"""Rows of a strip of action probabilities: of more actions, those with the highest mean probability."""
MOST_SIGNALS: Final = 16
"""Rows of a strip of observations."""
MOST_PICTURES: Final = 400
BATCH: Final = 256


def playback(memory: Remembered, row: Row) -> dict[str, Any]:
    """What the playback draws, as JSON values."""
    stored = row.stored
    good = memory.opr.memory.at(stored.rows[:MOST_STEPS], memory.frames_of(stored)[:MOST_STEPS])
    logp, values, probabilities = _evaluated(memory, good.obs, good.actions)
    weights = advantage_weights(good.returns, values) if memory.opr.config.bc_weights == "advantage" else None
    strips = _strips(memory, good.actions, probabilities)
    return {
        "run": memory.name, "at": memory.step, "episode": row.id, "length": len(good),
        **strips,
        "now": _numbers(logp.exp()), "R": _numbers(good.returns), "V": _numbers(values),
        "w": None if weights is None else _numbers(weights),
        "rewards": _numbers(memory.opr.memory.pools["rewards"][good.rows]),
        "film": film_shape(memory, stored), "signals": _signals(good.obs),
        "cage": "CAGE2" in memory.config.env.id,
    }  # fmt: skip


def film_shape(memory: Remembered, stored: StoredEpisode) -> dict[str, int] | None:
    """Width, height and channels of an episode's pictures; None if there are none."""
    frames = memory.opr.memory.pools["frames"]
    if _is_film(memory):
        return {"width": frames.shape[-1], "height": frames.shape[-2], "channels": 1}
    if _is_grid(memory):
        height, width = _grid_picture(memory, stored, 1).shape[:2]
        return {"width": width, "height": height, "channels": 3}
    return None


def film_bytes(memory: Remembered, stored: StoredEpisode) -> bytes:
    """All pictures of an episode, one byte a pixel and channel."""
    if _is_film(memory):
        newest = memory.frames_of(stored)[:MOST_STEPS, -1]
        return memory.opr.memory.pools["frames"][newest].numpy().tobytes()
    if _is_grid(memory):
        number = min(len(stored.rows), MOST_PICTURES)
        return b"".join(_grid_picture(memory, stored, t + 1).tobytes() for t in range(number))
    return b""


def _is_film(memory: Remembered) -> bool:
    frames = memory.opr.memory.pools["frames"]
    return frames.dtype == torch.uint8 and frames.dim() == 3


def _is_grid(memory: Remembered) -> bool:
    return memory.opr.memory.pools["frames"].dim() == 1 and isinstance(memory.envs, TabularVectorEnv)


def _grid_picture(memory: Remembered, stored: StoredEpisode, steps: int) -> NDArray[np.uint8]:
    states = memory.opr.memory.pools["frames"][memory.frames_of(stored)[:steps, -1]].tolist()
    return picture_of(memory.envs.scene(states))


def _evaluated(memory: Remembered, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """log π_θ of the stored actions, V, and the probabilities [L, A] of a choice among actions."""
    policy, parts = memory.policy, [slice(i, i + BATCH) for i in range(0, len(obs), BATCH)]
    categorical = isinstance(policy, QNetwork) or (
        isinstance(policy, ActorCritic) and isinstance(policy.head, Categorical)
    )
    with torch.no_grad(), memory.lock:
        logp = torch.cat([policy.log_prob(obs[p], actions[p]) for p in parts])
        values = torch.cat([policy.value(obs[p]) for p in parts])
        odds = torch.cat([policy.action_params(obs[p]).softmax(-1) for p in parts]) if categorical else None
    return logp, values, odds


def _strips(memory: Remembered, actions: Tensor, probabilities: Tensor | None) -> dict[str, Any]:
    """The probabilities of the actions with their names and the stored action; of continuous actions their values."""
    if probabilities is None:
        parts = actions.float().reshape(len(actions), -1)[:, :MOST_ACTIONS]
        return {"actions": [f"action {i}" for i in range(parts.shape[1])], "heat": _scaled(parts), "stored": None}
    number = probabilities.shape[1]
    shown = list(range(number))
    if number > MOST_ACTIONS:
        counts = torch.bincount(actions.long(), minlength=number) / len(actions)
        shown = sorted((probabilities.mean(0) + counts).topk(MOST_ACTIONS).indices.tolist())
    place = {action: row for row, action in enumerate(shown)}
    return {
        "actions": [_action_name(memory, action) for action in shown],
        "heat": [_numbers(probabilities[:, action], 3) for action in shown],
        "stored": [place.get(action, -1) for action in actions.tolist()],
    }


def _action_name(memory: Remembered, action: int) -> str:
    meanings = getattr(memory.envs, "action_meanings", None)
    if meanings is not None:
        return str(meanings[action]).lower()
    describe = getattr(memory.envs, "describe", None)
    return str(describe(action)) if describe is not None else f"action {action}"


def _signals(obs: Tensor) -> dict[str, Any] | None:
    """Observations that are vectors as rows of a strip, each scaled to 0 … 1."""
    if obs.dim() != 2:
        return None
    spread = obs.float().std(0) if len(obs) > 1 else torch.zeros(obs.shape[1])
    shown = sorted(spread.topk(min(MOST_SIGNALS, obs.shape[1])).indices.tolist())
    return {"names": [f"input {i}" for i in shown], "heat": _scaled(obs.float()[:, shown])}


def _scaled(columns: Tensor) -> list[list[float]]:
    low, high = columns.min(0).values, columns.max(0).values
    scaled = (columns - low) / (high - low).clamp(min=1e-9)
    return [_numbers(column, 3) for column in scaled.T]


def _numbers(values: Tensor, digits: int = 5) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values.tolist()]
