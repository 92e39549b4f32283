"""Rainbow: DQN with distributions, n-step returns and priorities; with an OptimisticRegularizer, Rainbow+OPR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from optimist.algorithms.base import QTerms
from optimist.algorithms.dqn import DQN
from optimist.config.value_based import RainbowConfig
from optimist.core.anchor import Anchor, anchor_loss
from optimist.core.memory import GoodRows
from optimist.losses.actor_critic import weighted_mean
from optimist.losses.q_learning import cross_entropy, project
from optimist.networks.q_network import QNetwork
from optimist.replay.prioritized import PrioritizedReplay
from optimist.replay.transitions import Replay, Transitions


class Rainbow(DQN):
    """Rainbow (Hessel et al., 2018); dueling streams and noisy layers are part of the network."""

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
        beta = config.importance_exponent
        on_device = self.replay.device.type != "cpu"  # updated in place: captured CUDA graphs hold its address
        self.beta: float | Tensor = torch.tensor(beta, device=self.replay.device).double() if on_device else beta

    def make_replay(self, frame_stack: int, device: torch.device | str) -> Replay:
        """Create a replay of n-step transitions, prioritised if there is an exponent."""
        cfg = self.config
        settings: dict[str, Any] = {"n_step": cfg.n_step, "gamma": cfg.gamma, "frame_stack": frame_stack}
        if cfg.priority_exponent == 0:
            return Replay(cfg.replay_capacity, device=device, **settings)
        return PrioritizedReplay(
            cfg.replay_capacity, priority_exponent=cfg.priority_exponent, device=device, **settings
        )

    def set_schedules(self, progress: float) -> None:
        """Set what changes over the run; β grows."""
        super().set_schedules(progress)
        cfg = self.config
        beta = cfg.importance_exponent + (cfg.importance_exponent_final - cfg.importance_exponent) * progress
        if isinstance(self.beta, Tensor):
            self.beta.fill_(beta)
        else:
            self.beta = beta

    def draw(self) -> Transitions:
        """Draw one minibatch by the priorities that the previous gradient step set."""
        if not isinstance(self.replay, PrioritizedReplay):
            return super().draw()
        return self.replay.sample_by_priority(self.config.minibatch_size, self.beta, self.generator)

    def minibatches(self) -> Iterator[Transitions]:
        """Yield one minibatch for each gradient step."""
        if not isinstance(self.replay, PrioritizedReplay):
            yield from super().minibatches()
            return
        for _ in range(self.config.gradient_steps):
            yield self.draw()

    def learn(self, batch: Transitions, good: GoodRows | None) -> QTerms:
        """Take one gradient step; the losses of the drawn steps become their priorities."""
        terms = super().learn(batch, good)
        if isinstance(self.replay, PrioritizedReplay):
            self.replay.set_priorities(batch.positions, terms.row_losses.to(self.replay.device))
        return terms

    def losses(self, batch: Transitions, good: GoodRows | None = None) -> QTerms:
        """L_total = E[w D(Φ T Z ‖ Z(s, a))] + λ_BC L_BC; DQN's loss where there is no distribution."""
        if self.config.atoms == 1:
            return super().losses(batch, good)
        noise = self.policy.draw_noise(self.generator)
        targets = self.start("targets", lambda: self.target_distributions(batch))
        taken = distribution_of(self.policy(batch.obs, noise), batch.actions)  # [B, atoms]
        row_losses = cross_entropy(taken, targets())
        return QTerms(
            td=weighted_mean(row_losses, batch.weights),
            anchor=anchor_loss(self.anchor, self.cloned, good),  # λ_BC included
            mean_q=self.policy.means(taken.detach()).mean(),
            row_losses=row_losses.detach(),
        )

    @torch.no_grad()
    def target_distributions(self, batch: Transitions) -> Tensor:
        """Φ T Z_target(s′, a*), [B, atoms]."""
        next_logits = self.start(
            "next values", lambda: self.target(batch.next_obs, self.target.draw_noise(self.generator))
        )
        actions = self.double_actions(batch.next_obs)
        logits = next_logits()
        if actions is None:
            actions = self.target.means(logits).argmax(-1)
        probabilities = distribution_of(logits, actions).softmax(-1)
        return project(probabilities, batch.returns, batch.discounts, self.policy.atoms)


def distribution_of(outputs: Tensor, actions: Tensor) -> Tensor:
    """The distribution [B, atoms] that a network's outputs [B, A, atoms] give one action [B] per row."""
    index = actions.view(-1, 1, 1).expand(-1, 1, outputs.shape[-1])
    return outputs.gather(1, index).squeeze(1)
