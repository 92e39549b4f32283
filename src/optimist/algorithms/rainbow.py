"""Rainbow: DQN with distributions, n-step returns and priorities; with an OptimisticRegularizer, Rainbow+OPR."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from optimist.algorithms.dqn import DQN, QTerms
from optimist.algorithms.value_based_config import RainbowConfig
from optimist.core.anchor import Anchor
from optimist.losses.distributional import cross_entropy, project
from optimist.losses.policy import weighted_mean
from optimist.networks.q_network import QNetwork
from optimist.replay.buffer import Replay, Transitions
from optimist.replay.prioritized import PrioritizedReplay


class Rainbow(DQN):
    """Rainbow (Hessel et al., 2018); dueling streams and noisy layers are the network's part."""

    config: RainbowConfig

    def __init__(
        self,
        policy: QNetwork,
        config: RainbowConfig,
        anchor: Anchor | None = None,
        *,
        seed: int = 0,
        frame_stack: int = 1,
    ) -> None:
        super().__init__(policy, config, anchor, seed=seed, frame_stack=frame_stack)

    def make_replay(self, frame_stack: int, device: torch.device | str) -> Replay:
        """n-step transitions, drawn by priority if there is an exponent."""
        cfg = self.config
        if cfg.priority_exponent == 0:
            return Replay(
                cfg.replay_capacity, n_step=cfg.n_step, gamma=cfg.gamma, frame_stack=frame_stack, device=device
            )
        return PrioritizedReplay(
            cfg.replay_capacity,
            priority_exponent=cfg.priority_exponent,
            n_step=cfg.n_step,
            gamma=cfg.gamma,
            frame_stack=frame_stack,
            device=device,
        )

    def minibatches(self, progress: float) -> Iterator[Transitions]:
        """One for each gradient step, by the priorities that the one before left; β grows over the run."""
        if not isinstance(self.replay, PrioritizedReplay):
            yield from super().minibatches(progress)
            return
        cfg = self.config
        exponent = cfg.importance_exponent + (cfg.importance_exponent_final - cfg.importance_exponent) * progress
        for _ in range(cfg.gradient_steps):
            yield self.replay.sample_by_priority(cfg.minibatch_size, exponent, self.generator)

    def learn(self, batch: Transitions) -> QTerms:
        """One gradient step; the drawn steps' losses become their priorities."""
        terms = super().learn(batch)
        if isinstance(self.replay, PrioritizedReplay):
            self.replay.set_priorities(batch.positions, terms.row_losses.to(self.replay.device))
        return terms

    def losses(self, batch: Transitions) -> QTerms:
        """L_total = E[w D(Φ T Z ‖ Z(s, a))] + λ_BC L_BC; DQN's where there is no distribution."""
        if self.config.atoms == 1:
            return super().losses(batch)
        logits = self.policy(batch.obs, self.policy.draw_noise(self.generator))  # [B, A, atoms]
        taken = logits[torch.arange(len(logits), device=logits.device), batch.actions]  # [B, atoms]
        row_losses = cross_entropy(taken, self.target_distributions(batch))
        return QTerms(
            td=weighted_mean(row_losses, batch.weights),
            anchor=self.anchor.loss(self.cloned),
            mean_q=self.policy.means(taken.detach()).mean(),
            row_losses=row_losses.detach(),
        )

    @torch.no_grad()
    def target_distributions(self, batch: Transitions) -> Tensor:
        """Φ T Z_target(s′, a*), [B, atoms]."""
        probabilities = self.target(batch.next_obs, self.target.draw_noise(self.generator)).softmax(-1)
        actions = self.chosen(batch.next_obs)
        if actions is None:
            actions = (probabilities @ self.target.atoms).argmax(-1)
        best = probabilities[torch.arange(len(actions), device=actions.device), actions]
        return project(best, batch.returns, batch.discounts, self.policy.atoms)
