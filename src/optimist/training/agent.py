"""Agent: the policy of a run, ready to act; loaded from its final weights or its newest checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from optimist.config import RunConfig
from optimist.envs.family import family_of
from optimist.envs.make import make_envs
from optimist.errors import RunFolderError, ShapeMismatch
from optimist.networks.policy import PolicyNetwork
from optimist.tracking.checkpoint import restoring
from optimist.tracking.run_dir import RunDir
from optimist.training.build import make_policy


class Agent:
    """A trained policy that acts on observations of its environment."""

    def __init__(
        self,
        policy: PolicyNetwork,
        config: RunConfig,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        *,
        run: Path | None = None,
        steps: int | None = None,
    ) -> None:
        """`run`, `steps`: the folder it is from, and the environment steps it was trained for."""
        self.policy, self.config, self.run, self.steps = policy.eval(), config, run, steps
        self.observation_space, self.action_space = observation_space, action_space
        self.generator = torch.Generator(config.device).manual_seed(config.seed)

    def __repr__(self) -> str:
        env = self.config.env
        trained = [] if self.steps is None else [f"{self.steps:,} steps"]
        about = [
            self.config.preset or self.config.algorithm.name,
            family_of(env.id).label(env.id, env.kwargs),
            *trained,
        ]
        return f"Agent({', '.join(about)}{f', run={str(self.run)!r}' if self.run else ''})"

    def predict(
        self,
        obs: ArrayLike,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Actions for one or a batch of observations, and `state`, as in Stable-Baselines3.

        The policy has no recurrent state: `state` is returned as it is, and `episode_start` has no effect.
        """
        return np.asarray(self.act(obs, greedy=deterministic)), state

    def act(self, obs: ArrayLike, *, greedy: bool = True) -> NDArray[Any] | int:
        """The action for one observation, or an action each for a batch of them, within the environment's bounds."""
        array, shape = np.asarray(obs), self.observation_space.shape or ()
        single = array.shape == shape
        if not single and array.shape[1:] != shape:
            raise ShapeMismatch(f"obs is {list(array.shape)}; expected {list(shape)} or a batch of them")
        if isinstance(self.observation_space, gym.spaces.Discrete):
            _check_states(array, int(self.observation_space.n))
        tensor = torch.as_tensor(array[None] if single else array, device=self.config.device)
        actions = self.policy.act_greedily(tensor) if greedy else self.policy.act(tensor, self.generator)
        result: NDArray[Any] = actions.cpu().numpy()
        if isinstance(self.action_space, gym.spaces.Box):
            result = np.clip(result, self.action_space.low, self.action_space.high)
        if not single:
            return result
        return int(result[0]) if result[0].ndim == 0 else result[0]


def load(run: str | Path, device: str = "cpu", *, env: str = "") -> Agent:
    """The agent of a finished run.

    `env`: the run's environment again, where its id names a module to import (`mypackage:MyEnv-v0`).
    """
    folder = RunDir.read(Path(run), env)
    weights, words = folder.read_final()
    config, steps = replace(folder.config, device=device), int(words.get("steps", folder.config.total_steps))
    return make_agent(config, weights, folder.path, steps, origin=f"{run}/final.safetensors")


def newest_agent(run: Path, env: str = "") -> tuple[Agent, str]:
    """A run's final agent, or that of its newest checkpoint while it is in progress, and in words which of the two."""
    folder = RunDir.read(run, env)
    if folder.has_final:
        (weights, words), which = folder.read_final(), "final policy"
        step = int(words.get("steps", folder.config.total_steps))
    else:
        step, state = newest_checkpoint(folder)
        with restoring(f"the newest checkpoint of {run}"):
            weights, which = state["policy"], f"policy at step {step:,}"
    config, origin = replace(folder.config, device="cpu"), f"the {which} of {run}"
    return make_agent(config, weights, folder.path, step, origin=origin), which


def newest_checkpoint(folder: RunDir) -> tuple[int, dict[str, Any]]:
    """Step and learner's state of the newest checkpoint."""
    state: Any = folder.load_checkpoint()
    if state is None:
        first = min(folder.config.checkpoint_every, folder.config.total_steps)
        raise RunFolderError(f"{folder.path} has no checkpoint yet; the first is saved at {first:,} steps")
    with restoring(f"the newest checkpoint of {folder.path}"):
        return int(state["update"]) * folder.config.batch_size, state["algorithm"]


def make_agent(config: RunConfig, weights: dict[str, torch.Tensor], run: Path, steps: int, *, origin: str) -> Agent:
    """The agent with these weights; `origin` names them in the error for weights that do not fit."""
    envs = make_envs(replace(config.env, num_envs=1), seed=config.seed)
    try:
        policy = make_policy(config, envs)
        spaces = envs.single_observation_space, envs.single_action_space
    finally:
        envs.close()
    with restoring(origin):
        policy.load_state_dict(weights)
    return Agent(policy, config, *spaces, run=run, steps=steps)


def _check_states(obs: NDArray[Any], number: int) -> None:
    """Raise unless every observation is one of the states 0 … number − 1; a negative one would index from the end."""
    if not np.issubdtype(obs.dtype, np.integer):
        raise ShapeMismatch(f"obs is of {obs.dtype}; expected integers, the numbers of this environment's states")
    if obs.size and not 0 <= int(obs.min()) <= int(obs.max()) < number:
        raise ShapeMismatch(f"obs holds {int(obs.min())} to {int(obs.max())}; expected states from 0 to {number - 1}")
