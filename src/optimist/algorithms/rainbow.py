"""Rainbow: DQN with distributions, n-step returns and priorities; with an OptimisticRegularizer, Rainbow+OPR."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from optimist.algorithms.dqn import DQN
from optimist.algorithms.q_terms import QTerms
from optimist.algorithms.value_based_config import RainbowConfig
from optimist.core.anchor import Anchor
from optimist.core.memory import GoodRows
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
        graphs: bool = False,
    ) -> None:
        super().__init__(policy, config, anchor, seed=seed, frame_stack=frame_stack, graphs=graphs)
        beta = config.importance_exponent
        on_device = self.replay.device.type != "cpu"  # a recorded draw reads it where it lies
        self.beta: float | Tensor = torch.tensor(beta, device=self.replay.device).double() if on_device else beta

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

    def set_progress(self, progress: float) -> None:
        """What changes over the run; β grows."""
        super().set_progress(progress)
        cfg = self.config
        beta = cfg.importance_exponent + (cfg.importance_exponent_final - cfg.importance_exponent) * progress
        if isinstance(self.beta, Tensor):
            self.beta.fill_(beta)
        else:
            self.beta = beta

    def draw(self) -> Transitions:
        """One minibatch, by the priorities that the gradient step before left."""
        if not isinstance(self.replay, PrioritizedReplay):
            return super().draw()
        return self.replay.sample_by_priority(self.config.minibatch_size, self.beta, self.generator)

    def minibatches(self) -> Iterator[Transitions]:
        """One for each gradient step."""
        if not isinstance(self.replay, PrioritizedReplay):
            yield from super().minibatches()
            return
        for _ in range(self.config.gradient_steps):
            yield self.draw()

    def improve(self, batch: Transitions, good: GoodRows | None = None) -> QTerms:
        """One step down the gradient; the drawn steps' losses become their priorities."""
        terms = super().improve(batch, good)
        if isinstance(self.replay, PrioritizedReplay):
            self.replay.set_priorities(batch.positions, terms.row_losses.to(self.replay.device))
        return terms

    def losses(self, batch: Transitions, good: GoodRows | None = None) -> QTerms:
        """L_total = E[w D(Φ T Z ‖ Z(s, a))] + λ_BC L_BC; DQN's where there is no distribution."""
        if self.config.atoms == 1:
            return super().losses(batch, good)
        noise = self.policy.draw_noise(self.generator)
        targets = self.bootstrapping.begin(lambda: self.target_distributions(batch))
        taken = of_actions(self.policy(batch.obs, noise), batch.actions)  # [B, atoms]
        row_losses = cross_entropy(taken, targets())
        return QTerms(
            td=weighted_mean(row_losses, batch.weights),
            anchor=self.anchor.loss(self.cloned, good),
            mean_q=self.policy.means(taken.detach()).mean(),
            row_losses=row_losses.detach(),
        )

    @torch.no_grad()
    def target_distributions(self, batch: Transitions) -> Tensor:
        """Φ T Z_target(s′, a*), [B, atoms]."""
        valued = self.valuing.begin(lambda: self.target(batch.next_obs, self.target.draw_noise(self.generator)))
        actions = self.chosen(batch.next_obs)
        logits = valued()
        if actions is None:
            actions = self.target.means(logits).argmax(-1)
        return project(of_actions(logits, actions).softmax(-1), batch.returns, batch.discounts, self.policy.atoms)


def of_actions(outputs: Tensor, actions: Tensor) -> Tensor:
    """What a network says [B, A, atoms] of one action [B] a row, [B, atoms]."""
    index = actions.view(-1, 1, 1).expand(-1, 1, outputs.shape[-1])
    return outputs.gather(1, index).squeeze(1)
