"""Helpers of the Atari tests: small environments on the real emulator, and processes to wait for."""

from __future__ import annotations

import time

import numpy as np
from ale_py.vector_env import AtariVectorEnv as AleVectorEnv
from gymnasium.vector import AutoresetMode

from optimist.envs.atari.games import find_rom
from optimist.envs.atari.vector import AtariVectorEnv


def make(game="Breakout", num_envs=1, sticky=0.0, emulator="ale", worker_type="none", **settings):
    return AtariVectorEnv(num_envs, game=game, sticky=sticky, emulator=emulator, worker_type=worker_type, **settings)


def ale_env(game, *, sticky, no_ops, max_frames):
    """ale-py's own vector environment, which all emulators have to equal: one game, grey, 84 × 84, raw rewards."""
    # ALE writes its autoreset mode into the metadata of Gymnasium's VectorEnv; a subclass needs its own.
    return type("AleEnv", (AleVectorEnv,), {"metadata": {}})(
        find_rom(game),
        1,
        num_threads=1,
        max_num_frames_per_episode=max_frames,
        repeat_action_probability=sticky,
        autoreset_mode=AutoresetMode.SAME_STEP,
        noop_max=no_ops + 1,  # ALE draws from 0 … noop_max − 1, FIRE included if the game has it
        reward_clipping=False,
    )


def write_step(row, step):
    """Store what `step` of ALE's vector environment returned in shared buffers."""
    row.obs[:], row.results["reward"], row.results["terminated"], row.results["truncated"], infos = step
    row.results["lives"] = infos["lives"]
    if (ended := step[2] | step[3]).any():
        row.final_obs[ended] = infos["final_obs"][ended]


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


def assert_same(one, other):
    """Two results of `play` are the same; rows that `_key` marks as absent are ignored."""
    for x, y in zip(one, other, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(x[:4], y[:4], strict=True))
        for key in x[4] if len(x) > 4 else ():
            present = x[4].get(f"_{key}", np.ones(len(x[0]), bool))
            assert np.array_equal(x[4][key][present], y[4][key][present]), key


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
