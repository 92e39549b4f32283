"""OPR for Stable-Baselines3: a callback for PPO, A2C and classes derived from them.

model = PPO("MlpPolicy", "CartPole-v1")
model.learn(100_000, callback=OPRCallback())
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from optimist.core.config import OPRConfig, require_config
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Steps
from optimist.errors import ConfigError, missing_extra

try:
    from stable_baselines3 import A2C, PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecMonitor, VecNormalize
except ImportError as error:
    raise missing_extra("the Stable-Baselines3 integration", "sb3", "stable-baselines3") from error


class OPRCallback(BaseCallback):
    """Optimistic Policy Regularization for an on-policy model of Stable-Baselines3; `opr` is the regularizer.

    Good episodes are stored and rewards shaped after each rollout. The cloning loss is part of every gradient step: its
    gradient is added when the model clears its own, so that clipping and the optimiser see the sum.
    """

    opr: OptimisticRegularizer
    observed_model: Any = None  # the model whose episodes are stored
    env_counters: tuple[Any, ...] | None = None  # of the monitors at the end of training; None: before any training

    def __init__(
        self, config: OPRConfig | None = None, *, frame_stack: int = 1, seed: int = 0, verbose: int = 0
    ) -> None:
        """`frame_stack`: number of frames in an image observation (VecFrameStack); each frame is then stored once."""
        super().__init__(verbose)
        self.config, self.frame_stack, self.seed = require_config(config), frame_stack, seed
        if self.config.augment_share > 0:
            raise ConfigError("Stable-Baselines3's minibatches take no replayed rows: set augment_share = 0")
        self.rollout: list[tuple[NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]] = []
        self.collecting = self.learning = False

    def _init_callback(self) -> None:
        self.learner: Any = self.model
        if not isinstance(self.model, PPO | A2C):
            raise ConfigError(
                f"the model is {type(self.model).__name__}; OPRCallback needs PPO, A2C or a class derived from them"
            )
        if isinstance(self.model.observation_space, spaces.Dict):
            raise ConfigError("observations are dictionaries; OPRCallback needs arrays: use FlattenObservation")
        self.policy = ModelPolicy(self.model.policy)
        self.monitors = Monitors(self.training_env)
        untrained = self.model is not self.observed_model and self.model._n_updates == 0
        if not hasattr(self, "opr") or untrained:  # a trained model, perhaps loaded from a file, keeps the memory
            self.observed_model = self.model
            self.opr = OptimisticRegularizer(
                self.config,
                gamma=self.model.gamma,
                gae_lambda=self.model.gae_lambda,
                seed=self.seed,
                frame_stack=self.frame_stack,
                device=self.model.device,
            )

    def _on_training_start(self) -> None:
        restarted = bool(self.learner._last_episode_starts.all())
        if restarted or self.rollout or self.env_counters != self.monitors.counters():
            # Restarted, stopped within a rollout, or stepped by other code: unfinished episodes have gaps.
            self.opr.forget_unfinished()
            self.start_missing = np.full(self.training_env.num_envs, not restarted)
            self.episode_steps = np.zeros(self.training_env.num_envs, int)
        self.rollout, self.collecting, self.learning = [], False, False
        other = getattr(vars(self.optimizer).get("zero_grad"), "__self__", None)
        if isinstance(other, OPRCallback) and other is not self and other.locals is self.locals:
            raise ConfigError("two OPRCallbacks act on one model: pass one")
        self.optimizer.zero_grad = self._start_with_cloning

    def _on_rollout_start(self) -> None:
        self.rollout = []  # rewards, dones and infos of each step
        self.collecting, self.learning = True, False
        if self.opr.updates:
            self.opr.after_update(self.policy, self._step)

    def _on_step(self) -> bool:
        if not self.collecting:
            raise ConfigError("OPRCallback missed a rollout's start; pass it to learn directly, alone or in a list")
        # Copied, because the model adds the values after time limits to these rewards in place.
        rewards, dones = np.array(self.locals["rewards"], np.float32), np.array(self.locals["dones"], np.bool_)
        self.rollout.append((rewards, dones, self.locals["infos"]))
        return True

    def _on_rollout_end(self) -> None:
        buffer, steps = self.learner.rollout_buffer, self._steps()
        self.opr.observe(steps)
        shaped = self.opr.shape(steps, self.policy)
        if shaped is not steps.rewards:
            buffer.rewards += (shaped - steps.rewards).cpu().numpy()
            buffer.compute_returns_and_advantage(last_values=self.locals["values"], dones=self.locals["dones"])
        for name, value in self.opr.metrics().items():
            self.logger.record(name, value)
        self.rollout, self.collecting, self.learning = [], False, True

    def _on_training_end(self) -> None:
        self.opr.after_update(self.policy, self._step)
        self.learning, self.env_counters = False, self.monitors.counters()
        del self.optimizer.zero_grad  # restores the method of the class

    def state_dict(self) -> dict[str, Any]:
        """Return the memory and the state of OPR, for `torch.save`; `model.save` does not hold it."""
        return self.opr.state_dict()

    def load_state_dict(self, state: dict[str, Any], model: Any) -> None:
        """Restore `state_dict` for a model that continues training with this callback."""
        self.init_callback(model)
        self.observed_model = model
        self.opr.load_state_dict(state, self.policy)

    @property
    def optimizer(self) -> Any:
        """The model's optimiser."""
        return self.learner.policy.optimizer

    def _steps(self) -> Steps:
        """Return the rollout as Steps. At a time limit the model adds γ V(next state) to the reward."""
        buffer, gamma = self.learner.rollout_buffer, self.learner.gamma
        rewards, dones = (np.stack(column) for column in list(zip(*self.rollout, strict=True))[:2])
        bootstraps = (buffer.rewards - rewards) / gamma if gamma else np.zeros_like(rewards)
        optional: dict[str, Tensor] = {}
        ends = dones
        if self.monitors.present:  # wrappers may clip rewards and end episodes at a lost life
            totals = [
                [info["episode"]["r"] if "episode" in info else np.nan for info in row] for *_, row in self.rollout
            ]
            optional["raw_rewards"] = torch.tensor(totals, dtype=torch.float64).nan_to_num()
            ends = ~np.isnan(totals)
            optional["episode_ends"] = torch.from_numpy(ends)
            self._require_seen_ends(ends)
        if self.start_missing.any():
            optional["valid"] = self._tensor(ends.cumsum(0) - ends > 0) | ~self._tensor(self.start_missing)
            self.start_missing &= ~ends.any(0)
        discrete = isinstance(self.learner.action_space, spaces.Discrete)
        return Steps(
            obs=self._tensor(buffer.observations),
            actions=self._tensor(
                buffer.actions[..., 0].astype(np.int64) if discrete else buffer.actions.astype(np.float32)
            ),
            rewards=self._tensor(rewards),
            logp=self._tensor(buffer.log_probs),
            dones=self._tensor(dones),
            bootstraps=self._tensor(bootstraps),
            **optional,
        )

    def _require_seen_ends(self, ends: NDArray[np.bool_]) -> None:
        """Raise if a monitor misses an end: it would report several episodes as one."""
        for (_, dones, infos), ended in zip(self.rollout, ends, strict=True):
            self.episode_steps += 1
            for n in np.flatnonzero(dones):
                cut_off = bool(infos[n].get("TimeLimit.truncated")) and not ended[n]
                if cut_off or (ended[n] and infos[n]["episode"]["l"] < self.episode_steps[n]):
                    raise ConfigError(
                        "a wrapper outside the Monitor ends episodes (a time limit?), which the Monitor does not see: "
                        "put the Monitor outside that wrapper, or use VecMonitor"
                    )
            self.episode_steps[ended] = 0

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.tensor(values, device=self.learner.device)  # a copy: the model overwrites its buffer

    def _start_with_cloning(self, set_to_none: bool = True) -> None:
        """Set the gradients to those of the cloning loss, in place of the optimiser's `zero_grad`."""
        self._zero_grad(set_to_none)
        if not self.learning:  # an error stopped `learn` before it could remove this method
            return
        loss = self.opr.loss(self.policy)
        if loss.requires_grad:
            torch.autograd.backward(loss)

    def _step(self, loss: Tensor) -> None:
        """Take one step of the model's optimiser on this loss alone."""
        self._zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.learner.policy.parameters(), self.learner.max_grad_norm)
        self.optimizer.step()

    def _zero_grad(self, set_to_none: bool = True) -> None:
        type(self.optimizer).zero_grad(self.optimizer, set_to_none)


class Monitors:
    """The episode monitors around a model's environments."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.vec_monitors = env, list[VecMonitor]()
        inner = env
        while isinstance(inner, VecEnvWrapper):
            if isinstance(inner, VecMonitor):
                self.vec_monitors.append(inner)
            if isinstance(inner, VecNormalize) and inner.norm_reward and self.vec_monitors:
                raise ConfigError("VecMonitor outside VecNormalize sums normalised rewards: put VecMonitor inside")
            inner = inner.venv
        self.in_each_env = all(env.env_is_wrapped(Monitor))
        self.present = bool(self.vec_monitors) or self.in_each_env

    def counters(self) -> tuple[Any, ...]:
        """Return counters that change with every step of the environments; empty without monitors."""
        steps = self.env.get_attr("total_steps") if self.in_each_env else []
        return *steps, *((monitor.episode_count, *monitor.episode_lengths) for monitor in self.vec_monitors)


class ModelPolicy(torch.nn.Module):
    """A model's policy behind the policy protocol of OPR."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy = policy

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π(a|s), [B]."""
        logp: Tensor = self.policy.evaluate_actions(obs, actions)[1]
        return logp

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        values: Tensor = self.policy.predict_values(obs)
        return values.flatten()
