"""A complete small PPO in plain torch; the lines marked OPR add Optimistic Policy Regularization to it.

python examples/own_loop.py [--no-opr] [--steps 60000] [--seed 1]

The task is DeepSea-10: one of 1,024 paths leads to the goal. OPR keeps a success but does not search for one. With
seed 1 the goal is found and kept; with seed 2 it is never found. Machines that round differently may give other
results.
"""

import argparse

import gymnasium as gym
import torch
from torch import nn

import optimist.envs  # noqa: F401  registers DeepSea
from optimist import OPRConfig, OptimisticRegularizer, Steps

parser = argparse.ArgumentParser()
parser.add_argument("--no-opr", action="store_true")
parser.add_argument("--steps", type=int, default=60_000)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()

SIZE, NUM_ENVS, T, GAMMA, LAMBDA = 10, 16, 64, 0.99, 0.95
torch.set_num_threads(1)
torch.manual_seed(args.seed)
envs = gym.make_vec("optimist/DeepSea-v0", num_envs=NUM_ENVS, size=SIZE)


class Policy(nn.Module):
    """A policy with the two methods that OPR needs: `log_prob(obs, actions)` and `value(obs)`."""

    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(
            nn.Embedding(SIZE * SIZE, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)
        )
        self.critic = nn.Sequential(
            nn.Embedding(SIZE * SIZE, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )

    def log_prob(self, obs, actions):
        return torch.distributions.Categorical(logits=self.actor(obs)).log_prob(actions)

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3, eps=1e-5)
opr = OptimisticRegularizer(OPRConfig(enabled=not args.no_opr), gamma=GAMMA, seed=args.seed)  # OPR

goals: list[bool] = []
obs = torch.from_numpy(envs.reset(seed=args.seed)[0])
for update in range(args.steps // (T * NUM_ENVS)):
    rows = []
    for _ in range(T):
        with torch.no_grad():
            distribution, values = torch.distributions.Categorical(logits=policy.actor(obs)), policy.value(obs)
        actions = distribution.sample()
        next_obs, rewards, terminated, _, infos = envs.step(actions.numpy())
        done = torch.from_numpy(terminated)
        rows.append((obs, actions, torch.from_numpy(rewards).float(), distribution.log_prob(actions), done, values))
        goals += [bool(goal) for goal in infos["final_info"]["goal"][terminated]] if terminated.any() else []
        obs = torch.from_numpy(next_obs)
    b_obs, b_actions, b_rewards, b_logp, b_dones, b_values = (torch.stack(column) for column in zip(*rows, strict=True))

    steps = Steps(obs=b_obs, actions=b_actions, rewards=b_rewards, logp=b_logp, dones=b_dones)  # OPR
    opr.observe(steps)  # OPR: admits finished episodes that are good
    b_rewards = opr.shape(steps, policy)  # OPR: rewards are shaped

    with torch.no_grad():
        following = torch.cat([b_values[1:], policy.value(obs)[None]]) * ~b_dones
    deltas, advantages, running = b_rewards + GAMMA * following - b_values, torch.zeros_like(b_values), 0.0
    for t in reversed(range(T)):
        running = deltas[t] + GAMMA * LAMBDA * ~b_dones[t] * running
        advantages[t] = running
    columns = [column.flatten() for column in (b_obs, b_actions, b_logp, advantages, advantages + b_values)]

    for _ in range(4):
        for index in torch.randperm(T * NUM_ENVS).split(256):
            m_obs, m_actions, m_logp, m_advantages, m_returns = (column[index] for column in columns)
            m_advantages = (m_advantages - m_advantages.mean()) / (m_advantages.std() + 1e-8)
            distribution = torch.distributions.Categorical(logits=policy.actor(m_obs))
            ratio = (distribution.log_prob(m_actions) - m_logp).exp()
            loss = -torch.min(ratio * m_advantages, ratio.clamp(0.8, 1.2) * m_advantages).mean()
            loss = loss + 0.5 * (policy.value(m_obs) - m_returns).square().mean() - 0.01 * distribution.entropy().mean()
            loss = loss + opr.loss(policy)  # OPR: cloning of good episodes
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    if update % 10 == 9:
        kept = sum(goals[-100:]) / len(goals[-100:])
        print(
            f"{(update + 1) * T * NUM_ENVS:>7,} steps · goal reached {sum(goals)} times · last 100 episodes {kept:.0%}"
        )
