"""Tasks, networks and short runs for the Tianshou integration."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy, ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from tianshou.utils.torch_utils import policy_within_training_step

from optimist.core import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from tests.integrations.tasks import Game, OneLifeAnEpisode

NOTHING = OPRConfig(bc_coef=0.0, shaping_scale=0.0)
EVERYTHING = OPRConfig(percentile=0.0)  # every episode is good


class Film(Game):
    """The task as images; every frame is different."""

    observation_space = gym.spaces.Box(0, 255, (5, 5), np.uint8)
    frames = 0

    def _seen(self):
        Film.frames += 1
        return np.full((5, 5), Film.frames % 256, np.uint8)


def recorded_lives():
    return OneLifeAnEpisode(gym.wrappers.RecordEpisodeStatistics(Game()))


def cartpole():
    return gym.make("CartPole-v1")


def make(kind, env, **settings):
    """Return an algorithm with small networks for an environment, with the same weights each time."""
    torch.manual_seed(0)
    np.random.seed(0)
    shape, norm = env.observation_space.shape, settings.pop("norm_layer", None)
    actor, critic = (Net(state_shape=shape, hidden_sizes=(8,), norm_layer=norm) for _ in range(2))
    settings = {"optim": AdamOptimizerFactory(lr=0.01), **settings}
    policy = policy_for(env.action_space, actor)
    return kind(policy=policy, critic=DiscreteCritic(preprocess_net=critic), **settings)


def policy_for(space, net):
    if isinstance(space, gym.spaces.Discrete):
        actor = DiscreteActor(preprocess_net=net, action_shape=int(space.n), softmax_output=False)
        return DiscreteActorPolicy(actor=actor, action_space=space)
    if isinstance(space, gym.spaces.Box):
        actor = ContinuousActorProbabilistic(preprocess_net=net, action_shape=space.shape, unbounded=True)

        def dist_fn(parameters):
            return torch.distributions.Independent(torch.distributions.Normal(*parameters), 1)
    else:
        actor = DiscreteActor(preprocess_net=net, action_shape=int(space.nvec.sum()), softmax_output=False)

        def dist_fn(logits):
            return torch.distributions.Categorical(logits=logits.view(len(logits), len(space.nvec), -1))

    return ProbabilisticActorPolicy(actor=actor, dist_fn=dist_fn, action_space=space, action_scaling=False)


def collect_from(algorithm, games, *, kind=Collector, buffer=None, wait_num=None, size=4096):
    envs = DummyVectorEnv(games, wait_num=wait_num)
    envs.seed(0)
    return kind(algorithm.policy, envs, buffer or VectorReplayBuffer(size, len(games)))


def train(algorithm, games, *, rollout, updates=1, repeat=1, batch_size=64, collector=None, **settings):
    """Train on these environments, `rollout` steps an update."""
    params = OnPolicyTrainerParams(
        training_collector=collector or collect_from(algorithm, games),
        max_epochs=1,
        epoch_num_steps=rollout * updates,
        collection_step_num_env_steps=rollout,
        update_step_num_repetitions=repeat,
        batch_size=batch_size,
        verbose=False,
        show_progress=False,
        **settings,
    )
    algorithm.run_training(params)
    return algorithm


def update_by_hand(algorithm, steps, **settings):
    collector = collect_from(algorithm, [Game] * 2, **settings)
    collector.reset()
    with policy_within_training_step(algorithm.policy):
        collector.collect(n_step=steps)
        algorithm.update(collector.buffer, None, 1)


def observed(monkeypatch, watch=lambda: None):
    """Record the steps that OPR observes from now on."""
    recorded, observe = [], OptimisticRegularizer.observe

    def see(self, steps):
        recorded.append(steps)
        watch()
        observe(self, steps)

    monkeypatch.setattr(OptimisticRegularizer, "observe", see)
    return recorded


def weights(algorithm):
    tensors = [tensor for tensor in torch.nn.Module.state_dict(algorithm).values() if torch.is_tensor(tensor)]
    return torch.cat([tensor.flatten().double() for tensor in tensors])


def remembered(algorithm):
    """Return the episodes in M, oldest first: returns and steps."""
    memory = algorithm.opr.memory
    return [
        SimpleNamespace(
            total_reward=stored.total_reward,
            length=len(stored.rows),
            frames=memory.pools["frames"][stored.frames],
            actions=memory.pools["actions"][stored.rows],
            rewards=memory.pools["rewards"][stored.rows],
        )
        for stored in memory.episodes
    ]
