"""A run in words: its method, the header line, and notes on settings without effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.config import OPRConfig, RunConfig, SILConfig
from optimist.core.regularizer import max_bytes
from optimist.envs.family import family_of
from optimist.envs.wrappers import longest_episode


def describe_method(config: RunConfig) -> str:
    """The learner and what is added to it, `ppo+opr`."""
    return config.algorithm.name + "+opr" * config.opr.enabled + "+sil" * config.sil.enabled


def describe_run(config: RunConfig) -> str:
    """One line: method, task, budget in whole updates, environments and seed."""
    env, steps = config.env, config.total_updates * config.batch_size
    hidden = family_of(env.id).performance_kwargs
    keywords = ", ".join(f"{key}={value}" for key, value in env.kwargs.items() if key not in hidden)
    task = env.id + (f"({keywords})" if keywords else "")
    delay = f", rewards every {env.reward_delay} steps" if env.reward_delay > 1 else ""
    return (
        f"{describe_method(config).upper()} on {task}{delay}: {steps:,} steps, {env.num_envs} envs, seed {config.seed}"
    )


def notes_before_start(config: RunConfig, envs: VectorEnv[Any, Any, Any], saves_envs: bool) -> list[str]:
    """What a user should know before the first step, one line each."""
    return [*getattr(envs.unwrapped, "notes", ()), *_notes(config, envs, saves_envs)]


def _notes(config: RunConfig, envs: VectorEnv[Any, Any, Any], saves_envs: bool) -> Iterator[str]:
    whole = config.total_updates * config.batch_size
    if whole != config.total_steps:
        up_or_down = "up" if whole > config.total_steps else "down"
        update = f"{config.batch_size:,} steps ({config.env.num_envs} envs × {config.algorithm.rollout_steps})"
        yield f"total_steps = {config.total_steps:,} is rounded {up_or_down} to {whole:,}: whole updates of {update}"
    if config.env.id.rpartition(":")[2].startswith("ALE/"):
        yield "Atari with raw pictures learns nothing soon; the presets atari/… preprocess them (atari/opr --game Pong)"
    if not saves_envs:
        yield from _short_checkpoints(config, longest_episode(envs))
        if not config.save_when_stopped:
            yield (
                f"a stop loses the steps since the last checkpoint, one every {config.checkpoint_every:,}; "
                "--save-when-stopped saves them, and environments restart"
            )
    for name, settings, default in (("OPR", config.opr, OPRConfig()), ("SIL", config.sil, SILConfig())):
        if not settings.enabled and settings != replace(default, enabled=False):
            yield f"{name} is off: its settings have no effect (--{name.lower()}.enabled)"
    if config.opr.enabled:
        yield f"OPR: memory and unfinished episodes need at most {opr_bytes(config, envs) / 2**20:,.1f} MiB"
        yield from _ignored_settings(config.opr)


def opr_bytes(config: RunConfig, envs: VectorEnv[Any, Any, Any]) -> int:
    """Upper bound of the bytes OPR stores in this run."""
    return max_bytes(
        config.opr,
        observation=_sample_of(envs.single_observation_space),
        action=_sample_of(envs.single_action_space),
        num_envs=config.env.num_envs,
        rollout_steps=config.algorithm.rollout_steps,
        frame_stack=config.env.frame_stack,
    )


def _sample_of(space: gym.Space[Any]) -> Tensor:
    return torch.as_tensor(space.sample())


def _short_checkpoints(config: RunConfig, longest: int) -> Iterator[str]:
    """A note where environments restart at checkpoints too often for a whole episode."""
    between, whole = (steps // config.env.num_envs for steps in (config.checkpoint_every, config.total_steps))
    if between < min(longest, whole):
        yield (
            f"environments restart at every checkpoint: each has {between:,} steps in between, an episode may last "
            f"{longest:,}, and an episode cut off there is dropped; checkpoint_every = "
            f"{longest * config.env.num_envs:,} is enough for any episode"
        )


def _ignored_settings(opr: OPRConfig) -> Iterator[str]:
    """Notes on settings that were changed and have no effect with the others as they are."""
    default = OPRConfig()
    for name in sorted(opr.inactive if opr.enabled else ()):
        if getattr(opr, name) != getattr(default, name):
            yield f"OPR: opr.{name} has no effect with the other settings as they are"
