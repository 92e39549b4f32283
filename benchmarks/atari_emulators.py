"""Play a policy on ale-py and on a2600 at once and compare every observation, reward, end and info, bit for bit.

    python benchmarks/atari_emulators.py --games Breakout Pong --steps 50000 --out results/speed/atari-emulators.jsonl
    python benchmarks/atari_emulators.py --run runs/atari-fast-0-…          # a trained policy, in its own game

Without a run the policy is the untrained network of `atari/paper`, by seed: it acts at random, with probabilities that
depend on the observation. Every 5,000 steps both emulators are saved, and fresh ones are restored from that.
The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from optimist.config import EnvConfig, RunConfig
from optimist.envs.make import make_envs
from optimist.networks.policy import PolicyNetwork
from optimist.presets import get_preset
from optimist.training.agent import load
from optimist.training.build import make_policy

GAMES = ["Breakout", "Frostbite", "Pong", "Qbert", "Seaquest"]
SAVE_EVERY = 5_000
"""Steps of all environments between two restorations."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--run", type=Path, help="a run whose policy plays, in its game")
    parser.add_argument("--steps", type=int, default=50_000, help="per game, of all environments together")
    parser.add_argument("--num-envs", type=int, default=8)
    parser.add_argument("--sticky", type=float, default=0.0, help="without --run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file to append the rows to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for config, policy in _policies(args):
        rows.append(compare(config, policy, args.steps, args.seed) | {"policy": str(args.run or "seeded network")})
        print(json.dumps(rows[-1]), flush=True)
        if args.out:
            with args.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    return int(any(row["first_difference"] for row in rows))


def _policies(args: argparse.Namespace) -> Iterator[tuple[RunConfig, PolicyNetwork | None]]:
    if args.run:
        agent = load(args.run)
        yield replace(agent.config, env=replace(agent.config.env, num_envs=args.num_envs)), agent.policy
        return
    for game in args.games:
        config = get_preset("atari/paper")(game=game, sticky=args.sticky)
        yield replace(config, seed=args.seed, env=replace(config.env, num_envs=args.num_envs)), None


@dataclass
class Played:
    """What was seen."""

    steps: int = 0
    episodes: int = 0
    lives_lost: int = 0
    total_reward: float = 0.0
    restorations: int = 0
    first_difference: str = ""
    digest: Any = field(default_factory=hashlib.sha256)


def compare(config: RunConfig, policy: PolicyNetwork | None, steps: int, seed: int) -> dict[str, Any]:
    """Play until `steps` or the first difference. The actions are those for ale-py's observations."""
    played, generator = Played(), torch.Generator().manual_seed(seed)
    envs = {emulator: make_envs(with_emulator(config.env, emulator)) for emulator in ("ale", "a2600")}
    policy = policy or make_policy(config, envs["ale"])
    results = {emulator: (env.reset(seed=seed)[0],) for emulator, env in envs.items()}
    while played.steps < steps and not played.first_difference:
        obs = results["ale"][0]
        with torch.no_grad():
            actions = policy.act(torch.from_numpy(obs), generator).numpy()
        results = {emulator: env.step(actions) for emulator, env in envs.items()}
        played.steps += len(actions)
        _record(played, results["ale"])
        played.first_difference = difference(results["ale"], results["a2600"], played.steps)
        if played.steps // SAVE_EVERY > (played.steps - len(actions)) // SAVE_EVERY:
            envs = {emulator: restored(env, with_emulator(config.env, emulator)) for emulator, env in envs.items()}
            played.restorations += 1
    versions = {emulator: env.unwrapped.emulators.version for emulator, env in envs.items()}
    for env in envs.values():
        env.close()
    task = {"game": config.env.kwargs["game"], "sticky": config.env.kwargs["sticky"], "seed": seed}
    return {**task, **versions, **vars(played), "digest": played.digest.hexdigest()[:16]}


def with_emulator(config: EnvConfig, emulator: str) -> EnvConfig:
    """The same games on this emulator."""
    return replace(config, kwargs={**config.kwargs, "emulator": emulator})


def restored(envs: Any, config: EnvConfig) -> Any:
    """New environments in the state of these, which are closed."""
    with closing(envs):
        state = envs.unwrapped.state_dict()
    fresh = make_envs(config)
    fresh.unwrapped.load_state_dict(state)
    return fresh


def _record(played: Played, step: tuple[Any, ...]) -> None:
    obs, rewards, terminated, truncated, infos = step
    played.episodes += int((terminated | truncated).sum())
    played.lives_lost += int(infos.get("life_lost", np.zeros(1)).sum())
    played.total_reward += float(rewards.sum())
    played.digest.update(obs.tobytes() + rewards.tobytes() + terminated.tobytes() + truncated.tobytes())


def difference(one: tuple[Any, ...], other: tuple[Any, ...], steps: int) -> str:
    """Which part of two steps differs; empty if none does."""
    names = ("observation", "reward", "terminated", "truncated")
    differ = [name for name, a, b in zip(names, one, other, strict=False) if not np.array_equal(a, b)]
    infos, others = one[4], other[4]
    if set(infos) != set(others):
        return f"step {steps}: infos {sorted(set(infos) ^ set(others))}"
    for name in infos:
        present = infos.get(f"_{name}", np.ones(len(one[1]), np.bool_))
        if not np.array_equal(infos[name][present], others[name][present]):
            differ.append(name)
    return f"step {steps}: {', '.join(differ)}" if differ else ""


if __name__ == "__main__":
    sys.exit(main())
