"""Helpers of the Atari tests: small environments on the real emulator, and processes to wait for."""

from __future__ import annotations

import time

import numpy as np

from optimist.envs.atari.vector import AtariVectorEnv


def make(game="Breakout", num_envs=1, sticky=0.0, threads=1, **settings):
    return AtariVectorEnv(num_envs, game=game, sticky=sticky, threads=threads, **settings)


def random_actions(envs, steps, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, envs.single_action_space.n, (steps, envs.num_envs))


def play(envs, actions, seed=None):
    """The results of `actions` [T, N], after a reset if there is a seed."""
    results = []
    if seed is not None:
        results.append((envs.reset(seed=seed)[0],))
    for row in actions:
        results.append(envs.step(row))
    return results


def same(one, other):
    """Whether two results of `play` agree in every observation, reward, end and info."""

    def parts(result):
        *arrays, infos = result if len(result) > 1 else (*result, {})
        return [*arrays, *(infos[key] for key in sorted(infos))]

    pairs = [(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(parts(x), parts(y), strict=True)]
    return all(np.array_equal(a, b) for a, b in pairs)


def is_alive(pid):
    """Whether the process exists and is no zombie."""
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
