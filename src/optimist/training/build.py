"""RunConfig → the things a run is made of: policy, anchor, algorithm."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.algorithms.a2c import A2C
from optimist.algorithms.acper import ACPER
from optimist.algorithms.base import Algorithm
from optimist.algorithms.cardiff import CardiffPPO
from optimist.algorithms.dqn import DQN
from optimist.algorithms.graphed import can_record
from optimist.algorithms.ppo import PPO
from optimist.algorithms.rainbow import Rainbow
from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.anchors.chain import AnchorChain
from optimist.anchors.self_imitation import SelfImitation
from optimist.config import A2CConfig, ACPERConfig, CardiffPPOConfig, PPOConfig, RunConfig
from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.footprint import bytes_bound
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError
from optimist.networks.actor_critic import as_actor_critic, make_actor_critic
from optimist.networks.policy import PolicyNetwork
from optimist.networks.q_network import QNetwork, make_q_network
from optimist.training.seeding import derive_seed


def make_policy(config: RunConfig, envs: VectorEnv[Any, Any, Any]) -> PolicyNetwork:
    """The freshly initialised network, on the run's device."""
    truth = envs.metadata.get("privileged", config.network.privileged)
    if config.network.privileged != truth:
        raise ConfigError(
            f"{config.env.id} ends its observations with {truth} entries of the true state, for the critic alone: "
            f"network.privileged must be {truth}, got {config.network.privileged}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(config.seed, "network"))
        spaces = envs.single_observation_space, envs.single_action_space
        policy: PolicyNetwork
        if isinstance(config.algorithm, DQNConfig | RainbowConfig):
            policy = make_q_network(*spaces, config.network, config.algorithm)
        else:
            policy = make_actor_critic(*spaces, config.network)
    policy = policy.to(config.device)
    if torch.device(config.device).type == "cuda":
        policy = policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return policy


def make_anchor(config: RunConfig) -> Anchor:
    """OPR and self-imitation as the config describes them: one, both or none."""
    anchors: dict[str, Anchor] = {}
    learner, stack = config.algorithm, config.env.frame_stack
    if config.opr.enabled:
        seed = derive_seed(config.seed, "opr")
        anchors["opr"] = OptimisticRegularizer(
            config.opr,
            gamma=learner.gamma,
            gae_lambda=learner.gae_lambda,
            seed=seed,
            frame_stack=stack,
            device=config.device,
        )
    if config.sil.enabled:
        seed = derive_seed(config.seed, "sil")
        anchors["sil"] = SelfImitation(
            config.sil, gamma=learner.gamma, seed=seed, frame_stack=stack, device=config.device
        )
    if len(anchors) > 1:
        return AnchorChain(anchors)
    return next(iter(anchors.values()), NoAnchor())


def uses_graphs(config: RunConfig, anchor: Anchor) -> bool:
    """Whether the run acts and learns by CUDA graphs: on a GPU, where nothing in it has to be asked for.

    PPO that stops at a KL divergence has to ask; DQN and Rainbow do if their replay lies in the computer's own memory.
    """
    on_gpu = torch.device(config.device).type == "cuda" and config.graphs == "auto"
    learner, recordable = config.algorithm, False
    if isinstance(learner, PPOConfig):
        recordable = learner.target_kl is None
    elif isinstance(learner, DQNConfig | RainbowConfig):
        recordable = learner.replay_device == "learner"
    return on_gpu and recordable and can_record(anchor)


def opr_bytes(config: RunConfig, envs: VectorEnv[Any, Any, Any]) -> int:
    """The most bytes OPR will hold in this run, known before it starts."""
    return bytes_bound(
        config.opr,
        observation=_sample_of(envs.single_observation_space),
        action=_sample_of(envs.single_action_space),
        num_envs=config.env.num_envs,
        rollout_steps=config.algorithm.rollout_steps,
        frame_stack=config.env.frame_stack,
    )


def _sample_of(space: gym.Space[Any]) -> Tensor:
    return torch.as_tensor(space.sample())


def make_algorithm(config: RunConfig, policy: PolicyNetwork, anchor: Anchor) -> Algorithm:
    """The learner that the config names."""
    seed, graphs = derive_seed(config.seed, "shuffle"), uses_graphs(config, anchor)
    if isinstance(policy, QNetwork):
        stack = config.env.frame_stack
        if isinstance(config.algorithm, RainbowConfig):
            return Rainbow(policy, config.algorithm, anchor, seed=seed, frame_stack=stack, graphs=graphs)
        assert isinstance(config.algorithm, DQNConfig)
        return DQN(policy, config.algorithm, anchor, seed=seed, frame_stack=stack, graphs=graphs)
    assert not isinstance(config.algorithm, DQNConfig | RainbowConfig)
    policy = as_actor_critic(policy, config.algorithm.name)
    if isinstance(config.algorithm, A2CConfig):
        return A2C(policy, config.algorithm, anchor, seed=seed)
    if isinstance(config.algorithm, ACPERConfig):
        return ACPER(policy, config.algorithm, anchor, seed=seed)
    if isinstance(config.algorithm, CardiffPPOConfig):
        return CardiffPPO(policy, config.algorithm, anchor, seed=seed)
    return PPO(policy, config.algorithm, anchor, seed=seed, graphs=graphs)


def prepare_torch(config: RunConfig) -> None:
    """Threads, determinism and a device that exists."""
    torch.set_num_threads(config.threads)
    if config.deterministic != torch.are_deterministic_algorithms_enabled():  # to say so takes torch a second
        torch.use_deterministic_algorithms(config.deterministic)
    torch.set_float32_matmul_precision(config.matmul_precision)
    torch.backends.cudnn.benchmark = not config.deterministic  # choose the fastest convolutions for the shapes at hand
    device = usable_device(config.device)
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)  # where streams and events are made, and graphs recorded: else they stay empty


def usable_device(name: str) -> torch.device:
    """The device of that name, if there is one that can train."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise _no_device(name) from error
    if device.type not in ("cpu", "cuda"):
        raise _no_device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device '{name}' was asked for, but torch sees no CUDA device; new runs take --device cpu")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        raise ConfigError(f"device '{name}' was asked for, but torch sees cuda:0 to cuda:{last}")
    return device


def _no_device(name: str) -> ConfigError:
    return ConfigError(f"device must be cpu, cuda or cuda:N, got '{name}'")
