"""OPR inside Tianshou: its PPO and A2C with the method in place, and what is derived from them.

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

from optimist.core.batch import Batch
from optimist.core.config import OPRConfig, require_config
from optimist.core.episode import Steps
from optimist.core.regularizer import OptimisticRegularizer
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
    raise missing_extra("the door to Tianshou", "tianshou", "tianshou 2") from error

MEMORY = "_opr"
"""Where the memory stands in an algorithm's `state_dict`."""


class OPRA2C(A2C):
    """A2C with Optimistic Policy Regularization; in front of a class derived from A2C, that class with it.

    Good episodes are kept and rewards shaped before advantages are computed, and every step of the optimiser is on the
    sum of the algorithm's loss and the cloning loss. `opr` is the method itself.
    """

    class Optimizer(A2C.Optimizer):
        """Tianshou's, with something added to every loss."""

        added: Callable[[], Tensor] | None = None

        def step(self, loss: Tensor, retain_graph: bool | None = None, create_graph: bool = False) -> None:
            """One step on the loss and what is added to it."""
            added = None if self.added is None else self.added()
            if added is not None and added.requires_grad:
                loss = loss + added
            super().step(loss, retain_graph, create_graph)

        def step_alone(self, loss: Tensor) -> None:
            """One step on this loss alone."""
            super().step(loss)

    def __init__(
        self,
        *,
        opr: OPRConfig | None = None,
        frame_stack: int = 1,
        games_recorded: bool | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        """`settings` are the algorithm's own.

        `frame_stack`: frames an image observation is stacked of, which are then stored once. `games_recorded`: whether
        `RecordEpisodeStatistics` says where games end and what they were worth; None: the first end tells.
        """
        super().__init__(**settings)
        config = require_config(opr)
        if config.augment_share > 0:
            raise ConfigError("Tianshou's minibatches have no place for replayed rows: set augment_share = 0")
        if type(self.policy).forward is not ProbabilisticActorPolicy.forward:
            raise ConfigError(
                f"{type(self.policy).__name__} decides by a forward of its own; OPR needs π as actor and dist_fn alone"
            )
        self.opr = OptimisticRegularizer(
            config,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            seed=seed,
            frame_stack=frame_stack,
            device=torch_device(self.policy),
        )
        self.games_recorded, self.found_recorded = games_recorded, games_recorded
        self.progress: float | None = None  # the trainer tells
        cast(OPRA2C.Optimizer, self.optim).added = self._cloning_loss

    @property
    def asked(self) -> AlgorithmPolicy:
        """Policy and critic, asked the way the method asks; their values in units of the reward."""
        scale = float(np.sqrt(self.ret_rms.var + self._eps)) if self.return_scaling else 1.0
        return AlgorithmPolicy(self.policy, self.critic, scale)

    def create_trainer(self, params: OnPolicyTrainerParams) -> OPRTrainer:
        """Tianshou's trainer, which tells the method what it has to know."""
        return OPRTrainer(self, params)

    def update(self, buffer: ReplayBuffer, batch_size: int | None, repeat: int) -> TrainingStats:
        """As the algorithm does; then a phase of cloning alone, if one is due."""
        stats = super().update(buffer, batch_size, repeat)
        with torch_train_mode(self):
            self.opr.after_update(self.asked, cast(OPRA2C.Optimizer, self.optim).step_alone)
        return with_metrics(stats, self.opr.metrics())

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The algorithm's, and the memory of good episodes."""
        own: Any = super().state_dict  # untyped
        state = own(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        state[prefix + MEMORY] = {"regularizer": self.opr.state_dict(), "found_recorded": self.found_recorded}
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take over `state_dict`; that of an algorithm without OPR leaves the memory as it is."""
        state = dict(state_dict)
        remembered = state.pop(MEMORY, None)
        result = super().load_state_dict(state, strict=strict, assign=assign)
        if remembered is not None:
            self.opr.load_state_dict(remembered["regularizer"], self.asked)
            if self.games_recorded is None:
                self.found_recorded = remembered["found_recorded"]
        return result

    def _preprocess_batch(self, batch: Any, buffer: ReplayBuffer, indices: NDArray[Any]) -> Any:
        """Memory, then shaping, then advantages by the algorithm."""
        if not self.opr.config.enabled:
            return super()._preprocess_batch(batch, buffer, indices)
        self._require_plain(batch, buffer, indices)
        rows = rows_of_streams(indices, buffer.subbuffer_edges, batch.done)  # [T, N]
        with torch_train_mode(self, enabled=False):  # as in play; and no layer may count or draw for this
            steps = self._steps(batch, rows)
            self.opr.observe(steps)
            self.opr.steps -= rows.size - len(batch)  # places where nothing was played
            shaped = self.opr.shape(steps, self.asked)
        played = self._tensor(rows >= 0).T
        if shaped is not steps.rewards:
            batch.rew = batch.rew + (shaped - steps.rewards).T[played].cpu().numpy()
        batch = super()._preprocess_batch(batch, buffer, indices)
        self.opr.augment(  # no rows join; it measures the spread of advantages
            Batch(
                obs=steps.obs.transpose(0, 1)[played],
                actions=steps.actions.transpose(0, 1)[played],
                logp_old=steps.logp.T[played],
                advantages=batch.adv,
                returns=batch.returns,
                values_old=batch.v_s,
            ),
            self.asked,
        )
        return batch

    def _steps(self, batch: Any, rows: NDArray[Any]) -> Steps:
        """The rollout as the method reads it."""
        obs, actions = self._tensor(batch.obs), self._tensor(batch.act)
        bootstraps = torch.zeros(len(batch), device=obs.device)
        cut_off = batch.truncated & ~batch.terminated
        if cut_off.any():
            bootstraps[self._tensor(cut_off)] = self._asked_in_chunks("value", self._tensor(batch.obs_next[cut_off]))
        raw_rewards, ends = self._games(batch)
        columns = {
            "obs": obs,
            "actions": actions,
            "rewards": self._tensor(batch.rew.astype(np.float32)),
            "logp": self._asked_in_chunks("log_prob", obs, actions),
            "dones": self._tensor(batch.done),
            "raw_rewards": self._tensor(raw_rewards),
            "episode_ends": self._tensor(ends),
            "bootstraps": bootstraps,
        }
        at = self._tensor(rows)  # −1 takes some row, which is not valid
        valid = None if (rows >= 0).all() else at >= 0
        progress = 0.0 if self.progress is None else self.progress
        return Steps(**{name: column[at] for name, column in columns.items()}, valid=valid, progress=progress)

    def _games(self, batch: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Raw rewards and ends of games, each [B]: the recorder's if there is one, else the learner's."""
        if self.games_recorded is False:
            return batch.rew.astype(np.float64), batch.done
        totals = recorded_returns(batch.info, len(batch))
        ends = ~np.isnan(totals)
        if self.found_recorded is None and batch.done.any():
            self.found_recorded = bool(ends.any())
            if self.found_recorded:
                self.opr.builder.returns.zero_()  # what was added up so far is part of what is recorded
        if not self.found_recorded:
            if ends.any():
                raise ConfigError(
                    "RecordEpisodeStatistics tells of a game behind ends it knew nothing of (lost lives?): "
                    "set games_recorded = True"
                )
            return batch.rew.astype(np.float64), batch.done
        if (batch.truncated & ~batch.terminated & ~ends).any():
            raise ConfigError(
                "a time limit above RecordEpisodeStatistics ends episodes that it does not see end: put the limit below"
            )
        return np.nan_to_num(totals), ends

    def _require_plain(self, batch: Any, buffer: ReplayBuffer, indices: NDArray[Any]) -> None:
        if not isinstance(batch.obs, np.ndarray) or "hidden_state" in batch.policy.get_keys():
            raise ConfigError("OPR needs observations that are arrays, and a policy without memory of its own")
        if batch.rew.ndim != 1:
            raise ConfigError(f"OPR needs one reward a step, not {list(batch.rew.shape[1:])}")
        stack = self.opr.builder.frame_stack
        if stack > 1 and batch.obs.shape[1:2] != (stack,):
            raise ConfigError(f"frame_stack is {stack}, but observations are {list(batch.obs.shape[1:])}")
        if len(indices) != len(buffer) or (np.diff(indices) < 0).any():
            raise ConfigError("the buffer does not hold every step of the rollout: make it larger, sample_avail off")
        if self.progress is None and self.opr.config.bc_schedule == "linear":
            raise ConfigError("bc_schedule 'linear' needs to know how far the run has come: use run_training")

    def _cloning_loss(self) -> Tensor:
        return self.opr.loss(self.asked)

    def _asked_in_chunks(self, question: str, *columns: Tensor) -> Tensor:
        ask = getattr(self.asked, question)
        with torch.no_grad():
            chunks = zip(*(torch.split(column, self.max_batchsize) for column in columns), strict=True)
            return torch.cat([ask(*chunk) for chunk in chunks])

    def _tensor(self, values: NDArray[Any] | Tensor) -> Tensor:
        return torch.as_tensor(values, device=self.opr.generator.device)


class OPRPPO(OPRA2C, PPO):
    """PPO with Optimistic Policy Regularization."""


class OPRTrainer(OnPolicyTrainer):
    """Tianshou's, which tells the method where environments restart and how far the run has come."""

    algorithm: OPRA2C

    def reset(self, reset_collectors: bool = True, reset_collector_buffers: bool = False) -> None:
        """As Tianshou does; episodes in play are then cut off."""
        super().reset(reset_collectors, reset_collector_buffers)
        if reset_collectors:
            self.algorithm.opr.forget_unfinished()

    def _update_step(self, collect_stats: Any = None) -> TrainingStats:
        collected, kept = collect_stats.n_collected_steps, len(self.params.training_collector.buffer)
        if collected > kept:
            raise ConfigError(f"the buffer holds {kept} of the {collected} steps of the rollout: make it larger")
        total = self.params.max_epochs * self.params.epoch_num_steps
        self.algorithm.progress = min(1.0, (self._env_step + collected) / total)
        return super()._update_step(collect_stats)


class AlgorithmPolicy(torch.nn.Module):
    """An algorithm's policy and critic, asked the way the method asks."""

    def __init__(self, policy: ProbabilisticActorPolicy, critic: torch.nn.Module, value_scale: float = 1.0) -> None:
        super().__init__()
        self.actor, self.dist_fn = policy.actor, policy.dist_fn
        self.critic, self.value_scale = critic, value_scale

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π(a|s), [B]. Not by the policy's `forward`, which draws an action from everybody's random numbers."""
        parameters, _ = self.actor(obs)
        logp: Tensor = self.dist_fn(parameters).log_prob(actions)
        return logp if logp.dim() == 1 else logp.flatten(1).sum(1)

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        values: Tensor = self.critic(obs)
        return values.flatten() * self.value_scale


def rows_of_streams(indices: NDArray[Any], edges: NDArray[Any], dones: NDArray[Any]) -> NDArray[Any]:
    """Rows of a batch by time and environment, [T, N]; −1 behind the last episode of one that played less."""
    streams = np.searchsorted(edges, indices, side="right") - 1
    counts = np.bincount(streams, minlength=len(edges) - 1)
    ends = counts.cumsum()
    shorter = (counts > 0) & (counts < counts.max())
    if not dones[ends[shorter] - 1].all():
        raise ConfigError("OPR needs environments that step together (Collector), or whole episodes")
    rows = np.full((counts.max(), len(counts)), -1)
    rows[np.arange(len(indices)) - (ends - counts)[streams], streams] = np.arange(len(indices))
    return rows


def recorded_returns(info: Any, size: int) -> NDArray[np.float64]:
    """What `RecordEpisodeStatistics` says of the game that ended with a step, [B]; NaN elsewhere."""
    if "episode" not in info.get_keys() or not {"r", "l"} <= set(info.episode.get_keys()):
        return np.full(size, np.nan)
    return np.where(info.episode.l > 0, info.episode.r, np.nan)


def with_metrics(stats: TrainingStats, metrics: dict[str, float]) -> TrainingStats:
    """The statistics of an update with those of the method beside them, which a logger calls `update/opr/…`."""
    values = {field.name: getattr(stats, field.name) for field in fields(stats)}
    opr = {name.removeprefix("opr/"): value for name, value in metrics.items()}
    kind: Any = type(stats)
    return cast(TrainingStats, _stats_with_metrics(kind)(**values, opr=opr))


@cache
def _stats_with_metrics(kind: Any) -> type:
    namespace = {"_non_loss_fields": (*kind._non_loss_fields, "opr")}  # no loss: not averaged over updates
    return make_dataclass(kind.__name__, [("opr", dict[str, float])], bases=(kind,), kw_only=True, namespace=namespace)
