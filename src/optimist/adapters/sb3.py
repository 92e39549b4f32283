"""OPR inside Stable-Baselines3: a callback for PPO, A2C and what is derived from them.

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

from optimist.core.batch import Batch
from optimist.core.config import OPRConfig, require_config
from optimist.core.episode import Steps
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, missing_extra

try:
    from stable_baselines3 import A2C, PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecMonitor, VecNormalize
except ImportError as error:
    raise missing_extra("the door to Stable-Baselines3", "sb3", "stable-baselines3") from error


class OPRCallback(BaseCallback):
    """Optimistic Policy Regularization for a model of Stable-Baselines3 that learns on-policy.

    Good episodes are kept and rewards shaped after a rollout. The cloning loss joins every gradient step: its gradient
    is added where the model clears its own, so that clipping and the optimiser see the sum. `opr` is the method itself.
    """

    opr: OptimisticRegularizer
    owner: Any = None  # the model whose episodes it holds
    clock: tuple[Any, ...] | None = None  # of the monitors when training ended; None: this one has not seen any

    def __init__(
        self, config: OPRConfig | None = None, *, frame_stack: int = 1, seed: int = 0, verbose: int = 0
    ) -> None:
        """`frame_stack`: frames an image observation is stacked of (VecFrameStack), which are then stored once."""
        super().__init__(verbose)
        self.config, self.frame_stack, self.seed = require_config(config), frame_stack, seed
        if self.config.augment_share > 0:
            raise ConfigError("Stable-Baselines3's minibatches have no place for replayed rows: set augment_share = 0")
        self.told: list[tuple[NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]] = []
        self.collecting = self.learning = False

    def _init_callback(self) -> None:
        self.learner: Any = self.model
        if not isinstance(self.model, PPO | A2C):
            raise ConfigError(
                f"OPRCallback needs PPO, A2C or what is derived from them, not {type(self.model).__name__}"
            )
        if isinstance(self.model.observation_space, spaces.Dict):
            raise ConfigError("OPRCallback needs observations that are arrays")
        self.policy = ModelPolicy(self.model.policy)
        self.monitors = Monitors(self.training_env)
        anew = hasattr(self, "opr") and self.model is not self.owner and self.model._n_updates == 0
        if not hasattr(self, "opr") or anew:  # else the model goes on learning, perhaps read from a file
            self.owner = self.model
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
        if restarted or self.told or self.clock != self.monitors.clock():
            # Restarted, left in the middle of a rollout, or played with by others: what is in play is not whole.
            self.opr.forget_unfinished()
            self.cut = np.full(self.training_env.num_envs, not restarted)  # who is in an episode without a beginning
            self.held = np.zeros(self.training_env.num_envs, int)  # steps of the game in play
        self.told, self.collecting, self.learning = [], False, False
        other = getattr(vars(self.optimizer).get("zero_grad"), "__self__", None)
        if isinstance(other, OPRCallback) and other is not self and other.locals is self.locals:
            raise ConfigError("one OPRCallback a model: there are two")
        self.optimizer.zero_grad = self._clear_and_clone

    def _on_rollout_start(self) -> None:
        self.told = []  # of the steps of this rollout: rewards, ends, infos
        self.collecting, self.learning = True, False
        if self.opr.updates:
            self.opr.after_update(self.policy, self._step)

    def _on_step(self) -> bool:
        if not self.collecting:
            raise ConfigError("OPRCallback needs every step and every rollout: hand it to learn, alone or in a list")
        # Copied: behind this, values behind time limits are added to the rewards in place.
        rewards, dones = np.array(self.locals["rewards"], np.float32), np.array(self.locals["dones"], np.bool_)
        self.told.append((rewards, dones, self.locals["infos"]))
        return True

    def _on_rollout_end(self) -> None:
        buffer, steps = self.learner.rollout_buffer, self._steps()
        self.opr.observe(steps)
        shaped = self.opr.shape(steps, self.policy)
        if shaped is not steps.rewards:
            buffer.rewards += (shaped - steps.rewards).cpu().numpy()
            buffer.compute_returns_and_advantage(last_values=self.locals["values"], dones=self.locals["dones"])
        self.opr.augment(self._batch(steps), self.policy)  # no rows join; it measures the spread of advantages
        for name, value in self.opr.metrics().items():
            self.logger.record(name, value)
        self.told, self.collecting, self.learning = [], False, True

    def _on_training_end(self) -> None:
        self.opr.after_update(self.policy, self._step)
        self.learning, self.clock = False, self.monitors.clock()
        del self.optimizer.zero_grad  # what the class has shows again

    def state_dict(self) -> dict[str, Any]:
        """The memory and all else the method remembers, for `torch.save`; `model.save` does not hold it."""
        return self.opr.state_dict()

    def load_state_dict(self, state: dict[str, Any], model: Any) -> None:
        """Take over `state_dict`, for a model that goes on learning with this callback."""
        self.init_callback(model)
        self.owner = model
        self.opr.load_state_dict(state, self.policy)

    @property
    def optimizer(self) -> Any:
        """The model's."""
        return self.learner.policy.optimizer

    def _steps(self) -> Steps:
        """The rollout as the method reads it. What the model adds to a reward at a time limit is γ V behind it."""
        buffer, gamma = self.learner.rollout_buffer, self.learner.gamma
        rewards, dones = np.stack([told[0] for told in self.told]), np.stack([told[1] for told in self.told])
        bootstraps = (buffer.rewards - rewards) / gamma if gamma else np.zeros_like(rewards)
        games: dict[str, Tensor] = {}
        ends = dones
        if self.monitors.know_games:  # rewards may be clipped and lives be episodes: the monitor saw the game itself
            totals = [[told["episode"]["r"] if "episode" in told else np.nan for told in row] for *_, row in self.told]
            games["raw_rewards"] = torch.tensor(totals, dtype=torch.float64).nan_to_num()
            ends = ~np.isnan(totals)
            games["episode_ends"] = torch.from_numpy(ends)
            self._require_whole_games(ends)
        if self.cut.any():
            games["valid"] = self._tensor(ends.cumsum(0) - ends > 0) | ~self._tensor(self.cut)
            self.cut &= ~ends.any(0)
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
            progress=min(1.0, 1.0 - self.learner._current_progress_remaining),  # the last rollout may go beyond
            **games,
        )

    def _require_whole_games(self, ends: NDArray[np.bool_]) -> None:
        """Raise if a monitor does not see every end: what it calls one game would be several."""
        for (_, dones, infos), ended in zip(self.told, ends, strict=True):
            self.held += 1
            for n in np.flatnonzero(dones):
                cut_off = bool(infos[n].get("TimeLimit.truncated")) and not ended[n]
                if cut_off or (ended[n] and infos[n]["episode"]["l"] < self.held[n]):
                    raise ConfigError(
                        "a wrapper above the Monitor ends episodes that the Monitor does not see end (a time limit?): "
                        "put the Monitor outside, or use VecMonitor"
                    )
            self.held[ended] = 0

    def _batch(self, steps: Steps) -> Batch:
        buffer = self.learner.rollout_buffer
        return Batch(
            obs=steps.obs.flatten(0, 1),
            actions=steps.actions.flatten(0, 1),
            logp_old=steps.logp.flatten(),
            advantages=self._tensor(buffer.advantages).flatten(),
            returns=self._tensor(buffer.returns).flatten(),
            values_old=self._tensor(buffer.values).flatten(),
        )

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.tensor(values, device=self.learner.device)  # a copy: the buffer is filled anew

    def _clear_and_clone(self, set_to_none: bool = True) -> None:
        """Instead of the optimiser's `zero_grad`: gradients begin with those of the cloning loss."""
        self._clear(set_to_none)
        if not self.learning:  # an error ended `learn` before it could take this off the optimiser
            return
        loss = self.opr.loss(self.policy)
        if loss.requires_grad:
            torch.autograd.backward(loss)

    def _step(self, loss: Tensor) -> None:
        """One step of the model's optimiser on this loss alone."""
        self._clear()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.learner.policy.parameters(), self.learner.max_grad_norm)
        self.optimizer.step()

    def _clear(self, set_to_none: bool = True) -> None:
        type(self.optimizer).zero_grad(self.optimizer, set_to_none)


class Monitors:
    """What Stable-Baselines3's monitors know of a model's environments."""

    def __init__(self, env: VecEnv) -> None:
        self.env, self.above = env, list[VecMonitor]()
        inner = env
        while isinstance(inner, VecEnvWrapper):
            if isinstance(inner, VecMonitor):
                self.above.append(inner)
            if isinstance(inner, VecNormalize) and inner.norm_reward and self.above:
                raise ConfigError("VecMonitor above VecNormalize adds up normalised rewards: put it below")
            inner = inner.venv
        self.inside = all(env.env_is_wrapped(Monitor))
        self.know_games = bool(self.above) or self.inside

    def clock(self) -> tuple[Any, ...]:
        """Another one whenever the environments have been stepped; none without monitors."""
        steps = self.env.get_attr("total_steps") if self.inside else []
        return *steps, *((monitor.episode_count, *monitor.episode_lengths) for monitor in self.above)


class ModelPolicy(torch.nn.Module):
    """A model's policy, asked the way the method asks."""

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
