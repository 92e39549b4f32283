"""The view Memory: what a run's memory holds at a checkpoint, and whether its policy still agrees with it."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from starlette.requests import Request
from starlette.responses import Response
from torch import Tensor

from optimist.config import RunConfig
from optimist.core.cloning import advantage_weights, luck_weights, tail_weights
from optimist.core.eviction import StoredEpisode
from optimist.core.regularizer import OptimisticRegularizer
from optimist.envs.make import make_envs
from optimist.errors import CheckpointError, OptimistError
from optimist.networks.policy import PolicyNetwork
from optimist.tracking.checkpoint import checkpoint_step, load_checkpoint
from optimist.tracking.run_dir import RunDir
from optimist.training.agent import make_agent
from optimist.training.build import prepare_torch
from optimist.training.watch import load_memory
from optimist.ui.drawing import histogram, histogram_figure

if TYPE_CHECKING:
    from optimist.ui.app import Site
    from optimist.ui.folders import RunInfo

COLUMNS: Final = {
    "return": "Return", "length": "Length", "age": "Age, updates", "threshold": "τ then", "weight": "Weight w",
    "drawn": "Drawn", "delta": "Δ",
}  # fmt: skip
KEPT: Final = 2
"""Memories kept in the server."""
MOST_IMAGES: Final = 2_000
MOST_VECTORS: Final = 50_000
"""Stored steps at which the policy is evaluated for the table."""
BATCH: Final = 512
MOST_ROWS: Final = 300


@dataclass
class Row:
    """One stored episode, as the table shows it."""

    id: str
    stored: StoredEpisode
    age: int
    drawn: int | None
    weight: float
    delta: float

    @property
    def values(self) -> dict[str, float | None]:
        """A number for each column; None where it is not known."""
        threshold = self.stored.threshold
        return {
            "return": self.stored.total_reward, "length": float(len(self.stored.rows)), "age": float(self.age),
            "threshold": threshold if math.isfinite(threshold) else None, "weight": self.weight,
            "drawn": None if self.drawn is None else float(self.drawn), "delta": self.delta,
        }  # fmt: skip


class Remembered:
    """The memory of a run at a checkpoint, with the policy of that checkpoint."""

    def __init__(self, folder: Path, name: str, step: int) -> None:
        self.name, self.step = name, step
        run = RunDir.read(folder)
        path = run.checkpoints / f"step-{step}"
        saved: Any = load_checkpoint(path)
        try:
            learner = saved["state"]["algorithm"]
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"checkpoint {path.name} was not saved by a training run") from error
        self.config: RunConfig = replace(run.config, device="cpu")
        prepare_torch(self.config)
        self.opr: OptimisticRegularizer = load_memory(run.config, learner, folder)
        self.drawn = [self.opr.memory.times_drawn(stored) for stored in self.opr.memory.episodes]
        agent = make_agent(self.config, learner["policy"], folder, step, origin=f"checkpoint {path.name}")
        self.policy: PolicyNetwork = agent.policy
        self.lock = threading.Lock()

    @property
    def stored(self) -> list[StoredEpisode]:
        """The stored episodes, oldest first."""
        return self.opr.memory.episodes

    @cached_property
    def envs(self) -> Any:
        """One environment of the run, for the names of its actions and for its pictures."""
        envs = make_envs(replace(self.config.env, num_envs=1), seed=self.config.seed)
        envs.close()
        return envs.unwrapped

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each stored episode, oldest first."""
        weights, deltas = self._judged()
        ids, seen = [self._id(stored) for stored in self.stored], Counter[str]()
        for place, one in enumerate(ids):  # equal episodes have equal ids
            ids[place] = f"{one}-{seen[one]}" if seen[one] else one
            seen[one] += 1
        return [
            Row(ids[i], stored, self.opr.updates - stored.admitted_at, self.drawn[i], weights[i], deltas[i])
            for i, stored in enumerate(self.stored)
        ]

    def row(self, name: str) -> Row | None:
        """The episode of this id."""
        return next((row for row in self.rows if row.id == name), None)

    def frames_of(self, stored: StoredEpisode) -> Tensor:
        """The rows [L, stack] of the frame pool of an episode's observations."""
        return stored.frames.unfold(0, self.opr.memory.frame_stack, 1)

    def groups(self) -> list[int]:
        """The groups of episodes that have a window, the one with most stored episodes first."""
        counts = {group: sum(s.group == group for s in self.stored) for group in self.opr.windows.windows}
        return sorted(counts, key=lambda group: (-counts[group], group))

    def _judged(self) -> tuple[list[float], list[float]]:
        """Mean cloning weight and mean Δ of each episode; of many steps, an even part is evaluated."""
        memory = self.opr.memory
        if not self.stored:
            return [], []
        image = memory.pools["frames"].dim() > 2
        most = max(4, (MOST_IMAGES if image else MOST_VECTORS) // len(self.stored))
        picks = [torch.linspace(0, len(s.rows) - 1, min(most, len(s.rows))).round().long() for s in self.stored]
        good = memory.at(
            torch.cat([s.rows[p] for s, p in zip(self.stored, picks, strict=True)]),
            torch.cat([self.frames_of(s)[p] for s, p in zip(self.stored, picks, strict=True)]),
        )
        with torch.no_grad(), self.lock:
            parts = [slice(i, i + BATCH) for i in range(0, len(good), BATCH)]
            logp = torch.cat([self.policy.log_prob(good.obs[p], good.actions[p]) for p in parts])
            values = torch.cat([self.policy.value(good.obs[p]) for p in parts])
        config = self.opr.config
        weights = advantage_weights(good.returns, values) if config.bc_weights == "advantage" else torch.ones(len(good))
        luck = [1.0] * len(picks)
        if config.bc_luck == "tail":
            luck = tail_weights(self.stored, self.opr.windows, self.opr.finished)
        elif config.bc_luck is not None:
            luck = luck_weights(self.stored, self.opr.windows, config.bc_luck)
        sizes = [len(p) for p in picks]
        means = [float(part.mean()) * factor for part, factor in zip(torch.split(weights, sizes), luck, strict=True)]
        return means, [float(part.mean()) for part in torch.split(logp - memory.pools["logp"][good.rows], sizes)]

    def _id(self, stored: StoredEpisode) -> str:
        """A name that the episode keeps as long as it is stored."""
        logp = self.opr.memory.pools["logp"][stored.rows].numpy().tobytes()
        about = f"{stored.admitted_at} {stored.total_reward!r} {stored.group} {len(stored.rows)} ".encode()
        return hashlib.sha256(about + logp).hexdigest()[:10]


_KEPT: OrderedDict[tuple[Path, int, int], Remembered] = OrderedDict()
_LOCK = threading.Lock()


def remember(site: Site, name: str, step: int) -> Remembered:
    """The memory of a run at a checkpoint; the last ones read are kept."""
    folder = site.folder.path(name)
    manifest = folder / "checkpoints" / f"step-{step}" / "manifest.json"
    key = folder, step, manifest.stat().st_mtime_ns if manifest.exists() else 0
    with _LOCK:
        if key not in _KEPT:
            _KEPT[key] = Remembered(folder, name, step)
            while len(_KEPT) > KEPT:
                _KEPT.popitem(last=False)
        _KEPT.move_to_end(key)
        return _KEPT[key]


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps at which checkpoints are there, oldest first."""
    found = []
    for path in (folder / "checkpoints").glob("step-*"):
        try:
            found.append(checkpoint_step(path))
        except OptimistError:
            continue
    return sorted(found)


def chosen_step(steps: list[int], at: str | None, near: str | None) -> int:
    """The step that the address names: `at` exactly, the checkpoint closest to `near`, or the newest."""
    if at and at.isdigit() and int(at) in steps:
        return int(at)
    if near and near.isdigit():
        return min(steps, key=lambda step: abs(step - int(near)))
    return steps[-1]


def memory_page(site: Site, request: Request) -> Response:
    """The view Memory of the run that the address names, or of the first that has a memory."""
    query = request.query_params
    runs = [run for run in site.folder.scan() if run.memory and run.is_folder and run.status != "broken"]
    name = query.get("run") or next((run.name for run in runs if checkpoint_steps(run.path)), "")
    shown: dict[str, Any] = {"runs": [run.name for run in runs], "name": name, "query": dict(query), "steps": []}
    if not name:
        return site.page("memory.html", request, view="memory", notice=_nothing(runs), **shown)
    run = site.folder.get(name)
    if name not in shown["runs"]:
        shown["runs"] = [name, *shown["runs"]]
    steps = checkpoint_steps(site.folder.path(name))
    if not run.memory:
        words = f"This run has no memory: its method is {run.method} without OPR. Choose a run with OPR."
        return site.page("memory.html", request, view="memory", notice=words, **shown)
    if not steps:
        words = "Nothing is stored yet: the run has no checkpoint. The first one appears here when it is saved."
        return site.page("memory.html", request, view="memory", notice=words, **shown)
    step = chosen_step(steps, query.get("at"), query.get("near"))
    shown["steps"] = steps
    try:
        memory = remember(site, name, step)
    except OptimistError as error:
        words = f"The checkpoint at {step:,} steps cannot be read: {' '.join(str(error).split())}"
        return site.page("memory.html", request, view="memory", notice=words, **shown)
    return site.page("memory.html", request, view="memory", notice="", **shown, **_content(site, memory, request))


def memory_news(site: Site, request: Request) -> Response:
    """One line when a newer checkpoint has admitted or evicted episodes since the one that is shown."""
    query = request.query_params
    name, at = query.get("run", ""), query.get("at", "")
    steps = checkpoint_steps(site.folder.path(name))
    if not steps or not at.isdigit() or steps[-1] <= int(at):
        return site.page("news.html", request, admitted=0, evicted=0, query=dict(query), newest=0)
    known = set(query.get("ids", "").split(","))
    newest = remember(site, name, steps[-1])
    ids = {row.id for row in newest.rows}
    return site.page(
        "news.html", request, admitted=len(ids - known), evicted=len(known - ids - {""}), query=dict(query),
        newest=steps[-1],
    )  # fmt: skip


def memory_film(site: Site, request: Request) -> Response:
    """The frames of an episode, as bytes."""
    from optimist.ui.episode import film_bytes

    query = request.query_params
    memory = remember(site, query.get("run", ""), int(query.get("at", "0")))
    row = memory.row(query.get("episode", ""))
    if row is None:
        raise CheckpointError("this episode is not stored at this checkpoint")
    return Response(film_bytes(memory, row.stored), media_type="application/octet-stream")


def _nothing(runs: list[RunInfo]) -> str:
    if runs:
        return "No run has a checkpoint yet. The first one appears here when it is saved."
    return "No run in this folder has a memory. Train one with OPR: optimist train deepsea/opr."


def _content(site: Site, memory: Remembered, request: Request) -> dict[str, Any]:
    """Tiles, histogram, table and playback."""
    from optimist.ui.episode import playback

    query = request.query_params
    groups = memory.groups()
    group = next((g for g in groups if str(g) == query.get("group")), groups[0] if groups else 0)
    window = memory.opr.windows.windows.get(group)
    recent = [] if window is None else list(window.returns)
    threshold = None if window is None else window.threshold
    mine = [row for row in memory.rows if row.stored.group == group]
    bins = histogram([row.stored.total_reward for row in mine], recent)
    chosen = next((i for i, one in enumerate(bins) if f"{one.low:g}" == query.get("bin")), None)
    rows = mine
    if chosen is not None:
        low, high = bins[chosen].low, bins[chosen].high
        last = chosen == len(bins) - 1
        rows = [r for r in mine if low <= r.stored.total_reward < high or (last and r.stored.total_reward == high)]
    column, _, direction = query.get("sort", "return").partition(" ")
    column = column if column in COLUMNS else "return"
    rows.sort(key=lambda row: _order(row.values[column]), reverse=direction != "up")
    row = memory.row(query.get("episode", "")) or (rows[0] if rows and query.get("episode") is None else None)
    opr, stored = memory.opr, memory.stored
    tiles = {
        "threshold τ": threshold, "mean return in memory": opr.memory.mean_return if stored else None,
        f"mean return, last {len(recent)}": float(np.mean(recent)) if recent else None,
        "of the memory filled": opr.memory.num_transitions / opr.config.capacity_transitions,
        "mean weight w in cloning": _mean([row.weight for row in memory.rows]),
        "mean age, updates": _mean([float(row.age) for row in memory.rows]),
    }  # fmt: skip
    return {
        "step": memory.step, "tiles": tiles, "rows": rows, "columns": COLUMNS, "sort": column, "up": direction == "up",
        "histogram": histogram_figure(bins, threshold, chosen) if bins else None, "threshold": threshold,
        "chosen": None if chosen is None else bins[chosen], "row": row, "groups": groups, "group": group,
        "group_names": {g: group_name(memory, g) for g in groups},
        "playback": None if row is None else playback(memory, row), "total": len(stored), "most": MOST_ROWS,
        "recent": len(recent),
        "transitions": opr.memory.num_transitions, "ids": ",".join(one.id for one in memory.rows),
        "sampled": opr.memory.num_transitions > MOST_IMAGES and bool(stored) and opr.memory.pools["frames"].dim() > 2,
    }  # fmt: skip


def group_name(memory: Remembered, group: int) -> str:
    """The name of a group of episodes: in CAGE 2 the attacker."""
    if memory.config.env.group_key == "red" and "CAGE2" in memory.config.env.id:
        from cage2.rules.state import REDS

        return REDS[group]
    return f"{memory.config.env.group_key or 'group'} {group}"


def _order(value: float | None) -> float:
    return -math.inf if value is None or math.isnan(value) else value


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
