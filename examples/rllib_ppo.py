"""OPR in RLlib's PPO: one line changes the config.

python examples/rllib_ppo.py [--no-opr] [--steps 60000] [--seed 2]
"""

import argparse

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations

import optimist.envs  # noqa: F401  registers DeepSea
from optimist import OPRConfig
from optimist.integrations import with_opr

parser = argparse.ArgumentParser()
parser.add_argument("--no-opr", action="store_true")
parser.add_argument("--steps", type=int, default=60_000)
parser.add_argument("--seed", type=int, default=2)
args = parser.parse_args()

config = (
    PPOConfig()
    .environment("optimist/DeepSea-v0", env_config={"size": 10, "map_seed": args.seed})
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16, rollout_fragment_length=64)
    .env_runners(env_to_module_connector=lambda env, spaces, device: FlattenObservations())  # one-hot cells
    .training(train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=4, lr=1e-3, entropy_coeff=0.01)
    .training(lambda_=0.95, use_kl_loss=False)
    .rl_module(model_config={"fcnet_hiddens": [64, 64], "fcnet_activation": "tanh"})
    .debugging(seed=args.seed, log_level="ERROR")
)
if not args.no_opr:
    config = with_opr(config, OPRConfig())  # OPR
algorithm = config.build_algo()
steps = 0
while steps < args.steps:
    result = algorithm.train()
    steps = int(result["num_env_steps_sampled_lifetime"])
algorithm.stop()
mean = result["env_runners"]["episode_return_mean"]
print(f"{steps:,} steps · mean return of the last 100 episodes {mean:.2f}")
