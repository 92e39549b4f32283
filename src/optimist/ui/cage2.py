"""The view CAGE 2: a policy played now, a stored episode or a recorded trace on the map of the package cage2."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from optimist.errors import ConfigError, OptimistError, RunFolderError, missing_extra

if TYPE_CHECKING:
    from cage2.game import Game
    from optimist.ui.app import Site
    from optimist.ui.folders import RunInfo
    from optimist.ui.memory import Remembered, Row

SOURCES: Final = {"": "policy played now", "stored": "stored episode", "trace": "trace file"}
REDS: Final = ("B_line", "Meander", "Sleep")
HORIZONS: Final = (30, 50, 100)
SEEDS: Final = 1_000_000
MOST_TRACES: Final = 200
RECORDED: Final = "recorded episodes of the original game"
"""The trace file that the package cage2 brings."""
TRACE_FILES: Final = ("*.jsonl.xz", "*.jsonl.gz")


def cage2_page(site: Site, request: Request) -> Response:
    """The view CAGE 2, with the replay that the address names."""
    if importlib.util.find_spec("cage2") is None:
        raise missing_extra("the CAGE 2 replay", "cage2", "cage2")
    query = request.query_params
    source = query.get("source", "")
    source = source if source in SOURCES else ""
    runs = [run for run in site.folder.scan() if "CAGE" in run.family and run.is_folder and run.status != "broken"]
    shown: dict[str, Any] = {
        "query": dict(query), "sources": SOURCES, "source": source, "reds": REDS, "horizons": HORIZONS,
        "runs": [run.name for run in runs], "stored_runs": [run.name for run in runs if run.memory],
        "agents": _agents(), "files": [], "episodes": [], "steps": [], "recorded": RECORDED, "notice": "", "data": None,
        "map": "", "blind": False, "files_count": 0,
    }  # fmt: skip
    try:
        if source == "stored":
            games = _stored(site, query, shown)
        elif source == "trace":
            games = _traced(site, query, shown)
        else:
            games = _played(site, query, runs)
    except Exception as error:
        if not isinstance(error, _errors()):
            raise
        shown["notice"] = " ".join(str(error).split())
        return site.page("cage2.html", request, view="cage2", **shown)
    if games:
        from cage2.page import data_of, read_file

        data = data_of(games)
        shown |= {"data": json.dumps(data).replace("<", "\\u003c"), "about": data["about"], "map": read_file("map.svg")}
    return site.page("cage2.html", request, view="cage2", **shown)


def _agents() -> list[str]:
    from cage2.agents.shipped import SHIPPED_AGENTS

    return list(SHIPPED_AGENTS)


def _errors() -> tuple[type[Exception], ...]:
    from cage2.errors import Cage2Error

    return OptimistError, Cage2Error


# -- a policy played now


def _played(site: Site, query: Any, runs: Sequence[RunInfo]) -> list[Game]:
    """One game of the defender, and of the one it is compared with, on one seed."""
    blue, other = query.get("blue") or "best", query.get("with")
    red, green = query.get("red") or "B_line", "GreenAgent" if query.get("green") else "Sleep"
    horizon = int(query["horizon"]) if query.get("horizon", "").isdigit() else HORIZONS[0]
    seed = int(query["seed"]) if query.get("seed", "").isdigit() else 0
    if red not in REDS or horizon not in HORIZONS or seed >= SEEDS:
        raise ConfigError(f"no such game: red {red[:20]}, {horizon} steps, seed {seed}")
    rules = "competition" if query.get("rules") == "competition" else "final"
    settings = {"red": red, "green": green, "rules": rules, "seed": seed, "horizon": horizon}
    return [_play(site, name, settings) for name in (blue, other) if name]


def _play(site: Site, name: str, settings: dict[str, Any]) -> Game:
    from cage2.game import play_game

    if name in _agents():
        return play_game(name, **settings)
    path = site.folder.path(name)
    newest = max((p.stat().st_mtime_ns for p in (path / "checkpoints").glob("step-*")), default=0)
    defender = _defender(path, newest)
    return replace(play_game(defender, **settings), agent=name)


@lru_cache(maxsize=4)
def _defender(path: Path, newest: int) -> Any:
    """The defender of a run: of its final weights, or of its newest checkpoint (saved at `newest`)."""
    from optimist.deploy.cage2_runs import TrainedRun, make_defender
    from optimist.training.agent import newest_agent

    return make_defender([TrainedRun.of(str(path), newest_agent(path)[0])])


# -- a stored episode


def _stored(site: Site, query: Any, shown: dict[str, Any]) -> list[Game]:
    from optimist.ui.memory import checkpoint_steps, chosen_step, remember

    name = query.get("run") or next(iter(shown["stored_runs"]), "")
    if not name:
        raise RunFolderError("no CAGE 2 run in this folder has a memory; train one: optimist train cage2/cardiff-opr")
    steps = checkpoint_steps(site.folder.path(name))
    if not steps:
        raise RunFolderError(f"{name} has no checkpoint yet; the first one appears here when it is saved")
    memory = remember(site, name, chosen_step(steps, query.get("at"), None))
    rows = sorted(memory.rows, key=lambda row: -row.stored.total_reward)
    shown |= {"episodes": rows, "steps": steps, "run_name": name, "at": memory.step}
    row = memory.row(query.get("episode", "")) or next(iter(rows), None)
    if row is None:
        raise RunFolderError(f"nothing is stored in the memory of {name} at {memory.step:,} steps")
    shown["episode"] = row.id
    game, exact = stored_game(memory, row)
    shown["blind"] = not exact
    return [game]


def stored_game(memory: Remembered, row: Row) -> tuple[Game, bool]:
    """A stored episode, and whether it was replayed exactly from its start; else it holds only what blue saw."""
    stored = row.stored
    actions = memory.opr.memory.pools["actions"][stored.rows].numpy().astype(np.int64)
    start = None if stored.start_state is None else stored.start_state.numpy()
    if start is not None and start[2] >= 0 and not stored.clipped:
        return _replayed(memory, actions, start), True
    return _as_seen(memory, row, actions), False


def _replayed(memory: Remembered, actions: Any, start: Any) -> Game:
    """The episode again, from the random state of its start and blue's stored actions."""
    from cage2.game import Game, observe_step
    from cage2.rules.state import REDS as NAMES
    from cage2.vector_env import CageVectorEnv
    from optimist.envs.make import make_envs

    envs = make_envs(replace(memory.config.env, num_envs=1), seed=0)
    game = envs.unwrapped
    assert isinstance(game, CageVectorEnv)
    game.restore_starts(start)
    game.settings = game.settings._replace(horizon=2**31 - 1)
    steps = [observe_step(game, 0, 0, 0.0, 0.0)]
    flat = _flat_actions(memory, actions)
    total = 0.0
    for number, action in enumerate(actions.tolist(), 1):
        _, rewards, *_ = game.step([action])
        reward = round(float(rewards[0]), 1)
        total = round(total + reward, 1)
        steps.append(observe_step(game, number, flat[number - 1], reward, total))
    envs.close()
    return Game(
        f"{memory.name}, stored", NAMES[int(start[2])], 0, *_rules(memory), _green(memory), tuple(steps)
    )  # fmt: skip


def _as_seen(memory: Remembered, row: Row, actions: Any) -> Game:
    """The episode from blue's observations alone: nothing of red's is known."""
    from cage2.game import Game, Step
    from cage2.rules.scenario import HOSTS, NO_EXPLOIT, NOWHERE, RED_SLEEP
    from cage2.rules.state import NUM_BITS
    from cage2.rules.state import REDS as NAMES

    good, frames = memory.opr.memory, memory.frames_of(row.stored)[:, -1]
    bits = good.pools["frames"][frames][:, :NUM_BITS].numpy().astype(int)
    rewards = good.pools["rewards"][row.stored.rows].tolist()
    scale = memory.config.env.reward_scale or 1.0
    flat, total, steps = _flat_actions(memory, actions), 0.0, list[Step]()
    for number in range(len(actions)):  # the observation after step t is that before step t + 1
        reward = round(rewards[number - 1] / scale, 1) if number else 0.0
        total = round(total + reward, 1)
        steps.append(
            Step(
                number, flat[number - 1] if number else 0, True, NOWHERE, (RED_SLEEP, NOWHERE, NO_EXPLOIT, -1),
                reward, total, tuple(bits[number].tolist()), (0,) * len(HOSTS), (False,) * len(HOSTS), {}, True,
            )
        )  # fmt: skip
    red = NAMES[row.stored.group] if memory.config.env.group_key == "red" else _kwargs(memory).get("red", "B_line")
    return Game(f"{memory.name}, stored", str(red), 0, *_rules(memory), _green(memory), tuple(steps))


def _flat_actions(memory: Remembered, actions: Any) -> list[int]:
    """The stored actions as flat actions 0 … 144."""
    if "Cardiff" not in memory.config.env.id:
        return [int(action) for action in actions]
    from cage2.cardiff import CardiffInterface
    from cage2.cardiff_rules import OPENING

    interface = CardiffInterface(1)
    outputs = [int(action) for action in actions]
    if _kwargs(memory).get("opening"):
        outputs[: len(OPENING)] = list(OPENING)
    return [int(interface.flat_actions(np.array([output]))[0]) for output in outputs]


def _rules(memory: Remembered) -> tuple[str, str]:
    kwargs = _kwargs(memory)
    table = "cardiff" if "Cardiff" in memory.config.env.id else "official"
    return str(kwargs.get("rules", "final")), str(kwargs.get("table", table))


def _green(memory: Remembered) -> str:
    return str(_kwargs(memory).get("green", "Sleep"))


def _kwargs(memory: Remembered) -> dict[str, Any]:
    return dict(memory.config.env.kwargs)


# -- a trace file


def _traced(site: Site, query: Any, shown: dict[str, Any]) -> list[Game]:
    """A recorded episode of a file below the runs folder, or of the package."""
    from cage2.game import game_of_trace
    from cage2.traces import RECORDED as SHIPPED

    found = [path for pattern in TRACE_FILES for path in site.folder.root.rglob(pattern) if not path.is_symlink()]
    inside = {path.relative_to(site.folder.root).as_posix(): path for path in sorted(found)[:MOST_TRACES]}
    shown["files"] = [RECORDED, *inside]
    name = query.get("file") or RECORDED
    if name != RECORDED and name not in inside:
        raise RunFolderError(f"no trace file '{name[:80]}' below the runs folder")
    number = int(query["number"]) if query.get("number", "").isdigit() else 1
    trace, count = _trace(SHIPPED if name == RECORDED else inside[name], number)
    shown["files_count"] = count
    return [game_of_trace(trace, f"episode {number}")]


@lru_cache(maxsize=2)
def _traces(path: Path, changed: int) -> list[Any]:
    from cage2.traces import read_traces

    return list(read_traces(path))


def _trace(path: Path, number: int) -> tuple[Any, int]:
    traces = _traces(path, path.stat().st_mtime_ns)
    if not 1 <= number <= len(traces):
        raise RunFolderError(f"{path.name} has {len(traces):,} episodes, got number {number}")
    return traces[number - 1], len(traces)
