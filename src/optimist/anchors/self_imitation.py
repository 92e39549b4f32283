"""SelfImitation: SIL behind the anchor protocol; with it A2C is A2C+SIL and PPO is PPO+SIL."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from optimist.anchors.config import SILConfig
from optimist.anchors.lower_bound import SelfImitationTerms, self_imitation
from optimist.anchors.past_steps import PastSteps
from optimist.core.advantages import discounted_returns
from optimist.core.anchor import OptimizerStep
from optimist.core.batch import Batch
from optimist.core.episode import Episode, EpisodeBuilder, Steps
from optimist.core.memory import GoodRows
from optimist.core.policy import Policy
from optimist.errors import ConfigError


class EvaluatingPolicy(Policy, Protocol):
    """A policy that gives log-probability, entropy and value at once."""

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s), each [B]."""


class SelfImitation:
    """Self-Imitation Learning (Oh et al., 2018, arXiv 1806.05635) for any actor-critic host.

    The host's own update is left as it is; after it come `updates` gradient steps, by the host's optimiser, on past
    steps whose return exceeds the value. Nothing here draws from the host's random numbers.
    """

    def __init__(
        self,
        config: SILConfig,
        *,
        gamma: float = 0.99,
        seed: int = 0,
        frame_stack: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        """`device`: where random numbers are drawn; the learner's, so that no draw waits for it."""
        self.config, self.gamma = config, gamma
        self.generator = torch.Generator(device).manual_seed(seed)
        self.builder = EpisodeBuilder(config.max_episode_steps, frame_stack=frame_stack)
        self.past = PastSteps(
            config.capacity_transitions,
            exponent=config.priority_exponent,
            importance_exponent=config.importance_exponent,
            frame_stack=frame_stack,
        )
        self.stored = 0  # episodes, in this update
        self._logged: dict[str, Tensor] = {}

    def observe(self, steps: Steps) -> None:
        """Finished episodes that the rule admits are stored, each step with the return that followed it."""
        self.stored, self._logged = 0, {}
        for finished in self.builder.add(steps):
            episode = finished.build()
            if self.config.admission == "any" or bool((episode.rewards > 0).any()):
                self.past.add(episode, self._returns(episode))
                self.stored += 1

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """The rewards as they are."""
        return steps.rewards

    def augment(self, batch: Batch, policy: Policy) -> Batch:
        """The batch as it is."""
        return batch

    def loss(self, policy: Policy, good: GoodRows | None = None) -> Tensor:
        """Zero: self-imitation takes steps of its own."""
        return torch.zeros(())

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """M gradient steps on past steps, once enough are stored."""
        if self.config.coef == 0 or self.past.num_transitions < self.config.start_transitions:
            return
        for _ in range(self.config.updates):
            terms = self._draw(policy)
            loss = terms.total(self.config)
            step(loss)
            self._logged = {
                "loss/sil": loss.detach(),
                "sil/advantage": terms.advantage.detach(),
                "sil/better": terms.valid.detach(),
            }

    def forget_unfinished(self) -> None:
        """Episodes in play were cut off: their environments have been restarted."""
        self.builder.forget_unfinished()

    def metrics(self) -> dict[str, float]:
        """What there is to log about the last update."""
        content = {
            "sil/stored": self.stored,
            "sil/transitions": self.past.num_transitions,
            "sil/bytes": self.past.num_bytes + self.builder.num_bytes,
        }
        return {name: float(value) for name, value in (content | self._logged).items()}

    def state_dict(self) -> dict[str, Any]:
        """Past steps, unfinished episodes and generator."""
        return {
            "past": self.past.state_dict(),
            "builder": self.builder.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Take over the state of `state_dict`, on the policy's device."""
        device = next(policy.parameters()).device if isinstance(policy, torch.nn.Module) else "cpu"
        self.past.load_state_dict(state["past"], device)
        self.builder.load_state_dict(state["builder"], device)
        self.generator.set_state(state["generator"])

    def _draw(self, policy: Policy) -> SelfImitationTerms:
        """The losses on one batch of past steps, whose priorities are set anew."""
        if not hasattr(policy, "evaluate"):
            raise ConfigError("SIL needs an actor-critic: a policy with evaluate(obs, actions) → log π, entropy, V")
        size = min(self.config.batch_size, self.past.num_transitions)  # as the authors do: few steps make a small step
        rows = self.past.draw(size, self.generator)
        logp, entropy, values = policy.evaluate(rows.obs, rows.actions)
        self.past.set_priorities(rows.rows, (rows.returns - values).clamp(0.0, self.config.advantage_clip))
        return self_imitation(logp, entropy, values, rows.returns, rows.weights, self.config)

    def _returns(self, episode: Episode) -> Tensor:
        """R of each step, as the learner counts: its rewards, its ends."""
        bootstraps = episode.bootstraps
        if self.config.time_limit == "end":
            bootstraps = torch.zeros_like(bootstraps)
        return discounted_returns(episode.rewards, episode.dones.bool(), bootstraps, self.gamma)
