"""RunConfig → the parts of a run: policy, anchor, algorithm, collector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from gymnasium.vector import VectorEnv

from optimist.algorithms.a2c import A2C
from optimist.algorithms.acper import ACPER
from optimist.algorithms.base import Learner
from optimist.algorithms.cardiff import CardiffPPO
from optimist.algorithms.dqn import DQN
from optimist.algorithms.ppo import PPO
from optimist.algorithms.rainbow import Rainbow
from optimist.anchors.chain import AnchorChain
from optimist.anchors.self_imitation import SelfImitation
from optimist.config import A2CConfig, ACPERConfig, AlgorithmConfig, CardiffPPOConfig, PPOConfig, RunConfig, plugins
from optimist.config.plugins import ANCHORS, load_plugin
from optimist.config.sil import SILConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.regularizer import OptimisticRegularizer
from optimist.cuda.learning import CapturedDQN, CapturedPPO, CapturedRainbow
from optimist.errors import ConfigError
from optimist.networks.policy import PolicyNetwork
from optimist.networks.q_network import QNetwork
from optimist.rollout.collector import AsyncVectorEnv, Collector
from optimist.rollout.lag import LaggedCollector
from optimist.training.seeding import derive_seed

LEARNERS: dict[type, Any] = {
    PPOConfig: PPO,
    A2CConfig: A2C,
    ACPERConfig: ACPER,
    CardiffPPOConfig: CardiffPPO,
    DQNConfig: DQN,
    RainbowConfig: Rainbow,
}
OWN_ANCHORS: dict[str, Any] = {"opr": OptimisticRegularizer, "sil": SelfImitation}
CAPTURED: dict[type, Any] = {PPO: CapturedPPO, DQN: CapturedDQN, Rainbow: CapturedRainbow}
"""Learner → the same with a captured gradient step."""


def make_policy(config: RunConfig, envs: VectorEnv[Any, Any, Any]) -> PolicyNetwork:
    """The freshly initialised network, on the run's device."""
    entries = envs.metadata.get("privileged", config.network.privileged)
    if config.network.privileged != entries:
        raise ConfigError(
            f"network.privileged must be {entries} for {config.env.id}, got {config.network.privileged}: its "
            f"observations end with {entries} entries for the critic alone (the true state, or env.steps_left)"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(config.seed, "network"))
        spaces = envs.single_observation_space, envs.single_action_space
        network = learner_class(config.algorithm).make_network(*spaces, config.network, config.algorithm)
        policy: PolicyNetwork = network
    policy = policy.to(config.device)
    if torch.device(config.device).type == "cuda":
        policy = policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return policy


def make_anchor(config: RunConfig) -> Anchor:
    """OPR, self-imitation and the anchors of other packages, as far as the config names them."""
    settings: dict[str, Any] = {"opr": config.opr} if config.opr.enabled else {}
    settings |= {"sil": with_entropy_of(config.algorithm, config.sil)} if config.sil.enabled else {}
    anchors: dict[str, Anchor] = {}
    for name, own in (settings | config.anchors).items():
        anchor_class = OWN_ANCHORS[name] if name in settings else load_plugin(ANCHORS, name)
        anchors[name] = anchor_class(
            own,
            gamma=config.algorithm.gamma,
            gae_lambda=config.algorithm.gae_lambda,
            seed=derive_seed(config.seed, name),
            frame_stack=config.env.frame_stack,
            device=config.device,
        )
    if len(anchors) > 1:
        return AnchorChain(anchors)
    return next(iter(anchors.values()), NoAnchor())


def with_entropy_of(learner: AlgorithmConfig, sil: SILConfig) -> SILConfig:
    """Self-imitation with the learner's entropy coefficient, unless it has one of its own."""
    return sil if sil.entropy_coef is not None else replace(sil, entropy_coef=getattr(learner, "entropy_coef", 0.0))


def uses_graphs(config: RunConfig, anchor: Anchor) -> bool:
    """Whether the run acts and learns by CUDA graphs: on a GPU, where no step needs a value on the host.

    PPO with `target_kl` reads the divergence; DQN and Rainbow read their replay if it is stored in host memory.
    """
    on_gpu = torch.device(config.device).type == "cuda" and config.graphs == "auto"
    learner, capturable = config.algorithm, False
    if isinstance(learner, PPOConfig):
        capturable = learner.target_kl is None
    elif isinstance(learner, DQNConfig | RainbowConfig):
        capturable = learner.replay_device == "learner"
    return on_gpu and capturable and anchor.capturable


def learner_class(settings: AlgorithmConfig) -> Any:
    """The class that trains with these settings."""
    return LEARNERS.get(type(settings)) or load_plugin(plugins.LEARNERS, settings.name)


def make_algorithm(config: RunConfig, policy: PolicyNetwork, anchor: Anchor) -> Learner:
    """Create the learner that the config names; on a GPU with captured graphs where it can be."""
    learner: Any = learner_class(config.algorithm)
    if uses_graphs(config, anchor):
        learner = CAPTURED.get(learner, learner)  # a learner of another package learns eagerly
    stack: dict[str, int] = {"frame_stack": config.env.frame_stack} if learner.stores_frames else {}
    made: Learner = learner(policy, config.algorithm, anchor, seed=derive_seed(config.seed, "shuffle"), **stack)
    return made


def make_collector(
    config: RunConfig, envs: VectorEnv[Any, Any, Any], policy: PolicyNetwork, anchor: Anchor
) -> Collector | LaggedCollector:
    """The collector; environments that deliver out of order have their own, unless groups need all steps in order."""
    generator = torch.Generator(config.device).manual_seed(derive_seed(config.seed, "acting"))
    evaluated = not isinstance(policy, QNetwork) or not isinstance(anchor, NoAnchor)

    def collector_for(policy: PolicyNetwork) -> Collector:
        parts = (envs, config.env, policy, config.algorithm.rollout_steps, generator, config.device)
        if isinstance(envs, AsyncVectorEnv) and not config.env.group_key:
            return envs.collector_class(*parts, evaluated=evaluated, graphs=uses_graphs(config, anchor))
        return Collector(*parts, evaluated=evaluated)

    if config.policy_lag:
        return LaggedCollector(collector_for, policy, config.threads)
    return collector_for(policy)


def prepare_torch(config: RunConfig) -> None:
    """Set threads, determinism and precision; check the device."""
    torch.set_num_threads(config.threads)
    if config.deterministic != torch.are_deterministic_algorithms_enabled():  # the call takes a second
        torch.use_deterministic_algorithms(config.deterministic)
    torch.set_float32_matmul_precision(config.matmul_precision)
    torch.backends.cudnn.benchmark = not config.deterministic  # the fastest convolutions for these shapes
    device = usable_device(config.device)
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)  # streams, events and captured graphs use the current device


def usable_device(name: str) -> torch.device:
    """The device of that name; raise ConfigError if it cannot train here."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise _no_device(name) from error
    if device.type not in ("cpu", "cuda"):
        raise _no_device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"device '{name}' is not available: torch sees no CUDA device; train a new run with --device cpu"
        )
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        raise ConfigError(f"device '{name}' is not available: torch sees cuda:0 to cuda:{last}")
    return device


def _no_device(name: str) -> ConfigError:
    return ConfigError(f"device must be cpu, cuda or cuda:N, got '{name}'")
