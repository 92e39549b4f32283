"""The Python door: `train(preset, …)`, `agent = load(RUN)`, `agent.act(obs)`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from optimist.config import RunConfig
from optimist.envs.make import make_envs
from optimist.errors import CheckpointError, ShapeMismatch, unknown_name
from optimist.networks.policy import PolicyNetwork
from optimist.tracking.run_dir import RunDir
from optimist.training.build import make_policy


class Agent:
    """A trained policy, ready to act on observations as its environment gives them."""

    def __init__(
        self,
        policy: PolicyNetwork,
        config: RunConfig,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
    ) -> None:
        self.policy, self.config = policy.eval(), config
        self.observation_space, self.action_space = observation_space, action_space
        self.generator = torch.Generator(config.device).manual_seed(config.seed)

    def act(self, obs: ArrayLike, *, greedy: bool = True) -> NDArray[Any] | int:
        """The action for one observation, or one action each for a batch of them, within the environment's bounds."""
        array, shape = np.asarray(obs), self.observation_space.shape or ()
        single = array.shape == shape
        if not single and array.shape[1:] != shape:
            raise ShapeMismatch(f"obs is {list(array.shape)}; expected {list(shape)} or a batch of them")
        if isinstance(self.observation_space, gym.spaces.Discrete):
            _require_states(array, int(self.observation_space.n))
        tensor = torch.as_tensor(array[None] if single else array, device=self.config.device)
        actions = self.policy.act_greedily(tensor) if greedy else self.policy.act(tensor, self.generator)
        result: NDArray[Any] = actions.cpu().numpy()
        if isinstance(self.action_space, gym.spaces.Box):
            result = np.clip(result, self.action_space.low, self.action_space.high)
        if not single:
            return result
        return int(result[0]) if result[0].ndim == 0 else result[0]


def load(run: str | Path, device: str = "cpu") -> Agent:
    """The agent a finished run left behind."""
    folder = RunDir.read(Path(run))
    weights, _ = folder.read_final()
    return make_agent(replace(folder.config, device=device), weights, origin=f"{run}/final.safetensors")


def make_agent(config: RunConfig, weights: dict[str, torch.Tensor], *, origin: str) -> Agent:
    """The agent with these weights, which came from `origin`."""
    envs = make_envs(replace(config.env, num_envs=1), seed=config.seed)
    try:
        policy = make_policy(config, envs)
        spaces = envs.single_observation_space, envs.single_action_space
    finally:
        envs.close()
    try:
        policy.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"{origin} does not fit its config: {' '.join(str(error).split())}") from error
    return Agent(policy, config, *spaces)


def _require_states(obs: NDArray[Any], number: int) -> None:
    """Raise unless every observation is one of the states 0 … number − 1; a negative one would count from the end."""
    if not np.issubdtype(obs.dtype, np.integer):
        raise ShapeMismatch(f"obs is of {obs.dtype}; expected integers, this environment's states are numbered")
    if obs.size and not 0 <= int(obs.min()) <= int(obs.max()) < number:
        raise ShapeMismatch(f"obs holds {int(obs.min())} to {int(obs.max())}; the states are 0 to {number - 1}")


def train(preset: str, *, out: str | Path | None = None, progress: bool = True, **settings: Any) -> dict[str, Any]:
    """Train from a preset as `optimist train` does; the summary, whose entry `run` is the run folder.

    `settings` are the preset's own keywords (`size=8`), fields of RunConfig (`seed=1`, `total_steps=50_000`) or, as
    dicts, of its parts: `opr={"bc_coef": 0.3}`.
    """
    from optimist.presets import get_preset
    from optimist.tracking.config_io import merge
    from optimist.training.loop import train as run

    chosen = get_preset(preset)
    own = {parameter.name for parameter in chosen.parameters}
    config = chosen(**{name: value for name, value in settings.items() if name in own})
    rest = {name: value for name, value in settings.items() if name not in own}
    known = [*own, *(field.name for field in fields(config))]
    for name in rest:
        if name not in known:
            raise unknown_name("setting", name, known)
    config = merge(config, rest)
    return run(config, None if out is None else Path(out), progress=progress)
