"""EnvConfig → a Gymnasium vector environment, ours or anybody's, checked for what the learners can handle."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import math
import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, VectorizeMode, load_env_creator
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode, VectorEnv

from optimist.envs.delay import DelayedRewards
from optimist.errors import ConfigError, MissingExtra, OptimistError, UnknownName, missing_extra, unknown_name
from optimist.signals import children_without_ctrl_c

if TYPE_CHECKING:
    from optimist.config import EnvConfig

AnyVectorEnv = VectorEnv[Any, Any, Any]

TASK_SEED_KEYWORDS = {"optimist/DeepSea-v0": "map_seed"}
"""Keyword through which the run's seed fixes the task itself, apart from what happens in it."""

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def make_envs(config: EnvConfig, seed: int | None = None) -> AnyVectorEnv:
    """`config.num_envs` environments behind one vector environment; the caller seeds them with `reset(seed=…)`.

    `auto` takes the environment's own vector version where it has one, else one process (`sync`) with
    `AutoresetMode.SAME_STEP`; metadata["autoreset_mode"] always says which mode came out. `seed` fixes what is drawn
    once for a run (DeepSea's map), so that environments made later for evaluation or on resume have the same task.
    """
    spec = find_spec(config.id)
    mode = _vectorize_mode(config, spec)
    kwargs = _with_task_seed(config, spec, mode, seed)
    envs = _make(config, spec, mode, kwargs)
    try:
        if not isinstance(envs.metadata.get("autoreset_mode"), AutoresetMode):
            raise ConfigError(
                f"{spec.id}'s own vector version does not say how it resets: use env.vectorization = 'sync'"
            )
        check_spaces(spec.id, envs.single_observation_space, envs.single_action_space)
        check_frame_stack(spec.id, envs.single_observation_space, config.frame_stack)
    except ConfigError:
        envs.close()
        raise
    return DelayedRewards(envs, config.reward_delay) if config.reward_delay > 1 else envs


def can_save_state(envs: AnyVectorEnv) -> bool:
    """Whether the environments can save and restore their exact state (`state_dict`, `load_state_dict`)."""
    return all(callable(getattr(envs.unwrapped, name, None)) for name in ("state_dict", "load_state_dict"))


def longest_episode(envs: AnyVectorEnv) -> int:
    """Steps of the longest episode there can be, as far as the environments say so; else 0."""
    own = getattr(envs.unwrapped, "longest_episode", None)
    return own or (envs.spec and envs.spec.max_episode_steps) or 0


def saved_state(envs: AnyVectorEnv) -> Any:
    """The exact state of environments that can save it, rewards that are held back included."""
    state = envs.unwrapped.state_dict()  # type: ignore[attr-defined]
    return {"envs": state, "delay": envs.state_dict()} if isinstance(envs, DelayedRewards) else state


def restore_state(envs: AnyVectorEnv, state: Any) -> None:
    """Take over what `saved_state` gave."""
    if isinstance(envs, DelayedRewards):
        envs.load_state_dict(state["delay"])
        state = state["envs"]
    envs.unwrapped.load_state_dict(state)  # type: ignore[attr-defined]


def find_spec(env_id: str) -> EnvSpec:
    """The registered spec of an id; `module:id` imports the module that registers it first."""
    module, _, name = env_id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except (ImportError, TypeError) as error:
            raise MissingExtra(f"cannot import '{module}' of environment '{env_id}': {_one_line(error)}") from error
    spec = gymnasium.registry.get(name)
    if spec is not None:
        return spec
    near = _nearest(name)
    hint = (
        f"did you mean '{near}'?" if near else "expected a registered Gymnasium id, or module:id to import its package"
    )
    raise UnknownName(f"no environment '{env_id}'; {hint}")


def check_env(config: EnvConfig) -> None:
    """Raise if there is no such environment or game, as far as that is known here without making it."""
    if ":" in config.id:  # of a package that may be installed only where the environment will be made
        return
    spec = find_spec(config.id)
    if spec.id == "optimist/Atari-v0" and importlib.util.find_spec("ale_py") is not None:
        from optimist.envs.atari.emulator import find_rom

        find_rom(config.kwargs.get("game", ""))


def check_spaces(env_id: str, observation: spaces.Space[Any], action: spaces.Space[Any]) -> None:
    """Raise ConfigError unless the learners can handle these spaces of a single environment."""
    match observation:
        case spaces.Discrete(start=0):
            pass
        case spaces.Box(shape=shape) if math.prod(shape) > 0:
            pass
        case _:
            raise ConfigError(
                f"{env_id} observes {observation}; expected Discrete from 0 or a Box: a wrapper, such as Gymnasium's "
                "FlattenObservation, can make it one"
            )
    match action:
        case spaces.Discrete(start=0):
            pass
        case spaces.MultiDiscrete(shape=shape, start=start) if len(shape) == 1 and not start.any():
            pass
        case spaces.Box(shape=shape, dtype=dtype) if len(shape) == 1 and dtype is not None and dtype.kind == "f":
            pass
        case _:
            raise ConfigError(
                f"{env_id} takes actions {action}; expected Discrete or MultiDiscrete from 0, or a Box [n] of floats"
            )


def check_frame_stack(env_id: str, observation: spaces.Space[Any], frame_stack: int) -> None:
    """Raise ConfigError unless an observation is a stack of this many images."""
    match observation:
        case _ if frame_stack == 1:
            pass
        case spaces.Box(shape=(frames, _, _)) if frames == frame_stack:
            pass
        case _:
            raise ConfigError(
                f"env.frame_stack is {frame_stack} but {env_id} observes {observation}; "
                f"expected images [{frame_stack}, height, width], or env.frame_stack = 1"
            )


def _vectorize_mode(config: EnvConfig, spec: EnvSpec) -> VectorizeMode:
    if config.vectorization == "auto":
        # Gymnasium cannot put the wrappers a spec asks for around a vector version.
        own = spec.vector_entry_point is not None and not spec.additional_wrappers
        return VectorizeMode.VECTOR_ENTRY_POINT if own or spec.entry_point is None else VectorizeMode.SYNC
    if config.vectorization not in ("sync", "async"):
        raise unknown_name("env.vectorization", config.vectorization, ("auto", "sync", "async"))
    if spec.entry_point is None:
        raise ConfigError(f"{spec.id} has only a vector version: use env.vectorization = 'auto'")
    return VectorizeMode(config.vectorization)


def _with_task_seed(config: EnvConfig, spec: EnvSpec, mode: VectorizeMode, seed: int | None) -> dict[str, Any]:
    keyword = TASK_SEED_KEYWORDS.get(spec.id)
    if keyword is None or config.kwargs.get(keyword) is not None:
        return dict(config.kwargs)
    if seed is not None:
        return {**config.kwargs, keyword: seed}
    if mode is not VectorizeMode.VECTOR_ENTRY_POINT and config.num_envs > 1:
        raise ConfigError(
            f"{config.num_envs} separate {spec.id} would differ in their {keyword}: give a seed or {keyword}"
        )
    return dict(config.kwargs)


def _make(config: EnvConfig, spec: EnvSpec, mode: VectorizeMode, kwargs: dict[str, Any]) -> AnyVectorEnv:
    own = mode is VectorizeMode.VECTOR_ENTRY_POINT
    vector_kwargs = None if own else {"autoreset_mode": AutoresetMode.SAME_STEP}
    try:
        with children_without_ctrl_c() if mode is VectorizeMode.ASYNC else nullcontext():
            return gymnasium.make_vec(
                spec, num_envs=config.num_envs, vectorization_mode=mode, vector_kwargs=vector_kwargs, **kwargs
            )
    except OptimistError:
        raise
    except (DependencyNotInstalled, ImportError) as error:
        raise _missing_package(spec, error) from error
    except (TypeError, ValueError, KeyError, AssertionError, gymnasium.error.Error) as error:
        reason = _one_line(error.__cause__ or error)
        unknown = re.search(r"unexpected keyword argument '([^']+)'", reason)
        if unknown and unknown[1] in config.kwargs and (told := _unknown_keyword(spec, own, unknown[1])):
            raise told from error
        raise ConfigError(f"cannot make {spec.id} with env.kwargs {config.kwargs}: {reason}") from error


def _unknown_keyword(spec: EnvSpec, vector: bool, name: str) -> UnknownName | None:
    """The error for a keyword that the environment's maker does not take; None if it is refused further within."""
    entry = spec.vector_entry_point if vector else spec.entry_point
    maker = load_env_creator(entry) if isinstance(entry, str) else entry
    assert maker is not None  # it has just been called
    parameters = inspect.signature(maker).parameters.values()
    taken = {parameter.name for parameter in parameters if parameter.kind in BY_NAME} - {"num_envs"}  # env.num_envs
    if name in taken:
        return None
    open_end = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    known = f"known: {', '.join(sorted(taken))}{' and what it passes on' * open_end}"
    return unknown_name(f"keyword of {spec.id}", name, taken, otherwise=known)


def _nearest(name: str) -> str | None:
    """The registered id whose name, apart from namespace and version, is nearest: of several, the latest."""
    namespace, _, bare = re.sub(r"-v\d+$", "", name).rpartition("/")
    specs = gymnasium.registry.values()
    near = difflib.get_close_matches(bare.lower(), {spec.name.lower() for spec in specs}, n=1)
    matching = [spec for spec in specs if spec.name.lower() in near]
    order = [(spec.namespace == namespace, spec.namespace is None, spec.version or 0, spec.id) for spec in matching]
    return max(order)[-1] if order else None


def _missing_package(spec: EnvSpec, error: Exception) -> MissingExtra:
    if "box2d" in str(error).lower():
        return missing_extra(spec.id, "classic", "Box2D")
    if str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        return missing_extra(spec.id, "mujoco", "MuJoCo")
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return MissingExtra(f"{spec.id} needs {package}: pip install {package}")
    return MissingExtra(f"{spec.id} cannot be made: {_one_line(error)}")


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__} {text}" if isinstance(error, KeyError) or not text else text
