"""The public names of `optimist` and `optimist.core`, so that they change on purpose only."""

import inspect

import optimist
import optimist.core

OPTIMIST = """
A2CConfig Agent Anchor EnvConfig NetworkConfig NoAnchor OPRConfig OptimistError OptimisticRegularizer PPOConfig
RunConfig Steps load resume train
"""
CORE = """
Anchor Batch Episode EpisodeBuilder GoodEpisodeMemory GoodRows NoAnchor OPRConfig OptimisticRegularizer Policy
ReturnWindow Rollout Steps bc_loss bound_log_ratio discounted_returns gae log_ratio shape_rewards
"""
SIGNATURES = {
    "train": "(preset: 'str', settings: 'Mapping[str, Any] | None' = None, *, out: 'str | Path | None' = None, "
    "progress: 'bool' = True, **keywords: 'Any')"
    " -> 'dict[str, Any]'",
    "resume": "(run: 'str | Path', *, env: 'str' = '', wandb: 'bool' = False, progress: 'bool' = True)"
    " -> 'dict[str, Any]'",
    "load": "(run: 'str | Path', device: 'str' = 'cpu', *, env: 'str' = '') -> 'Agent'",
}


def test_optimist_has_these_public_names():
    assert sorted(optimist.__all__) == sorted(OPTIMIST.split())
    assert all(getattr(optimist, name) is not None for name in optimist.__all__)


def test_core_has_these_public_names():
    assert sorted(optimist.core.__all__) == sorted(CORE.split())
    assert all(getattr(optimist.core, name) is not None for name in optimist.core.__all__)


def test_the_functions_have_these_signatures():
    assert {name: str(inspect.signature(getattr(optimist, name))) for name in SIGNATURES} == SIGNATURES
