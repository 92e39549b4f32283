"""How much memory OPR will need, before a run starts."""

from __future__ import annotations

import torch

from optimist.core.config import OPRConfig

_NUMBERS = 4 + 4 + 1 + 4  # reward, log-probability, done, bootstrap of one step
_OF_MEMORY = 4 + 4  # and of one in M also its return and its priority


def bytes_bound(
    config: OPRConfig,
    *,
    observation: torch.Tensor,
    action: torch.Tensor,
    num_envs: int,
    rollout_steps: int,
    frame_stack: int = 1,
) -> int:
    """The most bytes that M and the unfinished episodes will ever hold; `observation` and `action` are samples of one.

    M is allocated whole when the first episode enters it. Unfinished episodes take as much as the longest of them
    needs, at most `max_episode_steps` steps of every environment.
    """
    frame, step = observation.nbytes // frame_stack, action.nbytes + _NUMBERS
    older = frame_stack - 1  # frames an episode holds besides one for each step
    frames = config.capacity_transitions + older * config.capacity_episodes
    memory = config.capacity_transitions * (step + _OF_MEMORY) + frames * frame
    rows = config.max_episode_steps + older + rollout_steps
    unfinished = num_envs * (rows * (step + frame) + older * frame)
    return memory + unfinished
