"""One game of an agent, step by step: `cage2 watch`, `cage2 duel`, and the data of `cage2 replay`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.agents.user import UserAgent, act, finish, load, start
from cage2.rules.scenario import DECOY, HOST_OF, HOSTS, NOWHERE, RED_SLEEP, RESTORE, VERB_OF
from cage2.rules.state import NUM_BITS, REDS, check_horizon, decoys_of
from cage2.vector_env import NEVER, CageVectorEnv
from cage2.words import describe_action, describe_red

if TYPE_CHECKING:
    from cage2.traces import Trace

BLUE_WIDTH, RED_WIDTH, GREEN_WIDTH = 23, 27, 5
SHORT_HOSTS: Final = tuple(host.replace("Enterprise", "Ent") for host in HOSTS)


@dataclass(frozen=True)
class Step:
    """What happened in a step, and the state after it."""

    number: int
    """From 1; 0 is the state before the first action."""
    action: int
    accepted: bool
    """Whether a decoy was placed; True for the other actions."""
    green: int
    """Host that green scanned, or NOWHERE."""
    red: tuple[int, int, int, int]
    """Verb, target, exploit, success (-1 for Sleep)."""
    reward: float
    total: float
    bits: tuple[int, ...]
    """The observation, 52 bits."""
    access: tuple[int, ...]
    """Of red to each host: 0 none, 1 user, 2 privileged."""
    seen: tuple[bool, ...]
    """Hosts whose ports red knows."""
    decoys: dict[str, list[str]]
    ot_running: bool


@dataclass(frozen=True)
class Game:
    """A game of an agent."""

    agent: str
    red: str
    seed: int
    rules: str
    table: str
    green: str
    steps: tuple[Step, ...]
    """Step 0 is the start."""

    @property
    def total(self) -> float:
        """The return."""
        return self.steps[-1].total


def play_game(
    agent: Any,
    *,
    red: str = "B_line",
    seed: int = 0,
    rules: str = "final",
    table: str | None = None,
    horizon: int = 100,
    green: str = "Sleep",
    greedy: bool = True,
) -> Game:
    """Play a game; `agent` is what `cage2.score` takes. Equal seeds give equal random numbers to red."""
    check_horizon(horizon)
    playing = load(agent, rules)
    table = table or playing.table
    env = CageVectorEnv(1, red=red, green=green, rules=rules, table=table, horizon=NEVER)
    observations, infos = env.reset(seed=seed)
    generator = np.random.default_rng(seed)
    start(playing, 1)
    total = 0.0
    steps = [observe_step(env, 0, 0, 0.0, 0.0)]
    for number in range(1, horizon + 1):
        if isinstance(playing, UserAgent):
            playing.where = f"{red}, seed {seed}, step {number}"
        if isinstance(playing, UserAgent) and not playing.batched:
            action = playing.action(observations[0])
        else:
            action = int(act(playing, observations, greedy, generator)[0])
        observations, rewards, *_ = env.step([action])
        reward = round(float(rewards[0]), 1)
        total = round(total + reward, 1)
        steps.append(observe_step(env, number, action, reward, total))
    finish(playing)
    name = agent if isinstance(agent, str) else getattr(playing, "name", type(playing).__name__)
    return Game(name, REDS[int(infos["red"][0])], seed, rules, table, green, tuple(steps))


def observe_step(env: CageVectorEnv, number: int, action: int, reward: float, total: float) -> Step:
    """The step that the only game of an environment has just taken."""
    return _step(env.games, 0, number, action, reward, total)


def game_of_trace(trace: Trace, name: str) -> Game:
    """A recorded episode, replayed with its recorded outcomes."""
    from cage2.verify import replay

    states, _, rewards = replay(trace)
    totals = np.round(np.concatenate([[0.0], rewards.cumsum()]), 1).tolist()
    actions = [0, *trace.actions.tolist()]
    given = [0.0, *np.round(rewards, 1).tolist()]
    steps = [_step(states, t, t, actions[t], given[t], totals[t]) for t in range(len(states))]
    return Game(name, trace.red, 0, trace.rules, trace.table, trace.green, tuple(steps))


def _step(games: NDArray[np.void], index: int, number: int, action: int, reward: float, total: float) -> Step:
    game = games[index]
    held, owned = int(game["held"]), int(game["owned"])
    return Step(
        number=number,
        action=action,
        accepted=bool(game["blue_success"] != 0),
        green=int(game["green_target"]),
        red=(int(game["red_verb"]), int(game["red_target"]), int(game["red_exploit"]), int(game["red_success"])),
        reward=reward,
        total=total,
        bits=tuple(game["seen"]["bits"].tolist()),
        access=tuple((held >> h & 1) + (owned >> h & 1) for h in range(len(HOSTS))),
        seen=tuple(bool(ports) for ports in game["known_ports"]),
        decoys=decoys_of(games, index),
        ot_running=bool(game["ot_running"]),
    )


def blue_words(step: Step) -> str:
    """Blue's action in at most 23 letters: `Restore User3`, `Tomcat on User2`."""
    verb = VERB_OF[step.action]
    if not DECOY <= verb < RESTORE:
        return describe_action(step.action)
    name = describe_action(step.action).split()[1].replace("HarakaSMPT", "Haraka")
    return f"{name} on {HOSTS[HOST_OF[step.action]]}"


def red_words(step: Step) -> str:
    """Red's action: `Exploit User3 (SMTP)`."""
    return describe_red(*step.red[:3])


def watch_lines(game: Game) -> Iterator[str]:
    """A game as lines of at most 80 columns, one for each step, between a header and the return."""
    yield f"{game.agent} against {game.red}, rules {game.rules}, seed {game.seed}"[:80]
    with_green = game.green != "Sleep"
    yield _line("step", "blue", " ", "green" if with_green else None, "red", " ", "reward", "sum")
    for step in game.steps[1:]:
        scanned = "" if step.green == NOWHERE else SHORT_HOSTS[step.green]
        yield _line(
            str(step.number),
            blue_words(step),
            " " if step.accepted else "x",
            scanned if with_green else None,
            red_words(step),
            {0: "x", 1: " "}.get(step.red[3], " "),
            f"{step.reward:z.1f}",
            f"{step.total:z.1f}",
        )
    yield "x: fails. " + ("green: the host it scans." if with_green else "green sleeps.")
    yield f"return {game.total:z.1f}"


def _line(
    number: str, blue: str, refused: str, green: str | None, red: str, failed: str, reward: str, total: str
) -> str:
    green_column = "" if green is None else f"{green:<{GREEN_WIDTH}} "
    return (
        f"{number:>4} {blue:<{BLUE_WIDTH}} {refused} {green_column}{red:<{RED_WIDTH}}{failed} {reward:>6} {total:>7}"
    ).rstrip()


def duel_lines(one: Game, other: Game) -> Iterator[str]:
    """Where two games on the same random numbers first differ, and what that cost."""
    yield f"{one.agent} and {other.agent} against {one.red}, rules {one.rules}, seed {one.seed}"
    pairs = list(zip_longest(one.steps[1:], other.steps[1:]))
    first = next((number for number, (a, b) in enumerate(pairs) if a.action != b.action), None)
    if first is None:
        yield f"Both take the same actions in all {len(pairs)} steps: return {one.total:z.1f}."
        return
    if first:
        yield f"steps 1 to {first}: the same actions, {one.steps[first].total:z.1f} each"
    for game in (one, other):
        step = game.steps[first + 1]
        refused = "" if step.accepted else " (refused)"
        yield f"step {first + 1}: {game.agent}: {describe_action(step.action)}{refused}"
    differ = sum(a.action != b.action for a, b in pairs)
    yield f"actions differ in {differ} of {len(pairs)} steps"
    apart = next(
        (n for n, (a, b) in enumerate(pairs) if a.red != b.red and (a.red[0], b.red[0]) != (RED_SLEEP,) * 2), None
    )
    yield "red does the same in both" if apart is None else f"red first acts otherwise in step {apart + 1}"
    rows = [(game.agent, *(f"{game.steps[n].total:z.1f}" for n in _marks(first, len(pairs)))) for game in (one, other)]
    from cage2.text import text_table

    yield text_table(("sum after step", *map(str, _marks(first, len(pairs)))), rows)
    yield f"difference {other.total - one.total:+.1f} for {other.agent}"


def _marks(first: int, last: int) -> list[int]:
    """Steps at which sums are shown: before the first difference, the challenge's horizons, and the end."""
    return sorted({first, *(h for h in (30, 50, 100) if first < h < last), last})


def bits_of(step: Step) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Activity and status of each host as blue sees them."""
    bits = step.bits
    return [((bits[i], bits[i + 1]), (bits[i + 2], bits[i + 3])) for i in range(0, NUM_BITS, 4)]
