"""Frames are stored once, and every stack is restored exactly."""

import dataclasses

import numpy as np
import pytest
import torch

from optimist.errors import ConfigError
from optimist.replay.prioritized import PrioritizedReplay
from optimist.replay.transitions import TERMINAL, Replay
from tests.replay.rollouts import make_rollout

STACK, SIDE = 4, 3


def stacked_stream(seed: int, num_steps: int, num_envs: int, *, padding: str, next_step: bool = False):
    """Stacks as an environment would give them: obs, what followed each step, ends, time limits, valid steps."""
    generator = np.random.default_rng(seed)
    number = iter(range(1, 10**6))

    def frame() -> np.ndarray:
        index = next(number)
        return np.array([index % 251 + 1, index // 251, 7], np.uint8)[:, None] * np.ones(SIDE, np.uint8)

    def reset() -> list[np.ndarray]:
        first = frame()
        older = first if padding == "repeat" else np.zeros_like(first)
        return [older] * (STACK - 1) + [first]

    shape = (num_steps, num_envs)
    obs = np.zeros((*shape, STACK, SIDE, SIDE), np.uint8)
    following = np.zeros_like(obs)
    dones, truncated, valid = np.zeros(shape, bool), np.zeros(shape, bool), np.ones(shape, bool)
    for n in range(num_envs):
        stack, resetting = reset(), False
        for t in range(num_steps):
            obs[t, n] = stack
            if resetting:
                valid[t, n], dones[t, n], resetting, stack = False, True, False, reset()
                continue
            stack = [*stack[1:], frame()]
            following[t, n] = stack
            if generator.random() < 0.25:
                dones[t, n], truncated[t, n] = True, generator.random() < 0.5
                if next_step:
                    resetting = True
                else:
                    stack = reset()
    return {"obs": obs, "following": following, "dones": dones, "truncated": truncated, "valid": valid}


def fill(replay: Replay, stream, portion: int, begin: int = 0) -> None:
    for at in range(begin, len(stream["obs"]), portion):
        rows = {name: torch.from_numpy(column[at : at + portion]) for name, column in stream.items()}
        rollout = make_rollout(
            rows["obs"], torch.zeros(rows["dones"].shape), rows["dones"], truncated=rows["truncated"],
            valid=None if bool(rows["valid"].all()) else rows["valid"],
        )  # fmt: skip
        final = rows["following"][rows["truncated"]]
        limits = {"final_obs": final, "truncated": rows["truncated"]} if len(final) else {}
        rollout = dataclasses.replace(rollout, **({"final_obs": None, "truncated": None} | limits))
        replay.add(rollout, rollout.rewards)


@pytest.mark.parametrize("padding", ["zeros", "repeat"])
@pytest.mark.parametrize("next_step", [False, True])
@pytest.mark.parametrize(("num_envs", "portion", "capacity"), [(1, 1, 500), (2, 5, 500), (3, 4, 100), (2, 7, 44)])
def test_every_stack_is_restored_exactly(padding, next_step, num_envs, portion, capacity):
    stream = stacked_stream(3, 84, num_envs, padding=padding, next_step=next_step)
    replay = Replay(capacity, frame_stack=STACK)
    fill(replay, stream, portion)
    assert replay.observations.frames.shape == (replay.size, SIDE, SIDE)
    rows = min(84, capacity // num_envs)
    first = 84 - rows + (STACK - 1 if rows < 84 else 0)
    count = replay.num_ready
    found = replay.transitions((torch.arange(count) + replay._first * num_envs) % replay.size)
    last = first + count // num_envs
    assert last == 83
    assert found.obs.numpy().tobytes() == stream["obs"][first:last].tobytes()
    following = stream["following"][first:last].reshape(count, STACK, SIDE, SIDE)
    wanted = (stream["valid"] & (~stream["dones"] | stream["truncated"]))[first:last].flatten()
    assert wanted.sum() > 10
    np.testing.assert_array_equal(found.next_obs.numpy()[wanted], following[wanted])
    ends = (stream["valid"] & stream["dones"] & ~stream["truncated"])[first:last].flatten()
    assert (found.discounts.numpy()[ends] == 0).all()
    assert (replay.ends[found.positions].numpy()[ends] == TERMINAL).all()


def test_a_restored_replay_buffer_of_frames_equals_the_original():
    stream = stacked_stream(8, 60, 2, padding="zeros")
    whole, saved, restored = (PrioritizedReplay(60, priority_exponent=0.5, frame_stack=STACK) for _ in range(3))
    fill(whole, stream, 4)
    fill(saved, {name: column[:40] for name, column in stream.items()}, 4)
    restored.load_state_dict(saved.state_dict())
    fill(restored, stream, 4, begin=40)
    draws = [r.sample_by_priority(64, 0.5, torch.Generator().manual_seed(1)) for r in (whole, restored)]
    for name in ("obs", "next_obs", "returns", "discounts", "weights", "positions"):
        assert getattr(draws[0], name).equal(getattr(draws[1], name)), name


def test_stacks_that_cannot_be_restored_are_an_error():
    obs = torch.randint(1, 255, (3, 1, STACK, SIDE, SIDE), dtype=torch.uint8)
    rollout = make_rollout(obs, torch.zeros(3, 1), torch.zeros(3, 1, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"set env\.frame_stack = 1"):
        Replay(100, frame_stack=STACK).add(rollout, rollout.rewards)


def test_a_million_atari_steps_fit_into_8_gib():
    """Measured at 20,000 steps with priorities; what is allocated grows with the steps and nothing else."""
    obs = torch.zeros((8, 8, 4, 84, 84), dtype=torch.uint8)
    rollout = make_rollout(obs, torch.zeros(8, 8), torch.zeros(8, 8, dtype=torch.bool))
    replay = PrioritizedReplay(20_000, priority_exponent=0.5, n_step=3, frame_stack=4)
    replay.add(rollout, rollout.rewards)
    assert replay.size == 20_000
    per_step = replay.num_bytes / replay.size
    assert 84 * 84 < per_step < 84 * 84 + 32
    assert per_step * 1_000_000 < 8 * 2**30
