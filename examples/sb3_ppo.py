"""OPR in Stable-Baselines3: add one callback.

python examples/sb3_ppo.py [--no-opr] [--steps 60000] [--seed 2]
"""

import argparse

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import optimist.envs  # noqa: F401  registers DeepSea
from optimist import OPRConfig
from optimist.integrations import OPRCallback

parser = argparse.ArgumentParser()
parser.add_argument("--no-opr", action="store_true")
parser.add_argument("--steps", type=int, default=60_000)
parser.add_argument("--seed", type=int, default=2)
args = parser.parse_args()

envs = make_vec_env(lambda: gym.make("optimist/DeepSea-v0", size=10, map_seed=args.seed), n_envs=16, seed=args.seed)
model = PPO(
    "MlpPolicy", envs, n_steps=64, batch_size=256, n_epochs=4, ent_coef=0.01, learning_rate=1e-3, seed=args.seed
)
callback = None if args.no_opr else OPRCallback(OPRConfig())  # OPR
model.learn(args.steps, callback=callback)
mean, spread = evaluate_policy(model, envs, n_eval_episodes=100, deterministic=False)
print(f"{model.num_timesteps:,} steps · mean return {mean:.2f} ± {spread:.2f}")
