"""OPR for RLlib's PPO (new API stack): a learner, and the function that adds it to a config.

config = with_opr(PPOConfig().environment("CartPole-v1"))
algorithm = config.build_algo()
algorithm.train()
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from optimist.core.config import OPRConfig, require_config
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Steps
from optimist.errors import ConfigError, missing_extra
from optimist.integrations.chunks import Chunk, EpisodeAssembler

try:
    import tree
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
    from ray.rllib.connectors.connector_v2 import ConnectorV2
    from ray.rllib.connectors.learner import GeneralAdvantageEstimation
    from ray.rllib.core import DEFAULT_MODULE_ID
    from ray.rllib.core.columns import Columns
except ImportError as error:
    raise missing_extra("the RLlib integration", "rllib", "ray[rllib]") from error

COMPONENT = "opr"
"""Key of OPR in a learner's state, and of its config in `learner_config_dict`."""


def with_opr(config: PPOConfig, opr: OPRConfig | None = None, *, seed: int = 0, frame_stack: int = 1) -> PPOConfig:
    """Return a copy of the config with `OPRLearner` as its learner; without OPR if `opr` is not enabled.

    `frame_stack`: number of frames in an image observation [H, W, frames]; each frame is then stored once.
    """
    if not isinstance(config, PPOConfig) or not config.enable_rl_module_and_learner:
        stack = " on the old API stack" if isinstance(config, PPOConfig) else ""
        raise ConfigError(
            f"config is a {type(config).__name__}{stack}; with_opr needs a PPOConfig on RLlib's new API stack"
        )
    opr, config = require_config(opr), config.copy(copy_frozen=False)
    learner = config.learner_class
    if not issubclass(learner, OPRLearner):
        if not opr.enabled:
            return config
        if learner is not PPOTorchLearner:
            raise ConfigError(f"learner_class {learner.__name__} is not an OPRLearner: derive it from OPRLearner")
        learner = OPRLearner
    _require_supported(config, opr)
    settings = {COMPONENT: opr, "opr_seed": seed, "opr_frame_stack": frame_stack}
    config.learners(learner_class=learner, learner_config_dict=settings)
    return config


class OPRLearner(PPOTorchLearner):
    """RLlib's PPO learner with Optimistic Policy Regularization; `opr` is the regularizer.

    Episodes are assembled before the connector pipeline changes them, rewards are shaped before advantages are
    computed, and the cloning loss is added to PPO's loss in every minibatch. The settings of `with_opr` are in the
    config's `learner_config_dict`; without them the defaults apply.
    """

    opr: OptimisticRegularizer

    def build(self) -> None:
        """Build PPO's learner and add OPR to its pipeline."""
        if self._is_built:
            return
        config: Any = self.config
        settings = config.learner_config_dict
        opr = settings.get(COMPONENT) or OPRConfig()
        self.frame_stack: int = settings.get("opr_frame_stack", 1)
        _require_supported(config, opr)
        super().build()
        module: Any = self.module[DEFAULT_MODULE_ID]
        _require_supported_module(module)
        self.policy = ModulePolicy(module, self.frame_stack)
        self.opr = OptimisticRegularizer(
            opr,
            gamma=config.gamma,
            gae_lambda=config.lambda_,
            seed=settings.get("opr_seed", 0),
            frame_stack=self.frame_stack,
            device=self.device,
        )
        self.unfinished = EpisodeAssembler(opr.max_episode_steps)
        self._chunks: list[Chunk] = []
        self._is_step = torch.zeros(0, dtype=torch.bool)  # [rows]: steps, and not the state after a chunk
        self._join_pipeline()

    def _join_pipeline(self) -> None:
        pipeline: Any = self._learner_connector
        if not any(type(piece) is GeneralAdvantageEstimation for piece in getattr(pipeline, "connectors", ())):
            raise ConfigError(
                "the learner pipeline has no GeneralAdvantageEstimation; OPR needs RLlib's own learner connectors: "
                "set add_default_connectors_to_learner_pipeline = True"
            )
        pipeline.prepend(OPRConnector(self._store_chunks))
        pipeline.insert_before(GeneralAdvantageEstimation, OPRConnector(self._observe_and_shape))

    def compute_loss_for_module(self, *, module_id: str, **given: Any) -> Tensor:
        """Return PPO's loss + λ_BC L_BC."""
        loss: Any = super().compute_loss_for_module(module_id=module_id, **given)
        total: Tensor = loss + self.opr.loss(self.policy)
        return total

    def after_gradient_based_update(self, *, timesteps: dict[str, Any]) -> None:
        """Run a cloning phase if one is due, before learning rates change, and log the metrics."""
        self.opr.after_update(self.policy, self._step)
        super().after_gradient_based_update(timesteps=timesteps)
        self.metrics.log_dict(self.opr.metrics(), key=DEFAULT_MODULE_ID, window=1)

    def get_state(self, components: Any = None, *, not_components: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Return the learner's state, with the memory and the unfinished episodes under `opr`."""
        state: dict[str, Any] = super().get_state(components, not_components=not_components, **kwargs)
        if self._check_component(COMPONENT, components, not_components):
            whole = {"regularizer": self.opr.state_dict(), "unfinished": self.unfinished.state_dict()}
            state[COMPONENT] = tree.map_structure(_to_numpy, whole)
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state of `get_state`; one without `opr`, such as plain PPO's, does not change the memory."""
        super().set_state(state)
        if COMPONENT in state:
            whole = tree.map_structure(_to_tensor, state[COMPONENT])
            self.opr.load_state_dict(whole["regularizer"], self.policy, self.device)
            self.unfinished.load_state_dict(whole["unfinished"], self.device)

    def _store_chunks(self, batch: dict[str, Any], episodes: list[Any]) -> None:
        """Read the chunks first in the pipeline: later connectors change ids, ends and lengths."""
        self._chunks = [Chunk.from_rllib(episode) for episode in episodes]

    def _observe_and_shape(self, batch: dict[str, Any], episodes: list[Any]) -> None:
        """Admit good episodes to M and shape the rewards, before advantages are computed."""
        rows = batch[DEFAULT_MODULE_ID]
        columns = self._columns(rows)
        edges = np.cumsum([0, *(len(chunk) for chunk in self._chunks)])
        parts = ({name: column[a:b] for name, column in columns.items()} for a, b in pairwise(edges))
        finished = self._finished_steps(self.unfinished.add(zip(self._chunks, parts, strict=True)), columns)
        fresh = self._steps(columns)
        self.opr.observe(finished)
        self.opr.steps += fresh.rewards.numel() - finished.rewards.numel()  # steps of unfinished episodes too
        shaped = self.opr.shape(fresh, self.policy)
        if shaped is not fresh.rewards:
            rewards = rows[Columns.REWARDS].clone()
            rewards[self._is_step] = shaped[:, 0]
            rows[Columns.REWARDS] = rewards

    def _columns(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the steps of all chunks in a row. RLlib adds one row to each chunk: the state after its last step."""
        obs = rows[Columns.OBS]
        if self.frame_stack > 1:
            obs = obs.movedim(-1, 1)  # OPR stacks frames first
        added = np.cumsum([len(chunk) + 1 for chunk in self._chunks]) - 1
        self._is_step = torch.ones(len(obs), dtype=torch.bool, device=obs.device)
        self._is_step[added] = False
        dones = torch.zeros(len(obs), dtype=torch.bool, device=obs.device)
        dones[added - 1] = torch.tensor([chunk.done for chunk in self._chunks], device=obs.device)
        bootstraps = torch.zeros(len(obs), device=obs.device)
        limits = added[[chunk.at_time_limit for chunk in self._chunks]]
        if len(limits):
            with torch.no_grad():
                bootstraps[limits - 1] = self.policy.value(obs[limits]).to(bootstraps.dtype)
        columns = {
            "obs": obs,
            "actions": rows[Columns.ACTIONS],
            "rewards": rows[Columns.REWARDS],
            "logp": rows[Columns.ACTION_LOGP],
            "dones": dones,
            "bootstraps": bootstraps,
        }
        return {name: column[self._is_step] for name, column in columns.items()}

    def _steps(self, columns: dict[str, Tensor], **more: Tensor) -> Steps:
        """Return rows as the steps of one environment, [L, 1]."""
        return Steps(**{name: column[:, None] for name, column in (columns | more).items()})

    def _finished_steps(self, episodes: list[dict[str, Tensor]], columns: dict[str, Tensor]) -> Steps:
        """Return the steps of whole episodes in a row; without any, one step marked as not valid."""
        if episodes:
            return self._steps({name: torch.cat([episode[name] for episode in episodes]) for name in episodes[0]})
        first = {name: column[:1] for name, column in columns.items()}
        return self._steps(first, valid=torch.zeros(1, dtype=torch.bool, device=columns["rewards"].device))

    def _step(self, loss: Tensor) -> None:
        """Take one step of the learner's optimiser on this loss alone."""
        gradients = self.compute_gradients({DEFAULT_MODULE_ID: loss})
        self.apply_gradients(self.postprocess_gradients(gradients))


class OPRConnector(ConnectorV2):
    """Calls a function at its place in the learner's connector pipeline."""

    def __init__(self, call: Callable[[dict[str, Any], list[Any]], None]) -> None:
        super().__init__()
        self.call = call

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> dict[str, Any]:
        """Call the function and return the batch unchanged."""
        self.call(batch, episodes)
        return batch


class ModulePolicy(torch.nn.Module):
    """An RLModule behind the policy protocol of OPR."""

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


def _require_supported(config: Any, opr: OPRConfig) -> None:
    if opr.augment_share > 0:
        raise ConfigError("RLlib's minibatches take no replayed rows: set augment_share = 0")
    if config.num_learners > 1:
        raise ConfigError(
            f"num_learners is {config.num_learners}; OPR needs one learner, because RLlib splits an episode's chunks "
            "between several: set num_learners to 0 or 1, and scale with num_env_runners"
        )
    if config.is_multi_agent:
        raise ConfigError("the config has several agents; OPR in RLlib supports one")


def _require_supported_module(module: Any) -> None:
    nested = (spaces.Dict, spaces.Tuple)
    if isinstance(module.observation_space, nested) or isinstance(module.action_space, nested):
        raise ConfigError("OPR needs observations and actions that are arrays: flatten them (FlattenObservations)")
    if module.is_stateful():
        raise ConfigError("OPR does not support recurrent modules: set use_lstm = False")


def _to_numpy(value: Any) -> Any:
    return value.cpu().numpy() if isinstance(value, Tensor) else value


def _to_tensor(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, np.ndarray) else value
