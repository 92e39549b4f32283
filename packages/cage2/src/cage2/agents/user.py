"""Agents of users: a function, or an object with `get_action`, `act` or `predict`, for one game or for many at once.

| agent | is called with | returns |
|---|---|---|
| a function | the observation [52] | an action 0..144 |
| `act(observation)` | the same | an action |
| `get_action(observation, action_space)`, as in the original | the same, and 145 | an action |
| `predict(observation, …)`, as in Stable-Baselines3 | the same, `deterministic=True` if it takes it | (action, state) |
| any of these with an attribute `batched = True` | observations [N, 52] | actions [N] |

`reset()` is called before each game and `end_episode()` after it, where the agent has them. Games are played one after
the other, so an agent may remember what it saw.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.agents.defender import Defender
from cage2.agents.shipped import SHIPPED_AGENTS, load_agent
from cage2.errors import AgentError, Cage2Error, unknown_name
from cage2.rules.scenario import NUM_ACTIONS
from cage2.rules.state import NUM_BITS

METHODS: Final = ("get_action", "act", "predict")
"""In the order of preference."""


class UserAgent:
    """An agent of a user, checked at every action; `where` is added to each error."""

    table = "official"

    def __init__(self, agent: Any, name: str = "") -> None:
        self.agent = _made(agent, name or _name_of(agent))
        self.name = name or _name_of(agent)
        self.batched = bool(getattr(self.agent, "batched", False))
        self.where = ""
        self._state: Any = None
        self._method, function = _method_of(self.agent, self.name)
        self._function = function
        self._parameters = _parameters_of(function)
        shape = getattr(getattr(self.agent, "observation_space", None), "shape", None)
        if shape is not None and tuple(shape) != (NUM_BITS,):
            raise AgentError(f"{self.name} takes observations {list(shape)}; expected [{NUM_BITS}], one bit each")

    def start(self) -> None:
        """Start a game, or a batch of games."""
        self._state = None
        if callable(reset := getattr(self.agent, "reset", None)):
            self._call(reset)

    def finish(self) -> None:
        """End a game, or a batch of games."""
        if callable(end := getattr(self.agent, "end_episode", None)):
            self._call(end)

    def action(self, observation: NDArray[np.int8]) -> int:
        """The action for an observation [52]."""
        given = self._answer(observation)
        array = np.asarray(given) if isinstance(given, int | np.integer | np.ndarray) else np.asarray(None)
        if array.shape != () or array.dtype.kind not in "iu" or isinstance(given, bool):
            raise self._error(f"returned {_shown(given)}; expected a whole number from 0 to {NUM_ACTIONS - 1}")
        if not 0 <= array < NUM_ACTIONS:
            raise self._error(f"returned {array}; expected an action from 0 to {NUM_ACTIONS - 1}")
        return int(array)

    def actions(self, observations: NDArray[np.int8]) -> NDArray[np.int64]:
        """The actions [N] for observations [N, 52]."""
        given = self._answer(observations)
        array = np.asarray(given) if isinstance(given, list | tuple | np.ndarray) else np.asarray(None)
        if array.shape != (len(observations),) or array.dtype.kind not in "iu":
            raise self._error(
                f"returned {_shown(given)}; expected {len(observations)} whole numbers, one for each game"
            )
        outside = (array < 0) | (array >= NUM_ACTIONS)
        if outside.any():
            game = int(outside.argmax())
            raise self._error(f"returned {array[game]} for game {game}; expected an action from 0 to {NUM_ACTIONS - 1}")
        return array.astype(np.int64)

    def _answer(self, observation: NDArray[np.int8]) -> Any:
        copied = observation.copy()  # the agent may change it
        if self._method == "get_action":
            return self._call(self._function, *(copied, NUM_ACTIONS)[: self._positional(2)])
        if self._method != "predict":
            return self._call(self._function, copied)
        keywords: dict[str, Any] = {"deterministic": True} if "deterministic" in self._parameters else {}
        if "state" in self._parameters:
            keywords["state"] = self._state
        answer = self._call(self._function, copied, **keywords)
        if isinstance(answer, tuple) and len(answer) == 2:
            answer, self._state = answer
        return answer

    def _positional(self, most: int) -> int:
        kinds = [parameter.kind for parameter in self._parameters.values()]
        if inspect.Parameter.VAR_POSITIONAL in kinds or not kinds:
            return most
        count = sum(
            kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds
        )
        return min(most, count)

    def _call(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except Cage2Error:
            raise
        except (Exception, SystemExit) as error:
            given = f"; it was given an observation {list(arguments[0].shape)}" if arguments else ""
            raise self._error(f"raised {_raised(error)}{given}") from error

    def _error(self, what: str) -> AgentError:
        return AgentError(f"{self.name} {what}{f' ({self.where})' if self.where else ''}")


class CyborgAgent:
    """Any agent with the interface of the original's agents: `get_action(observation, action_space)`."""

    def __init__(self, agent: Any = "best", rules: str = "final", greedy: bool = True, seed: int | None = None) -> None:
        """`agent` is what `cage2.score` takes."""
        self.defender = load(agent, rules)
        self.greedy, self.random = greedy, np.random.default_rng(seed)
        self._playing = False

    def get_action(self, observation: Any, action_space: Any = None) -> int:
        """The flat action 0..144 for the 52 numbers of the challenge's wrapper."""
        if not self._playing:
            self._playing = True
            start(self.defender, 1)
        bits = np.asarray(observation).reshape(-1).astype(np.int8)
        if bits.shape != (NUM_BITS,):
            raise AgentError(
                f"the observation has {len(bits)} numbers; expected {NUM_BITS}, from the challenge's wrapper"
            )
        if isinstance(self.defender, UserAgent) and not self.defender.batched:
            return self.defender.action(bits)
        return int(act(self.defender, bits[None], self.greedy, self.random)[0])

    def end_episode(self) -> None:
        """Clear the memory of the episode."""
        if self._playing and isinstance(self.defender, UserAgent):
            self.defender.finish()
        self._playing = False

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Start a new episode."""
        self.end_episode()

    def train(self, results: Any) -> None:
        """Do nothing: the agent is already trained."""


def act(agent: Defender | UserAgent, observations: NDArray[np.int8], greedy: bool, generator: Any) -> NDArray[np.int64]:
    """The actions [N] of a defender or of a batched agent."""
    if isinstance(agent, UserAgent):
        return agent.actions(observations)
    return agent.act(observations, greedy=greedy, generator=generator)


def start(agent: Defender | UserAgent, games: int) -> None:
    """Start so many games."""
    if isinstance(agent, UserAgent):
        agent.start()
    else:
        agent.reset(games)


def finish(agent: Defender | UserAgent) -> None:
    """End the games."""
    if isinstance(agent, UserAgent):
        agent.where = ""
        agent.finish()


def load(agent: Any, rules: str) -> Defender | UserAgent:
    """An agent from an object, a shipped agent's name, FILE.py[:Agent] or module:Agent, for a rule set."""
    if isinstance(agent, os.PathLike):
        agent = str(agent)
    if not isinstance(agent, str):
        return agent if isinstance(agent, UserAgent | Defender) and not inspect.isclass(agent) else UserAgent(agent)
    if agent in SHIPPED_AGENTS:
        return load_agent(agent, rules)
    place, _, name = agent.rpartition(":") if ":" in agent else (agent, "", "")
    if place.endswith(".py"):
        return UserAgent(_chosen(_module_of_file(Path(place)), name, place), agent)
    if name:
        return UserAgent(_chosen(_module(place), name, place), agent)
    if Path(agent).is_dir():
        raise AgentError(f"{agent} is a folder; trained runs are scored by `optimist score {agent}`")
    raise unknown_name("agent", agent, [*SHIPPED_AGENTS, "FILE.py", "FILE.py:Agent", "module:Agent"])


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise AgentError(f"no file {path}; expected a Python file with an agent")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # its name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # as dataclasses and pickle expect
    sys.path.insert(0, str(path.parent.resolve()))  # as for a script: it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise AgentError(f"{path} cannot be imported: {_raised(error)}") from error
    finally:
        sys.path.remove(str(path.parent.resolve()))
    return module


def _module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise AgentError(f"module {name} cannot be imported: {_raised(error)}") from error
    finally:
        sys.path.remove(os.getcwd())


def _chosen(module: ModuleType, name: str, place: str) -> Any:
    """The agent of this name, or the only one of a module: a class or object with a method, else a function."""
    if name:
        if not hasattr(module, name):
            raise AgentError(f"{place} has no '{name}'; it has {', '.join(_public(module)) or 'no public names'}")
        return getattr(module, name)
    own = {key: value for key, value in _public(module).items() if _is_own(value, module)}
    objects = {key: value for key, value in own.items() if any(callable(getattr(value, m, None)) for m in METHODS)}
    bases = {base for value in objects.values() if inspect.isclass(value) for base in value.__bases__}
    found = {key: value for key, value in objects.items() if not (inspect.isclass(value) and value in bases)}
    found = found or {key: value for key, value in own.items() if inspect.isfunction(value)}
    if not found:
        raise AgentError(
            f"{place} has no agent; expected a function, or a class or object with get_action, act or predict"
        )
    if len(found) > 1:
        names = sorted(found)
        raise AgentError(f"{place} has {len(names)} agents: {', '.join(names)}; name one, as in {place}:{names[0]}")
    return next(iter(found.values()))


def _public(module: ModuleType) -> dict[str, Any]:
    return {key: value for key, value in vars(module).items() if not key.startswith("_")}


def _is_own(value: Any, module: ModuleType) -> bool:
    """Whether a module defines a class or function, or made an object; modules and imported names do not count."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return bool(value.__module__ == module.__name__)
    return not inspect.ismodule(value)


def _made(agent: Any, name: str) -> Any:
    """An object of a class."""
    if not inspect.isclass(agent):
        return agent
    try:
        return agent()
    except (Exception, SystemExit) as error:
        raise AgentError(f"{name} cannot be made without arguments: {_raised(error)}") from error


def _method_of(agent: Any, name: str) -> tuple[str, Callable[..., Any]]:
    for method in METHODS:
        if callable(function := getattr(agent, method, None)):
            return method, function
    if callable(agent):
        return "", agent
    raise AgentError(
        f"{name} is {type(agent).__name__}; expected a function, or an object with get_action, act or predict"
    )


def _parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # built in
        return {}


def _name_of(agent: Any) -> str:
    return str(getattr(agent, "__name__", type(agent).__name__))


def _raised(error: BaseException) -> str:
    """Type and message of an error, with the line of the user's file that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    ours = {Path(file).resolve() for file in (__file__, importlib.__file__)}
    theirs = [frame for frame in frames if Path(frame.filename).resolve() not in ours]
    at = f", {Path(theirs[-1].filename).name} line {theirs[-1].lineno}" if theirs else ""
    return " ".join(f"{type(error).__name__}: {error}".split()) + at


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype} {list(value.shape)}"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
