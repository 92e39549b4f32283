"""PPO as the Cardiff agent of CAGE Challenge 2 trains; with an OptimisticRegularizer it is Cardiff+OPR."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.config import CardiffPPOConfig
from optimist.core.advantages import discounted_returns
from optimist.core.anchor import Anchor, anchor_loss
from optimist.core.memory import GoodRows
from optimist.core.steps import Batch, Rollout
from optimist.losses.actor_critic import approximate_kl, clipped_surrogate, squared_error
from optimist.networks.actor_critic import ActorCritic

SMALL = 1e-5
"""Added to the standard deviation of the returns."""


class CardiffPPO(ActorCriticLearner):
    """PPO with Monte-Carlo returns standardised over the buffer, A = R − V under the current critic, full batches.

    Rows hold returns in units of reward and the loss standardises them, so that rows replayed from M are on the scale
    of fresh ones. The anchor, which compares returns with values, sees the critic in units of reward too.
    """

    config: CardiffPPOConfig

    def __init__(
        self, policy: ActorCritic, config: CardiffPPOConfig, anchor: Anchor | None = None, *, seed: int = 0
    ) -> None:
        super().__init__(policy, config, anchor, seed)
        self.optimizer = torch.optim.Adam(
            [self.flat], lr=config.learning_rate, betas=config.adam_betas, eps=config.adam_eps, fused=True
        )
        self.in_rewards = PolicyInRewards(policy)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout: memory → shaping → returns → loss → step."""
        cfg = self.config
        self.set_learning_rate(rollout.progress)

        self.anchor.observe(rollout)  # E is admitted to M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.in_rewards)  # [T, N]

        returns = monte_carlo_returns(rewards, rollout, cfg.gamma)  # [T, N]
        played = returns if rollout.valid is None else returns[rollout.valid]
        if played.numel():
            self.in_rewards.set_scale(played)
        advantages = returns - self.in_rewards.from_critic(rollout.values)  # for the anchor: epochs have their own
        batch = rollout.flatten(advantages, returns)  # [T·N]
        replayed = self.anchor.replay(batch, self.in_rewards)  # rows of M to join the batch, or None

        means = MetricMeans()
        sizes = [len(batch)] * cfg.epochs if len(batch) else []  # a rollout may consist of reset steps alone
        for good in self.anchor.sample(sizes, self.in_rewards):  # rows of M to clone, or None
            terms = self.losses(batch if replayed is None else self.anchor.join(batch, replayed), good)
            self.step(terms.total)
            means.add(terms)
        self.anchor.after_update(self.in_rewards, self.step_alone)  # such as a cloning phase
        return means.result() | self.anchor.metrics()

    def losses(self, batch: Batch, good: GoodRows | None = None) -> LossTerms:
        """L_total = L_clip + c_v L_V − c_ent H + λ_BC L_BC, with A = R − V of this epoch, not normalised."""
        cfg = self.config
        logp, entropy, values = self.policy.evaluate(batch.obs, batch.actions)
        returns = self.in_rewards.standardize(batch.returns)
        advantages = returns - values.detach()
        mean_entropy = batch.fresh(entropy).mean()
        return LossTerms(
            policy=clipped_surrogate(logp, batch.logp_old, advantages, cfg.clip_eps, batch.weights),
            value=cfg.value_coef * squared_error(values, returns, batch.value_weights),
            entropy=-cfg.entropy_coef * mean_entropy,
            anchor=anchor_loss(self.anchor, self.in_rewards, good),  # λ_BC included
            kl=approximate_kl(batch.fresh(logp), batch.fresh(batch.logp_old)),
            mean_entropy=mean_entropy,
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the scale of the returns is computed in each update."""
        self.policy.load_state_dict(state["policy"])
        self.load_optimizer(state["optimizer"])
        self.generator.set_state(state["generator"])
        self.anchor.load_state_dict(state["anchor"], self.in_rewards)


class PolicyInRewards(nn.Module):
    """The policy as its anchor sees it: V in units of reward, though the critic predicts standardised returns."""

    def __init__(self, policy: ActorCritic) -> None:
        super().__init__()
        self.policy = policy
        self.mean: Tensor | float = 0.0
        self.scale: Tensor | float = 1.0

    def set_scale(self, returns: Tensor) -> None:
        """Standardise returns by the mean and the sample standard deviation of these."""
        spread = returns.std() if returns.numel() > 1 else torch.zeros_like(returns).sum()
        self.mean, self.scale = returns.mean(), spread + SMALL

    def standardize(self, returns: Tensor) -> Tensor:
        """Returns in the critic's units."""
        return (returns - self.mean) / self.scale

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π_θ(a|s), [B]."""
        return self.policy.log_prob(obs, actions)

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s) in units of reward, each [B]."""
        logp, entropy, values = self.policy.evaluate(obs, actions)
        return logp, entropy, self.mean + self.scale * values

    def value(self, obs: Tensor) -> Tensor:
        """V(s) in units of reward, [B]."""
        return self.from_critic(self.policy.value(obs))

    def from_critic(self, values: Tensor) -> Tensor:
        """Convert the critic's values to units of reward."""
        return self.mean + self.scale * values


def monte_carlo_returns(rewards: Tensor, rollout: Rollout, gamma: float) -> Tensor:
    """Discounted returns [T, N], cut at the ends that the learner sees and at the end of the buffer.

    The streams of the N environments are concatenated, as in a buffer that is filled episode after episode: where a
    stream stops at an end that the learner ignores (`truncation = "ignored"`), the next stream's return leaks in. Where
    it stops within an episode the return is cut.
    """
    game_over = rollout.dones if rollout.episode_ends is None else rollout.episode_ends.to(rollout.dones.device)
    ends = rollout.dones.clone()
    ends[-1] |= ~game_over[-1]
    rewards_in_turn, ends_in_turn = rewards.T.flatten(), ends.T.flatten()  # [N·T]
    returns = discounted_returns(rewards_in_turn, ends_in_turn, torch.zeros_like(rewards_in_turn), gamma)
    return returns.view(rewards.T.shape).T
