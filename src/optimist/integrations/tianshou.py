"""OPR for Tianshou: PPO and A2C with OPR, and mixins for classes derived from them.

algorithm = OPRPPO(policy=policy, critic=critic, optim=AdamOptimizerFactory(), opr=OPRConfig())
algorithm.run_training(OnPolicyTrainerParams(training_collector=collector))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from optimist.core.config import OPRConfig, require_config
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Steps
from optimist.errors import ConfigError, missing_extra

try:
    from tianshou.algorithm.algorithm_base import TrainingStats
    from tianshou.algorithm.modelfree.a2c import A2C
    from tianshou.algorithm.modelfree.ppo import PPO
    from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
    from tianshou.data import ReplayBuffer
    from tianshou.trainer import OnPolicyTrainer, OnPolicyTrainerParams
    from tianshou.utils.torch_utils import torch_device, torch_train_mode
except ImportError as error:
    raise missing_extra("the Tianshou integration", "tianshou", "tianshou 2") from error

STATE_KEY = "_opr"
"""Key of OPR in an algorithm's `state_dict`."""


class OPRA2C(A2C):
    """A2C with Optimistic Policy Regularization; also a mixin for classes derived from A2C. `opr` is the regularizer.

    Good episodes are stored and rewards shaped before advantages are computed. Each optimiser step takes the sum of the
    algorithm's loss and the cloning loss.
    """

    class Optimizer(A2C.Optimizer):
        """Tianshou's optimiser, with an extra term in every loss."""

        extra_loss: Callable[[], Tensor] | None = None

        def step(self, loss: Tensor, retain_graph: bool | None = None, create_graph: bool = False) -> None:
            """Take one step on the sum of the loss and the extra term."""
            extra = None if self.extra_loss is None else self.extra_loss()
            if extra is not None and extra.requires_grad:
                loss = loss + extra
            super().step(loss, retain_graph, create_graph)

        def step_alone(self, loss: Tensor) -> None:
            """Take one step on this loss alone."""
            super().step(loss)

    def __init__(
        self,
        *,
        opr: OPRConfig | None = None,
        frame_stack: int = 1,
        episode_statistics: bool | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        """`settings` are the algorithm's own.

        `frame_stack`: number of frames in an image observation; each frame is then stored once. `episode_statistics`:
        whether `RecordEpisodeStatistics` reports ends and returns of episodes; None: detected at the first end.
        """
        super().__init__(**settings)
        config = require_config(opr)
        if config.augment_share > 0:
            raise ConfigError("Tianshou's minibatches take no replayed rows: set augment_share = 0")
        if type(self.policy).forward is not ProbabilisticActorPolicy.forward:
            raise ConfigError(
                f"{type(self.policy).__name__} overrides forward; OPR needs a policy of actor and dist_fn alone"
            )
        self.opr = OptimisticRegularizer(
            config,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            seed=seed,
            frame_stack=frame_stack,
            device=torch_device(self.policy),
        )
        self.episode_statistics, self.statistics_found = episode_statistics, episode_statistics
        cast(OPRA2C.Optimizer, self.optim).extra_loss = self._cloning_loss

    @property
    def opr_policy(self) -> AlgorithmPolicy:
        """The policy and critic behind the policy protocol of OPR, with values in units of reward."""
        scale = float(np.sqrt(self.ret_rms.var + self._eps)) if self.return_scaling else 1.0
        return AlgorithmPolicy(self.policy, self.critic, scale)

    def create_trainer(self, params: OnPolicyTrainerParams) -> OPRTrainer:
        """Return a trainer that reports environment resets to OPR."""
        return OPRTrainer(self, params)

    def update(self, buffer: ReplayBuffer, batch_size: int | None, repeat: int) -> TrainingStats:
        """Update as the algorithm does, then run a cloning phase if one is due."""
        stats = super().update(buffer, batch_size, repeat)
        with torch_train_mode(self):
            self.opr.after_update(self.opr_policy, cast(OPRA2C.Optimizer, self.optim).step_alone)
        return with_metrics(stats, self.opr.metrics())

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return the algorithm's state with that of OPR."""
        untyped: Any = super().state_dict
        state = untyped(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        state[prefix + STATE_KEY] = {"regularizer": self.opr.state_dict(), "statistics_found": self.statistics_found}
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore `state_dict`; one of an algorithm without OPR does not change the memory."""
        state = dict(state_dict)
        opr = state.pop(STATE_KEY, None)
        result = super().load_state_dict(state, strict=strict, assign=assign)
        if opr is not None:
            self.opr.load_state_dict(opr["regularizer"], self.opr_policy)
            if self.episode_statistics is None:
                self.statistics_found = opr["statistics_found"]
        return result

    def _preprocess_batch(self, batch: Any, buffer: ReplayBuffer, indices: NDArray[Any]) -> Any:
        """Admit good episodes, shape rewards, then let the algorithm compute advantages."""
        if not self.opr.config.enabled:
            return super()._preprocess_batch(batch, buffer, indices)
        self._require_supported(batch, buffer, indices)
        rows = rows_by_env(indices, buffer.subbuffer_edges, batch.done)  # [T, N]
        with torch_train_mode(self, enabled=False):  # no layer updates statistics or draws dropout here
            steps = self._steps(batch, rows)
            self.opr.observe(steps)
            self.opr.steps -= rows.size - len(batch)  # padding counts no steps
            shaped = self.opr.shape(steps, self.opr_policy)
        if shaped is not steps.rewards:
            played = self._tensor(rows >= 0).T
            batch.rew = batch.rew + (shaped - steps.rewards).T[played].cpu().numpy()
        return super()._preprocess_batch(batch, buffer, indices)

    def _steps(self, batch: Any, rows: NDArray[Any]) -> Steps:
        """Return the rollout as Steps."""
        obs, actions = self._tensor(batch.obs), self._tensor(batch.act)
        bootstraps = torch.zeros(len(batch), device=obs.device)
        cut_off = batch.truncated & ~batch.terminated
        if cut_off.any():
            bootstraps[self._tensor(cut_off)] = self._evaluate_in_chunks("value", self._tensor(batch.obs_next[cut_off]))
        raw_rewards, ends = self._episodes(batch)
        columns = {
            "obs": obs,
            "actions": actions,
            "rewards": self._tensor(batch.rew.astype(np.float32)),
            "logp": self._evaluate_in_chunks("log_prob", obs, actions),
            "dones": self._tensor(batch.done),
            "raw_rewards": self._tensor(raw_rewards),
            "episode_ends": self._tensor(ends),
            "bootstraps": bootstraps,
        }
        at = self._tensor(rows)  # −1 is padding: it reads the last row and is not valid
        valid = None if (rows >= 0).all() else at >= 0
        return Steps(**{name: column[at] for name, column in columns.items()}, valid=valid)

    def _episodes(self, batch: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return raw rewards and episode ends [B], of RecordEpisodeStatistics if present, else the learner's."""
        if self.episode_statistics is False:
            return batch.rew.astype(np.float64), batch.done
        totals = recorded_returns(batch.info, len(batch))
        ends = ~np.isnan(totals)
        if self.statistics_found is None and batch.done.any():
            self.statistics_found = bool(ends.any())
            if self.statistics_found:
                self.opr.builder.returns.zero_()  # recorded returns already contain these sums
        if not self.statistics_found:
            if ends.any():
                raise ConfigError(
                    "RecordEpisodeStatistics reports an episode after ends that it did not report (lost lives?): "
                    "set episode_statistics = True"
                )
            return batch.rew.astype(np.float64), batch.done
        if (batch.truncated & ~batch.terminated & ~ends).any():
            raise ConfigError(
                "a time limit outside RecordEpisodeStatistics ends episodes that it does not see: put the limit inside"
            )
        return np.nan_to_num(totals), ends

    def _require_supported(self, batch: Any, buffer: ReplayBuffer, indices: NDArray[Any]) -> None:
        if not isinstance(batch.obs, np.ndarray) or "hidden_state" in batch.policy.get_keys():
            raise ConfigError("OPR needs array observations and a policy that is not recurrent: flatten observations")
        if batch.rew.ndim != 1:
            raise ConfigError(f"rewards of a step have shape {list(batch.rew.shape[1:])}; OPR needs one number")
        stack = self.opr.builder.frame_stack
        if stack > 1 and batch.obs.shape[1:2] != (stack,):
            raise ConfigError(f"frame_stack is {stack}, but observations are {list(batch.obs.shape[1:])}")
        if len(indices) != len(buffer) or (np.diff(indices) < 0).any():
            raise ConfigError(
                "the buffer does not hold every step of the rollout: make it larger, and set sample_avail = False"
            )

    def _cloning_loss(self) -> Tensor:
        return self.opr.loss(self.opr_policy)

    def _evaluate_in_chunks(self, method: str, *columns: Tensor) -> Tensor:
        evaluate = getattr(self.opr_policy, method)
        with torch.no_grad():
            chunks = zip(*(torch.split(column, self.max_batchsize) for column in columns), strict=True)
            return torch.cat([evaluate(*chunk) for chunk in chunks])

    def _tensor(self, values: NDArray[Any] | Tensor) -> Tensor:
        return torch.as_tensor(values, device=self.opr.generator.device)


class OPRPPO(OPRA2C, PPO):
    """PPO with Optimistic Policy Regularization."""


class OPRTrainer(OnPolicyTrainer):
    """Tianshou's trainer, which reports environment resets to OPR."""

    algorithm: OPRA2C

    def reset(self, reset_collectors: bool = True, reset_collector_buffers: bool = False) -> None:
        """Reset as Tianshou does, and drop unfinished episodes if environments restart."""
        super().reset(reset_collectors, reset_collector_buffers)
        if reset_collectors:
            self.algorithm.opr.forget_unfinished()

    def _update_step(self, collect_stats: Any = None) -> TrainingStats:
        collected, kept = collect_stats.n_collected_steps, len(self.params.training_collector.buffer)
        if collected > kept:
            raise ConfigError(f"the buffer holds {kept} of the {collected} steps of the rollout: make it larger")
        return super()._update_step(collect_stats)


class AlgorithmPolicy(torch.nn.Module):
    """An algorithm's policy and critic behind the policy protocol of OPR."""

    def __init__(self, policy: ProbabilisticActorPolicy, critic: torch.nn.Module, value_scale: float = 1.0) -> None:
        super().__init__()
        self.actor, self.dist_fn = policy.actor, policy.dist_fn
        self.critic, self.value_scale = critic, value_scale

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π(a|s), [B]. The policy's `forward` is not used: it draws an action from the global generator."""
        parameters, _ = self.actor(obs)
        logp: Tensor = self.dist_fn(parameters).log_prob(actions)
        return logp if logp.dim() == 1 else logp.flatten(1).sum(1)

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        values: Tensor = self.critic(obs)
        return values.flatten() * self.value_scale


def rows_by_env(indices: NDArray[Any], edges: NDArray[Any], dones: NDArray[Any]) -> NDArray[Any]:
    """Return the batch rows by time and environment, [T, N]; −1 pads environments with fewer steps."""
    streams = np.searchsorted(edges, indices, side="right") - 1
    counts = np.bincount(streams, minlength=len(edges) - 1)
    ends = counts.cumsum()
    shorter = (counts > 0) & (counts < counts.max())
    if not dones[ends[shorter] - 1].all():
        raise ConfigError("environments did not step together; OPR needs Collector, or rollouts of whole episodes")
    rows = np.full((counts.max(), len(counts)), -1)
    rows[np.arange(len(indices)) - (ends - counts)[streams], streams] = np.arange(len(indices))
    return rows


def recorded_returns(info: Any, size: int) -> NDArray[np.float64]:
    """Return the `RecordEpisodeStatistics` return of the episode that ends with each step, [B]; NaN elsewhere."""
    if "episode" not in info.get_keys() or not {"r", "l"} <= set(info.episode.get_keys()):
        return np.full(size, np.nan)
    return np.where(info.episode.l > 0, info.episode.r, np.nan)


def with_metrics(stats: TrainingStats, metrics: dict[str, float]) -> TrainingStats:
    """Return an update's statistics with the metrics of OPR, logged as `update/opr/…`."""
    values = {field.name: getattr(stats, field.name) for field in fields(stats)}
    opr = {name.removeprefix("opr/"): value for name, value in metrics.items()}
    kind: Any = type(stats)
    return cast(TrainingStats, _stats_with_metrics(kind)(**values, opr=opr))


@cache
def _stats_with_metrics(kind: Any) -> type:
    namespace = {"_non_loss_fields": (*kind._non_loss_fields, "opr")}  # not a loss: not averaged over updates
    return make_dataclass(kind.__name__, [("opr", dict[str, float])], bases=(kind,), kw_only=True, namespace=namespace)
