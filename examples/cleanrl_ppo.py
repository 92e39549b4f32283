"""A small PPO in the order and with the names of CleanRL's ppo.py; the lines marked OPR add OPR to it.

python examples/cleanrl_ppo.py [--no-opr] [--total-timesteps 60416] [--seed 2]

CleanRL stores at `dones[t]` that an episode ended before step t: `Steps.from_cleanrl` reads this.
"""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import optimist.envs  # noqa: F401  registers DeepSea
from optimist import OPRConfig, OptimisticRegularizer, Steps  # OPR

parser = argparse.ArgumentParser()
parser.add_argument("--no-opr", action="store_true")
parser.add_argument("--env-id", default="optimist/DeepSea-v0", help="DeepSea-10 by default")
parser.add_argument("--total-timesteps", type=int, default=60_416)
parser.add_argument("--seed", type=int, default=2)
parser.add_argument("--autoreset", choices=["SameStep", "NextStep"], default="SameStep", help="CleanRL's is SameStep")
args = parser.parse_args()
args.num_envs, args.num_steps, args.gamma, args.gae_lambda = 16, 64, 0.99, 0.95
torch.set_num_threads(1)
np.random.seed(args.seed)
torch.manual_seed(args.seed)
device = torch.device("cpu")


def make_env():
    deep_sea = {"size": 10, "map_seed": args.seed} if "DeepSea" in args.env_id else {}
    env = gym.wrappers.FlattenObservation(gym.make(args.env_id, **deep_sea))
    return gym.wrappers.RecordEpisodeStatistics(env)


class Agent(nn.Module):
    def __init__(self, envs):
        super().__init__()
        size, actions = envs.single_observation_space.shape[0], envs.single_action_space.n
        self.critic = nn.Sequential(nn.Linear(size, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
        self.actor = nn.Sequential(nn.Linear(size, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, 2**0.5)
                nn.init.zeros_(layer.bias)
        nn.init.orthogonal_(self.actor[-1].weight, 0.01)

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)

    def log_prob(self, obs, actions):  # OPR
        return self.get_action_and_value(obs, actions)[1]

    def value(self, obs):  # OPR
        return self.get_value(obs).flatten()


envs = gym.vector.SyncVectorEnv([make_env] * args.num_envs, autoreset_mode=gym.vector.AutoresetMode(args.autoreset))
agent = Agent(envs)
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
opr = OptimisticRegularizer(  # OPR
    OPRConfig(enabled=not args.no_opr), gamma=args.gamma, seed=args.seed, device=device
)

obs = torch.zeros(args.num_steps, args.num_envs, *envs.single_observation_space.shape)
actions, logprobs, rewards, dones, values = torch.zeros(5, args.num_steps, args.num_envs)
next_obs = torch.Tensor(envs.reset(seed=args.seed)[0])
next_done = torch.zeros(args.num_envs)
global_step = 0
while global_step + args.num_steps * args.num_envs <= args.total_timesteps:
    for step in range(args.num_steps):
        global_step += args.num_envs
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
        actions[step], logprobs[step], values[step] = action, logprob, value.flatten()
        next_obs, reward, terminations, truncations, infos = envs.step(action.numpy())
        rewards[step] = torch.Tensor(reward)
        next_obs, next_done = torch.Tensor(next_obs), torch.Tensor(terminations | truncations)

    steps = Steps.from_cleanrl(  # OPR
        obs=obs,
        actions=actions,
        rewards=rewards,
        logprobs=logprobs,
        dones=dones,
        next_done=next_done,
        autoreset=envs.metadata["autoreset_mode"],
    )
    opr.observe(steps)  # OPR: admits finished episodes that are good
    rewards = opr.shape(steps, agent)  # OPR: rewards are shaped

    with torch.no_grad():
        next_value = agent.get_value(next_obs).flatten()
    advantages, lastgaelam = torch.zeros_like(rewards), 0.0
    for t in reversed(range(args.num_steps)):
        nextnonterminal = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
        nextvalues = next_value if t == args.num_steps - 1 else values[t + 1]
        delta = rewards[t] + args.gamma * nextvalues * nextnonterminal - values[t]
        advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nextnonterminal * lastgaelam
    returns = advantages + values

    b_obs = obs.flatten(0, 1)
    b_actions, b_logprobs, b_advantages, b_returns = (x.flatten() for x in (actions, logprobs, advantages, returns))
    for _ in range(4):
        for mb_inds in torch.randperm(args.num_steps * args.num_envs).split(256):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions[mb_inds])
            ratio, mb_advantages = (newlogprob - b_logprobs[mb_inds]).exp(), b_advantages[mb_inds]
            mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
            pg_loss = torch.max(-mb_advantages * ratio, -mb_advantages * ratio.clamp(0.8, 1.2)).mean()
            v_loss = 0.5 * (newvalue.flatten() - b_returns[mb_inds]).square().mean()
            loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
            loss = loss + opr.loss(agent)  # OPR: cloning of good episodes
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()

recent = [float(value) for env in envs.envs for value in list(env.return_queue)[-6:]]
print(f"{global_step:,} steps · mean return of the last {len(recent)} episodes {np.mean(recent):.2f}")
