"""Frames of a real game come back from the replay as the emulator's stacks."""

import dataclasses

import torch

from optimist.config import DQNConfig
from optimist.core.anchor import NoAnchor
from optimist.envs.make import make_envs
from optimist.presets import get_preset
from optimist.replay.transitions import Replay
from optimist.rollout.collector import Collector
from optimist.training.build import make_algorithm, make_policy


def test_every_stack_of_a_game_with_lost_lives_time_limits_and_resets_comes_back():
    config = get_preset("atari/dqn")(game="Breakout")
    env = dataclasses.replace(config.env, num_envs=2, kwargs={**config.env.kwargs, "max_frames": 400})
    config = dataclasses.replace(config, env=env, algorithm=DQNConfig(rollout_steps=16))
    envs = make_envs(env, seed=0)
    policy = make_policy(config, envs)
    assert make_algorithm(config, policy, NoAnchor()).replay.frame_stack == 4
    collector = Collector(envs, env, policy, 16, torch.Generator().manual_seed(0), evaluated=False)
    collector.restart(3)
    replay, seen, limits = Replay(10_000, frame_stack=4), [], []
    for _ in range(16):
        rollout = collector.collect()
        replay.add(rollout, rollout.rewards)
        seen.append(rollout.obs.clone())
        if rollout.final_obs is not None:
            limits.append(rollout.final_obs)
    envs.close()
    obs = torch.cat(seen)  # [256, 2, 4, 84, 84]
    found = replay.transitions(torch.arange(replay.num_ready))
    assert found.obs.equal(obs[:-1].flatten(0, 1))
    assert replay.num_bytes < obs.nbytes * 10_000 / 512 / 3.5  # single frames, not stacks
    assert limits, "games of 100 steps end at their limit"
    ends = replay.ends[: replay.num_ready]
    assert found.next_obs[ends == 2].equal(torch.cat(limits))
    continues = (ends == 0).view(255, 2)
    assert found.next_obs.view(255, 2, 4, 84, 84)[continues].equal(obs[1:][continues])
    assert bool((ends == 1).any()), "a life was lost"
