"""OPR in Tianshou: use OPRPPO in place of PPO.

python examples/tianshou_ppo.py [--no-opr] [--steps 60000] [--seed 2]
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic

import optimist.envs  # noqa: F401  registers DeepSea
from optimist import OPRConfig
from optimist.integrations import OPRPPO

parser = argparse.ArgumentParser()
parser.add_argument("--no-opr", action="store_true")
parser.add_argument("--steps", type=int, default=60_000)
parser.add_argument("--seed", type=int, default=2)
args = parser.parse_args()
np.random.seed(args.seed)
torch.manual_seed(args.seed)


def make_env() -> gym.Env:
    return gym.wrappers.FlattenObservation(gym.make("optimist/DeepSea-v0", size=10, map_seed=args.seed))


envs = DummyVectorEnv([make_env] * 16)
envs.seed(args.seed)
space = make_env().observation_space
actor, critic = (Net(state_shape=space.shape, hidden_sizes=(64, 64), activation=torch.nn.Tanh) for _ in range(2))
policy = DiscreteActorPolicy(
    actor=DiscreteActor(preprocess_net=actor, action_shape=2, softmax_output=False),
    action_space=gym.spaces.Discrete(2),
)
for layer in [*actor.modules(), *critic.modules()]:
    if isinstance(layer, torch.nn.Linear):
        torch.nn.init.orthogonal_(layer.weight, 2**0.5)
for parameter in policy.actor.last.parameters():
    torch.nn.init.normal_(parameter, std=0.001)  # starts with equal probabilities
settings = {
    "policy": policy,
    "critic": DiscreteCritic(preprocess_net=critic),
    "optim": AdamOptimizerFactory(lr=1e-3),
    "ent_coef": 0.01,
    "max_grad_norm": 0.5,
}
algorithm = PPO(**settings) if args.no_opr else OPRPPO(opr=OPRConfig(), **settings)  # OPR
collector = Collector(policy, envs, VectorReplayBuffer(1024, 16))
params = OnPolicyTrainerParams(
    training_collector=collector,
    max_epochs=1,
    epoch_num_steps=args.steps,
    collection_step_num_env_steps=1024,
    update_step_num_repetitions=4,
    batch_size=256,
    show_progress=False,
)
result = algorithm.run_training(params)
evaluation = Collector(policy, DummyVectorEnv([make_env] * 16)).collect(n_episode=100, reset_before_collect=True)
print(f"{result.train_step:,} steps · mean return {evaluation.returns.mean():.2f} ± {evaluation.returns.std():.2f}")
