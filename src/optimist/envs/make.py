"""EnvConfig → a Gymnasium vector environment; whether its spaces are supported is up to the network."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, VectorizeMode, load_env_creator
from gymnasium.error import DependencyNotInstalled
from gymnasium.vector import AutoresetMode

from optimist.envs.atari.games import GAMES
from optimist.envs.family import families, family_of
from optimist.envs.wrappers import AnyVectorEnv, DelayedRewards, StepsLeft
from optimist.errors import (
    ConfigError,
    MissingExtra,
    OptimistError,
    UnknownName,
    missing_extra,
    nearest,
    unknown_name,
)
from optimist.signals import children_without_ctrl_c

if TYPE_CHECKING:
    from optimist.config import EnvConfig


ATARI_ID = re.compile(r"(ALE/)?(?P<game>[A-Za-z]+?)(-ram)?(NoFrameskip|Deterministic)?-v\d+")
"""Ids of Atari games in ale-py and Gym, such as ALE/Pong-v5 and PongNoFrameskip-v4."""
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def make_envs(config: EnvConfig, seed: int | None = None) -> AnyVectorEnv:
    """`config.num_envs` environments in one vector environment; the caller seeds them with `reset(seed=…)`.

    `auto` takes the environment's own vector version if there is one, else one process (`sync`) with
    `AutoresetMode.SAME_STEP`; metadata["autoreset_mode"] is the mode in use. `seed` fixes what is drawn once for a run
    (DeepSea's map), so that environments made later, for evaluation or on resume, have the same task.
    """
    spec = find_spec(config.id)
    mode = _vectorize_mode(config, spec)
    task_seed = family_of(spec.id).task_seed
    kwargs = {task_seed: seed} | config.kwargs if task_seed and seed is not None else config.kwargs
    envs = _make(config, spec, mode, kwargs)
    try:
        if not isinstance(envs.metadata.get("autoreset_mode"), AutoresetMode):
            raise ConfigError(
                f"{spec.id}'s own vector version does not state its autoreset mode: use env.vectorization = 'sync'"
            )
        stack, observed = config.frame_stack, envs.single_observation_space
        shape = observed.shape or ()
        if stack > 1 and (len(shape) != 3 or shape[0] != stack):
            raise ConfigError(
                f"env.frame_stack is {stack} but {spec.id} observes {observed}; "
                f"expected images [{stack}, height, width], or env.frame_stack = 1"
            )
        if config.steps_left:
            envs = StepsLeft(envs)
    except ConfigError:
        envs.close()
        raise
    return DelayedRewards(envs, config.reward_delay) if config.reward_delay > 1 else envs


def find_spec(env_id: str) -> EnvSpec:
    """The registered spec of an id; `module:id` imports the module that registers it first."""
    module, _, name = env_id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except (ImportError, TypeError) as error:
            raise MissingExtra(
                f"cannot import '{module}' of environment '{env_id}': {_one_line(error)}{_import_hint(module, error)}"
            ) from error
    families()  # registers those of installed packages
    if name.startswith("MinAtar/") and name not in gymnasium.registry and importlib.util.find_spec("minatar"):
        importlib.import_module("minatar.gym").register_envs()  # importing the package does not register them
    spec = gymnasium.registry.get(name)
    if spec is not None:
        return spec
    raise UnknownName(f"no environment '{env_id}'; {_id_hint(module, name)}")


def check_env(config: EnvConfig) -> None:
    """Raise if the id or its task does not exist, as far as that is known without making the environment."""
    if ":" in config.id:  # of a package that may be installed only where the environment will be made
        return
    find_spec(config.id)
    check = family_of(config.id).check
    if check is not None:
        check(config.kwargs)


def resolved(config: EnvConfig) -> EnvConfig:
    """The config with what is left to this machine decided, as a run stores it."""
    resolve = family_of(config.id).resolve
    return config if resolve is None else replace(config, kwargs=resolve(config.kwargs))


def _vectorize_mode(config: EnvConfig, spec: EnvSpec) -> VectorizeMode:
    if config.vectorization == "auto":
        # Gymnasium cannot put the wrappers a spec asks for around a vector version.
        own = spec.vector_entry_point is not None and not spec.additional_wrappers
        return VectorizeMode.VECTOR_ENTRY_POINT if own or spec.entry_point is None else VectorizeMode.SYNC
    if spec.entry_point is None:
        raise ConfigError(f"{spec.id} has only a vector version: use env.vectorization = 'auto'")
    return VectorizeMode(config.vectorization)


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
        if unknown and unknown[1] in config.kwargs and (named := _unknown_keyword(spec, own, unknown[1])):
            raise named from error
        raise ConfigError(f"cannot make {spec.id} with env.kwargs {config.kwargs}: {reason}") from error


def _unknown_keyword(spec: EnvSpec, vector: bool, name: str) -> UnknownName | None:
    """The error for a keyword that the constructor does not take; None if something it calls refused it."""
    entry = spec.vector_entry_point if vector else spec.entry_point
    maker = load_env_creator(entry) if isinstance(entry, str) else entry
    assert maker is not None  # it has just been called
    parameters = inspect.signature(maker).parameters.values()
    taken = {parameter.name for parameter in parameters if parameter.kind in BY_NAME} - {"num_envs"}  # env.num_envs
    if name in taken:
        return None
    open_end = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    known = f"known: {', '.join(sorted(taken))}{' and those it passes on' * open_end}"
    return unknown_name(f"keyword of {spec.id}", name, taken, otherwise=known)


def _import_hint(module: str, error: ImportError | TypeError) -> str:
    """What to do about a module that Python does not find; nothing where the module itself has an error."""
    package = module.partition(".")[0]
    if not package or not isinstance(error, ModuleNotFoundError) or error.name != package:
        return ""
    if Path(package).is_dir() or Path(f"{package}.py").is_file():
        return (
            "; it is in this folder, where Python does not look for modules: install it with pip install -e ., or run "
            "PYTHONPATH=. optimist …"
        )
    return "; install its package, or run PYTHONPATH=FOLDER optimist … with the folder that holds it"


def _id_hint(module: str, name: str) -> str:
    """What to write instead of an id that is not registered."""
    atari = ATARI_ID.fullmatch(name)
    if atari and (name.startswith("ALE/") or atari["game"] in GAMES):
        game = nearest(atari["game"], GAMES) or "NAME (`optimist games` lists them)"
        return f"Atari games have presets of their own: optimist train atari/opr --game {game}"
    near = _nearest(name)
    if near:
        return f"did you mean '{near}'?"
    if module:
        return f"'{module}' is imported and registers no such id; expected gymnasium.register(id='{name}', …) in it"
    return "expected a registered Gymnasium id, or module:id to import its package"


def _nearest(name: str) -> str | None:
    """The latest registered id whose name, without namespace and version, is most similar."""
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
        return MissingExtra(f"{spec.id} needs {package}: {family_of(spec.id).install or f'pip install {package}'}")
    return MissingExtra(f"{spec.id} cannot be made: {_one_line(error)}")


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__} {text}" if isinstance(error, KeyError) or not text else text
