import dataclasses
import math

import pytest

from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.errors import ConfigError, UnknownName

BAD = [
    (EnvConfig, {"num_envs": 0}, "env.num_envs"),
    (EnvConfig, {"num_envs": 1.5}, "env.num_envs"),
    (EnvConfig, {"frame_stack": 0}, "env.frame_stack"),
    (RunConfig, {"final_episodes": -1}, "final_episodes"),
    (EnvConfig, {"truncation": "ends"}, "env.truncation"),
    (EnvConfig, {"vectorization": "synch"}, "env.vectorization"),
    (NetworkConfig, {"hidden": (64, 0)}, "network.hidden"),
    (NetworkConfig, {"activation": "rellu"}, "network.activation"),
    (NetworkConfig, {"kind": "cnn"}, "network.kind"),
    (NetworkConfig, {"initialization": "xavier"}, "network.initialization"),
    *[(PPOConfig, {"epochs": bad}, "epochs") for bad in (0, 2.5)],
    (PPOConfig, {"minibatch_size": 0}, "minibatch_size"),
    (PPOConfig, {"clip_eps": 0.0}, "algorithm.clip_eps"),
    (PPOConfig, {"value_clip": -0.2}, "algorithm.value_clip"),
    (PPOConfig, {"target_kl": 0.0}, "algorithm.target_kl"),
    (PPOConfig, {"adam_betas": (0.9, 1.0)}, "algorithm.adam_betas"),
    (PPOConfig, {"adam_eps": 0.0}, "adam_eps"),
    (PPOConfig, {"normalize_advantages": "all"}, "algorithm.normalize_advantages"),
    (PPOConfig, {"name": "a2c"}, "algorithm.name"),
    (A2CConfig, {"normalize_advantages": "minibatch"}, "algorithm.normalize_advantages"),
    (A2CConfig, {"rmsprop_alpha": 1.5}, "algorithm.rmsprop_alpha"),
    (A2CConfig, {"rmsprop_eps": 0.0}, "rmsprop_eps"),
    *[(kind, {"rollout_steps": 0}, "rollout_steps") for kind in (PPOConfig, A2CConfig)],
    *[(kind, {"learning_rate": bad}, "learning_rate") for kind in (PPOConfig, A2CConfig) for bad in (0.0, math.nan)],
    *[(kind, {"learning_rate_schedule": "cosine"}, "learning_rate_schedule") for kind in (PPOConfig, A2CConfig)],
    *[(kind, {"gamma": 1.1}, "gamma") for kind in (PPOConfig, A2CConfig)],
    *[(kind, {"gae_lambda": -0.1}, "gae_lambda") for kind in (PPOConfig, A2CConfig)],
    *[(kind, {"value_coef": -1.0}, "value_coef") for kind in (PPOConfig, A2CConfig)],
    *[(kind, {"entropy_coef": -1.0}, "entropy_coef") for kind in (PPOConfig, A2CConfig)],
    *[(kind, {"max_grad_norm": 0.0}, "max_grad_norm") for kind in (PPOConfig, A2CConfig)],
    (RunConfig, {"threads": 100_000}, "threads must be between 1 and 1024"),
    *[(RunConfig, {n: 0}, n) for n in ("total_steps", "checkpoint_every", "log_every", "evaluate_episodes", "threads")],
    *[(RunConfig, {n: -1}, n) for n in ("seed", "evaluate_every")],
    (RunConfig, {"total_steps": 1.5}, "total_steps must be a whole number"),
    (RunConfig, {"opr": True}, r"opr must be OPRConfig\(…\)"),
    (RunConfig, {"algorithm": "ppo"}, "algorithm must be a table of settings"),
    (NetworkConfig, {"hidden": 64}, r"network\.hidden must be a list"),
    (PPOConfig, {"learning_rate": "1e-3"}, r"algorithm\.learning_rate must be a number"),
]


@pytest.mark.parametrize(("kind", "values", "named"), BAD, ids=lambda x: str(x)[:40])
def test_a_value_out_of_range_is_refused_by_name_in_one_line(kind, values, named):
    with pytest.raises(ConfigError, match=named) as caught:
        kind(**values)
    assert "\n" not in str(caught.value)


def test_a_misspelt_choice_gets_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'bootstrap'"):
        EnvConfig(truncation="bootstrp")


def test_one_update_has_t_times_n_steps_and_a_run_has_at_least_one():
    config = RunConfig(total_steps=1000, env=EnvConfig(num_envs=4), algorithm=PPOConfig(rollout_steps=32))
    assert (config.batch_size, config.total_updates) == (128, 7)
    assert dataclasses.replace(config, total_steps=5).total_updates == 1
