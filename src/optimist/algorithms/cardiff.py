"""PPO as the Cardiff agent of CAGE Challenge 2 trains; with an OptimisticRegularizer it is Cardiff+OPR."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from optimist.algorithms.base import ActorCriticLearner, LossTerms, MetricMeans
from optimist.config import CardiffPPOConfig
from optimist.core.advantages import discounted_returns
from optimist.core.anchor import Anchor
from optimist.core.batch import Batch
from optimist.losses.policy import approximate_kl, clipped_surrogate
from optimist.losses.value import squared_error
from optimist.networks.actor_critic import ActorCritic
from optimist.rollout.batch import Rollout

SMALL = 1e-5
"""Added to the standard deviation of the returns."""


class CardiffPPO(ActorCriticLearner):
    """PPO with Monte-Carlo returns standardised over the buffer, A = R − V under the current critic, full batches.

    Rows hold returns in units of reward and the loss standardises them, so that rows replayed from M are measured
    like fresh ones. The anchor, which compares returns with values, sees the critic in units of reward too.
    """

    def __init__(
        self, policy: ActorCritic, config: CardiffPPOConfig, anchor: Anchor | None = None, *, seed: int = 0
    ) -> None:
        super().__init__(policy, config, anchor, seed)
        self.config = config
        self.optimizer = torch.optim.Adam(
            [self.flat], lr=config.learning_rate, betas=config.adam_betas, eps=config.adam_eps, fused=True
        )
        self.in_rewards = PolicyInRewards(policy)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Improve the policy on one rollout: memory → shaping → returns → loss → step."""
        cfg = self.config
        self.set_learning_rate(rollout.progress)

        self.anchor.observe(rollout)  # E enters M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.in_rewards)  # [T, N]

        returns = monte_carlo_returns(rewards, rollout, cfg.gamma)  # [T, N]
        played = returns if rollout.valid is None else returns[rollout.valid]
        if played.numel():
            self.in_rewards.set_scale(played)
        advantages = returns - self.in_rewards.from_critic(rollout.values)  # for the anchor: epochs have their own
        batch = rollout.flatten(advantages, returns)  # [T·N]
        batch = self.anchor.augment(batch, self.in_rewards)  # good transitions join the batch

        means = MetricMeans()
        for whole in batch.minibatches(cfg.epochs, max(1, len(batch)), self.generator):  # none of dead steps alone
            terms = self.losses(whole)
            self.step(terms.total)
            means.add(terms)
        self.anchor.after_update(self.in_rewards, self.step_alone)  # e.g. a BC phase now and then
        return means.result() | self.anchor.metrics()

    def losses(self, batch: Batch) -> LossTerms:
        """L_total = L_clip + c_v L_V − c_ent H + λ_BC L_BC, with A = R − V of this epoch, not normalised."""
        cfg = self.config
        logp, entropy, values = self.policy.evaluate(batch.obs, batch.actions)
        returns = self.in_rewards.standardize(batch.returns)
        advantages = returns - values.detach()
        mean_entropy = batch.of_fresh(entropy).mean()
        return LossTerms(
            policy=clipped_surrogate(logp, batch.logp_old, advantages, cfg.clip_eps, batch.weights),
            value=cfg.value_coef * squared_error(values, returns, batch.value_weights),
            entropy=-cfg.entropy_coef * mean_entropy,
            anchor=self.anchor.loss(self.in_rewards, batch.good),  # λ_BC included; rows drawn outside
            kl=approximate_kl(batch.of_fresh(logp), batch.of_fresh(batch.logp_old)),
            mean_entropy=mean_entropy,
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`; the scale of the returns is found anew in each update."""
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
        """From now on returns are standardised by the mean and the sample standard deviation of these."""
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
        """What the critic says, in units of reward."""
        return self.mean + self.scale * values


def monte_carlo_returns(rewards: Tensor, rollout: Rollout, gamma: float) -> Tensor:
    """Discounted returns [T, N], broken only at ends that the learner sees; nothing is known behind the buffer.

    The streams of the N environments follow one another as games do in a buffer that is filled game after game: where
    a stream stops at an end that the learner ignores (`truncation = "ignored"`), the next stream's return leaks in.
    Where it stops within a game the return is cut off.
    """
    game_over = rollout.dones if rollout.episode_ends is None else rollout.episode_ends.to(rollout.dones.device)
    ends = rollout.dones.clone()
    ends[-1] |= ~game_over[-1]
    rewards_in_turn, ends_in_turn = rewards.T.flatten(), ends.T.flatten()  # [N·T]
    returns = discounted_returns(rewards_in_turn, ends_in_turn, torch.zeros_like(rewards_in_turn), gamma)
    return returns.view(rewards.T.shape).T
