"""OPR inside RLlib's PPO (new API stack): a learner, and the line that puts it into a config.

config = with_opr(PPOConfig().environment("CartPole-v1"))
algorithm = config.build_algo()
algorithm.train()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from optimist.adapters.chunks import Chunk, EpisodesInPlay
from optimist.core.batch import Batch
from optimist.core.config import OPRConfig, require_config
from optimist.core.episode import Steps
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, missing_extra

try:
    import tree
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
    from ray.rllib.connectors.connector_v2 import ConnectorV2
    from ray.rllib.connectors.learner import GeneralAdvantageEstimation
    from ray.rllib.core import DEFAULT_MODULE_ID
    from ray.rllib.core.columns import Columns
    from ray.rllib.evaluation.postprocessing import Postprocessing
    from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME
except ImportError as error:
    raise missing_extra("the door to RLlib", "rllib", "ray[rllib]") from error

COMPONENT = "opr"
"""Name of OPR's part in a learner's state, and of its config in `learner_config_dict`."""


def with_opr(
    config: PPOConfig,
    opr: OPRConfig | None = None,
    *,
    seed: int = 0,
    frame_stack: int = 1,
    total_steps: int | None = None,
) -> PPOConfig:
    """A copy of the config, with `OPRLearner` as its learner; without OPR where `opr` is not enabled.

    `frame_stack`: frames an image observation [H, W, frames] is stacked of, which are then stored once. `total_steps`:
    environment steps of the whole run, for a λ_BC that falls.
    """
    if not isinstance(config, PPOConfig) or not config.enable_rl_module_and_learner:
        old = " on the old one" if isinstance(config, PPOConfig) else ""
        raise ConfigError(f"with_opr needs a PPOConfig on RLlib's new API stack, not {type(config).__name__}{old}")
    opr, config = require_config(opr), config.copy(copy_frozen=False)
    learner = config.learner_class
    if not issubclass(learner, OPRLearner):
        if not opr.enabled:
            return config
        if learner is not PPOTorchLearner:
            raise ConfigError(f"derive {learner.__name__} from OPRLearner instead of PPOTorchLearner to have both")
        learner = OPRLearner
    settings = {COMPONENT: opr, "opr_seed": seed, "opr_frame_stack": frame_stack, "opr_total_steps": total_steps}
    _refuse(config, opr, total_steps)
    config.learners(learner_class=learner, learner_config_dict=settings)
    return config


class OPRLearner(PPOTorchLearner):
    """RLlib's PPO learner with Optimistic Policy Regularization; `opr` is the method itself.

    Episodes are put together from their chunks before the pipeline of connectors changes them, rewards are shaped
    before advantages are computed, and the cloning loss joins PPO's in every minibatch. What `with_opr` sets stands in
    the config's `learner_config_dict`; without it the defaults hold.
    """

    opr: OptimisticRegularizer

    def build(self) -> None:
        """Build PPO's learner, then OPR into its pipeline."""
        if self._is_built:
            return
        config: Any = self.config
        settings = config.learner_config_dict
        opr = settings.get(COMPONENT) or OPRConfig()
        self.total_steps: int | None = settings.get("opr_total_steps")
        self.frame_stack: int = settings.get("opr_frame_stack", 1)
        _refuse(config, opr, self.total_steps)
        super().build()
        module: Any = self.module[DEFAULT_MODULE_ID]
        _refuse_module(module)
        self.policy = ModulePolicy(module, self.frame_stack)
        self.opr = OptimisticRegularizer(
            opr,
            gamma=config.gamma,
            gae_lambda=config.lambda_,
            seed=settings.get("opr_seed", 0),
            frame_stack=self.frame_stack,
            device=self.device,
        )
        # What the learner itself sees of an episode adds up over its steps: none may be dropped then.
        self.in_play = EpisodesInPlay(opr.max_episode_steps if opr.deciding_return == "raw" else sys.maxsize)
        self.progress = 0.0
        self._chunks: list[Chunk] = []
        self._fresh = torch.zeros(0, dtype=torch.bool)  # of the rows of the batch: those that are steps
        self._join_pipeline()

    def _join_pipeline(self) -> None:
        pipeline: Any = self._learner_connector
        if not any(type(piece) is GeneralAdvantageEstimation for piece in getattr(pipeline, "connectors", ())):
            raise ConfigError("OPR needs RLlib's own learner connectors: leave add_default_connectors_to_... = True")
        pipeline.prepend(OPRPiece(self._note))
        pipeline.insert_before(GeneralAdvantageEstimation, OPRPiece(self._observe_and_shape))
        pipeline.append(OPRPiece(self._measure))

    def before_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Note how much of the run is done."""
        super().before_gradient_based_update(timesteps=timesteps)
        if self.total_steps:
            self.progress = min(1.0, timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0) / self.total_steps)

    def compute_loss_for_module(self, *, module_id: str, **given: Any) -> Tensor:
        """PPO's loss + λ_BC L_BC."""
        loss: Any = super().compute_loss_for_module(module_id=module_id, **given)
        total: Tensor = loss + self.opr.loss(self.policy)
        return total

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """A phase of cloning, if one is due, before learning rates move on; and what there is to log."""
        self.opr.after_update(self.policy, self._step)
        super().after_gradient_based_update(timesteps=timesteps)
        self.metrics.log_dict(self.opr.metrics(), key=DEFAULT_MODULE_ID, window=1)

    def get_state(
        self,
        components: str | Collection[str] | None = None,
        *,
        not_components: str | Collection[str] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The learner's state, with the memory and the unfinished episodes under `opr`."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(COMPONENT, components, not_components):
            whole = {"regularizer": self.opr.state_dict(), "in_play": self.in_play.state_dict()}
            state[COMPONENT] = tree.map_structure(_to_numpy, whole)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over `get_state`; a state without `opr`, such as plain PPO's, leaves the memory as it is."""
        super().set_state(state)
        if COMPONENT in state:
            whole = tree.map_structure(_to_tensor, state[COMPONENT])
            self.opr.load_state_dict(whole["regularizer"], self.policy, self.device)
            self.in_play.load_state_dict(whole["in_play"], self.device)

    def _note(self, batch: dict[str, Any], episodes: list[Any]) -> None:
        """First in the pipeline: behind this, ids, ends and lengths are no longer the environment's."""
        self._chunks = [Chunk.of(episode) for episode in episodes]

    def _observe_and_shape(self, batch: dict[str, Any], episodes: list[Any]) -> None:
        """Before advantages are computed: good episodes enter M, and rewards become r^OPR."""
        rows = batch[DEFAULT_MODULE_ID]
        columns = self._columns(rows)
        begins = np.cumsum([0, *(len(chunk) for chunk in self._chunks)])
        parts = ({name: column[a:b] for name, column in columns.items()} for a, b in pairwise(begins))
        finished = self._finished(self.in_play.add(zip(self._chunks, parts, strict=True)), columns)
        fresh = self._steps(columns)
        self.opr.observe(finished)
        self.opr.steps += fresh.rewards.numel() - finished.rewards.numel()  # those of unfinished episodes count now
        shaped = self.opr.shape(fresh, self.policy)
        if shaped is not fresh.rewards:
            rewards = rows[Columns.REWARDS].clone()
            rewards[self._fresh] = shaped[:, 0]
            rows[Columns.REWARDS] = rewards

    def _measure(self, batch: dict[str, Any], episodes: list[Any]) -> None:
        """Last in the pipeline: the spread of advantages, which RLlib has standardised by now."""
        if self.opr.config.bc_advantage_unit != "deviation":
            return
        rows = batch[DEFAULT_MODULE_ID]
        obs, returns = self._obs(rows)[self._fresh], rows[Postprocessing.VALUE_TARGETS][self._fresh]
        with torch.no_grad():
            values = self.policy.value(obs)
        actions, logp = rows[Columns.ACTIONS][self._fresh], rows[Columns.ACTION_LOGP][self._fresh]
        whole = Batch(
            obs=obs, actions=actions, logp_old=logp, advantages=returns - values, returns=returns, values_old=values
        )
        self.opr.augment(whole, self.policy)  # no rows join

    def _columns(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """The steps of all chunks, one chunk behind the other. RLlib has added a row to each: the state behind it."""
        obs, behind = self._obs(rows), np.cumsum([len(chunk) + 1 for chunk in self._chunks]) - 1
        self._fresh = torch.ones(len(obs), dtype=torch.bool, device=obs.device)
        self._fresh[behind] = False
        dones = torch.zeros(len(obs), dtype=torch.bool, device=obs.device)
        dones[behind - 1] = torch.tensor([chunk.done for chunk in self._chunks], device=obs.device)
        bootstraps = torch.zeros(len(obs), device=obs.device)
        cut_off = behind[[chunk.cut_off for chunk in self._chunks]]
        if len(cut_off):
            with torch.no_grad():
                bootstraps[cut_off - 1] = self.policy.value(obs[cut_off]).to(bootstraps.dtype)
        columns = {
            "obs": obs,
            "actions": rows[Columns.ACTIONS],
            "rewards": rows[Columns.REWARDS],
            "logp": rows[Columns.ACTION_LOGP],
            "dones": dones,
            "bootstraps": bootstraps,
        }
        return {name: column[self._fresh] for name, column in columns.items()}

    def _obs(self, rows: dict[str, Tensor]) -> Tensor:
        """Observations as the method stacks them: frames first."""
        obs = rows[Columns.OBS]
        return obs.movedim(-1, 1) if self.frame_stack > 1 else obs

    def _steps(self, columns: dict[str, Tensor], **more: Tensor) -> Steps:
        """Rows in one stream."""
        return Steps(**{name: column[:, None] for name, column in (columns | more).items()}, progress=self.progress)

    def _finished(self, episodes: list[dict[str, Tensor]], fresh: dict[str, Tensor]) -> Steps:
        """Whole episodes, one behind the other; if there are none, a step that belongs to no episode."""
        if episodes:
            return self._steps({name: torch.cat([episode[name] for episode in episodes]) for name in episodes[0]})
        one = {name: column[:1] for name, column in fresh.items()}
        return self._steps(one, valid=torch.zeros(1, dtype=torch.bool, device=fresh["rewards"].device))

    def _step(self, loss: Tensor) -> None:
        """One step of the learner's optimiser on this loss alone."""
        gradients = self.compute_gradients({DEFAULT_MODULE_ID: loss})
        self.apply_gradients(self.postprocess_gradients(gradients))


class OPRPiece(ConnectorV2):
    """A place in the learner's pipeline of connectors where it calls back."""

    def __init__(self, call: Callable[[dict[str, Any], list[Any]], None]) -> None:
        super().__init__()
        self.call = call

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> dict[str, Any]:
        """The batch, after the call."""
        self.call(batch, episodes)
        return batch


class ModulePolicy(torch.nn.Module):
    """An RLModule, asked the way the method asks."""

    def __init__(self, module: Any, frame_stack: int = 1) -> None:
        super().__init__()
        self.module, self.frame_stack = module, frame_stack

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π(a|s), [B]."""
        inputs = self.module.forward_train(self._batch(obs))[Columns.ACTION_DIST_INPUTS]
        logp: Tensor = self.module.get_train_action_dist_cls().from_logits(inputs).logp(actions)
        return logp

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        values: Tensor = self.module.compute_values(self._batch(obs))
        return values

    def _batch(self, obs: Tensor) -> dict[str, Tensor]:
        return {Columns.OBS: obs.movedim(1, -1) if self.frame_stack > 1 else obs}


def _refuse(config: Any, opr: OPRConfig, total_steps: int | None) -> None:
    """Raise, in one line, for what OPR cannot do inside RLlib."""
    if opr.augment_share > 0:
        raise ConfigError("RLlib's minibatches have no place for replayed rows: set augment_share = 0")
    if opr.bc_schedule == "linear" and not total_steps:
        raise ConfigError("bc_schedule 'linear' needs the length of the run: with_opr(..., total_steps=...)")
    if config.num_learners > 1:
        raise ConfigError(
            f"OPR needs one learner, got num_learners = {config.num_learners}, among which RLlib shares the chunks of "
            "an episode out: set num_learners to 0 or 1, and scale with num_env_runners"
        )
    if config.is_multi_agent:
        raise ConfigError("OPR inside RLlib needs one agent")


def _refuse_module(module: Any) -> None:
    nested = (spaces.Dict, spaces.Tuple)
    if isinstance(module.observation_space, nested) or isinstance(module.action_space, nested):
        raise ConfigError("OPR needs observations and actions that are arrays: flatten them (FlattenObservations)")
    if module.is_stateful():
        raise ConfigError("OPR needs a module without memory of its own: set use_lstm = False")


def _to_numpy(value: Any) -> Any:
    return value.cpu().numpy() if isinstance(value, Tensor) else value


def _to_tensor(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, np.ndarray) else value
