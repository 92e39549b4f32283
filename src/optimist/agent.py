"""The Python door to a finished run: `agent = load(RUN)`, `agent.act(obs)`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from optimist.config import RunConfig
from optimist.envs.make import make_envs
from optimist.errors import CheckpointError, ShapeMismatch
from optimist.networks.actor_critic import ActorCritic
from optimist.tracking.run_dir import RunDir
from optimist.training.build import make_policy


class Agent:
    """A trained policy, ready to act on observations as its environment gives them."""

    def __init__(self, policy: ActorCritic, config: RunConfig, observation_shape: tuple[int, ...]) -> None:
        self.policy, self.config, self.observation_shape = policy.eval(), config, observation_shape
        self.generator = torch.Generator(config.device).manual_seed(config.seed)

    def act(self, obs: ArrayLike, *, greedy: bool = True) -> NDArray[Any] | int:
        """The action for one observation, or one action each for a batch of them."""
        array = np.asarray(obs)
        single = array.shape == self.observation_shape
        if not single and array.shape[1:] != self.observation_shape:
            raise ShapeMismatch(
                f"obs is {list(array.shape)}; expected {list(self.observation_shape)} or a batch of them"
            )
        tensor = torch.as_tensor(array[None] if single else array, device=self.config.device)
        actions = self.policy.act_greedily(tensor) if greedy else self.policy.act(tensor, self.generator)[0]
        result: NDArray[Any] = actions.cpu().numpy()
        if not single:
            return result
        return int(result[0]) if result[0].ndim == 0 else result[0]


def load(run: str | Path, device: str = "cpu") -> Agent:
    """The agent a finished run left behind."""
    folder = RunDir.read(Path(run))
    config = replace(folder.config, device=device)
    envs = make_envs(replace(config.env, num_envs=1), seed=config.seed)
    try:
        policy = make_policy(config, envs)
        shape = envs.single_observation_space.shape or ()
    finally:
        envs.close()
    weights, _ = folder.read_final()
    try:
        policy.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"{run}/final.safetensors does not fit its config: {' '.join(str(error).split())}"
        ) from error
    return Agent(policy, config, shape)
