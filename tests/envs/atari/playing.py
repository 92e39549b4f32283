"""What the tests of Atari share: small sets of games on the real emulator, and ways to play them."""

from __future__ import annotations

import time

import numpy as np

from optimist.envs.atari import AtariVectorEnv


def make(game="Breakout", num_envs=1, sticky=0.0, threads=1, **settings):
    return AtariVectorEnv(num_envs, game=game, sticky=sticky, threads=threads, **settings)


def random_actions(envs, steps, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, envs.single_action_space.n, (steps, envs.num_envs))


def play(envs, actions, seed=None):
    """Everything `actions` [T, N] lead to, from the reset on (with a seed) or from where the games stand."""
    found = []
    if seed is not None:
        found.append((envs.reset(seed=seed)[0],))
    for row in actions:
        found.append(envs.step(row))
    return found


def same(one, other):
    """Whether two plays agree in every observation, reward, end and count of lives."""

    def parts(moment):
        *arrays, infos = moment if len(moment) > 1 else (*moment, {})
        return [*arrays, *(infos[key] for key in sorted(infos))]

    pairs = [(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(parts(x), parts(y), strict=True)]
    return all(np.array_equal(a, b) for a, b in pairs)


def is_alive(pid):
    """Whether the process still does anything."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids, seconds=20.0):
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_alive, pids))
