"""The memory OPR will need is known before the run, and it is not exceeded."""

import pytest
import torch

from optimist.core import OPRConfig, OptimisticRegularizer, Steps
from optimist.core.footprint import bytes_bound


def steps_of(num_steps, num_envs, frame_stack, ends):
    shape = (frame_stack, 6, 5) if frame_stack > 1 else (7,)
    frames = torch.randint(255, (num_steps, num_envs, *shape), dtype=torch.uint8)
    return Steps(
        obs=frames,
        actions=torch.zeros(num_steps, num_envs, dtype=torch.int64),
        rewards=torch.randn(num_steps, num_envs),
        logp=torch.zeros(num_steps, num_envs),
        dones=ends,
    )


@pytest.mark.parametrize("frame_stack", [1, 4])
def test_a_full_memory_and_the_longest_episodes_reach_the_bound_exactly(frame_stack):
    config = OPRConfig(capacity_transitions=300, capacity_episodes=20, max_episode_steps=50, admission_floor=None)
    opr = OptimisticRegularizer(config, frame_stack=frame_stack)
    shape = (frame_stack, 6, 5) if frame_stack > 1 else (7,)
    bound = bytes_bound(
        config,
        observation=torch.zeros(shape, dtype=torch.uint8),
        action=torch.zeros((), dtype=torch.int64),
        num_envs=3,
        rollout_steps=16,
        frame_stack=frame_stack,
    )
    largest = 0
    for update in range(40):  # every episode is longer than max_episode_steps
        ends = torch.zeros(16, 3, dtype=torch.bool)
        ends[-1] = update % 8 == 7
        opr.observe(steps_of(16, 3, frame_stack, ends))
        largest = max(largest, int(opr.metrics()["opr/memory_bytes"]))
        assert largest <= bound
    assert largest == bound


def test_the_bound_by_hand():
    config = OPRConfig(capacity_transitions=10, capacity_episodes=2, max_episode_steps=5)
    # a step in M: 4 bytes of observation, 8 of action, 4 + 4 + 1 + 4 of numbers, 8 of return and priority
    in_memory = 10 * (4 + 8 + 13 + 8)
    unfinished = 2 * (5 + 3) * (4 + 8 + 13)
    sample = {"observation": torch.zeros(1), "action": torch.zeros((), dtype=torch.int64)}
    assert bytes_bound(config, **sample, num_envs=2, rollout_steps=3) == in_memory + unfinished
