"""EpisodeBuilder compared with a plain loop over each stream: every finished episode comes out once and in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.episode import Episode, EpisodeBuilder
from optimist.core.steps import Steps
from optimist.errors import ShapeMismatch
from tests.core.tables import make_steps


@dataclass
class Row:
    """One step of one stream, all its numbers unique."""

    stack: list[int]
    action: int
    reward: float
    raw_reward: float
    logp: float
    done: bool
    end: bool
    bootstrap: float
    valid: bool
    group: int


def make_streams(generator: torch.Generator, num_steps: int, num_envs: int, stack: int, reset_steps: int):
    """[T][N] rows with random ends, life losses and, after an end, the reset steps of a next-step autoreset."""
    rows: list[list[Row]] = []
    resetting, frames, groups = [0] * num_envs, [[0] * stack for _ in range(num_envs)], [0] * num_envs
    fresh = [True] * num_envs

    def draw(high: int) -> int:
        return int(torch.randint(high, (1,), generator=generator))

    for t in range(num_steps):
        rows.append([])
        for n in range(num_envs):
            identity = 10_000 * n + 10 * t
            if fresh[n]:  # an episode's first observation brings its own older frames
                frames[n] = [identity + 1 + i for i in range(stack)]
                groups[n], fresh[n] = draw(3), False
            else:
                frames[n] = [*frames[n][1:], identity]
            valid = resetting[n] == 0
            end = valid and draw(5) == 0
            # an episode may end without an end for the learner, and a life may end within an episode
            done = (end and draw(8) > 0) or (valid and draw(7) == 0)
            reward, raw = draw(2001) / 1000 - 1, draw(2001) / 100 - 10
            bootstrap = float(draw(100)) if done else 0.0
            rows[t].append(
                Row(frames[n], identity, reward, raw, -float(identity), done, end, bootstrap, valid, groups[n])
            )
            if not valid:
                resetting[n] -= 1
                fresh[n] = resetting[n] == 0
            elif end:
                resetting[n] = reset_steps
                fresh[n] = reset_steps == 0
    return rows


def to_steps(rows: list[list[Row]], stack: int) -> Steps:
    def column(name: str, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([[getattr(row, name) for row in line] for line in rows], dtype=dtype)

    obs = column("stack", torch.int32) if stack > 1 else column("stack", torch.int32)[..., 0]
    return Steps(
        obs=obs,
        actions=column("action", torch.int64),
        rewards=column("reward", torch.float32),
        raw_rewards=column("raw_reward", torch.float32),
        logp=column("logp", torch.float64),
        dones=column("done", torch.bool),
        episode_ends=column("end", torch.bool),
        bootstraps=column("bootstrap", torch.float32),
        valid=column("valid", torch.bool),
        groups=column("group", torch.int64),
    )


def expected_episodes(rows: list[list[Row]], cuts: set[int], max_steps: int) -> list[dict[str, Any]]:
    """The same, stream by stream; `cuts` are the times at which unfinished episodes were dropped."""
    found = []
    for n in range(len(rows[0])):
        episode: list[Row] = []
        for t, line in enumerate(rows):
            row = line[n]
            if t in cuts:
                episode = []
            if not row.valid:
                continue
            episode.append(row)
            if row.end:
                rewards = [torch.tensor(r.raw_reward).item() for r in episode]
                kept = episode[-max_steps:]
                found.append(((t, n), sum(rewards), len(episode), kept, len(kept) < len(episode)))
                episode = []
    return [dict(zip(("at", "total", "length", "rows", "clipped"), f, strict=True)) for f in sorted(found, key=at)]


def at(found: Any) -> tuple[int, int]:
    return found[0]


def assert_same(episode: Episode, rows: list[Row], stack: int) -> None:
    restacked = episode.frames.unfold(0, stack, 1) if stack > 1 else episode.frames[:, None]
    assert restacked.tolist() == [row.stack for row in rows]
    assert episode.actions.tolist() == [row.action for row in rows]
    assert episode.rewards.tolist() == torch.tensor([row.reward for row in rows]).tolist()
    assert episode.logp.tolist() == [row.logp for row in rows]
    assert episode.bootstraps.tolist() == [row.bootstrap for row in rows]
    assert episode.dones.tolist() == [*(row.done for row in rows[:-1]), True]


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=7),
    num_envs=st.integers(1, 3),
    max_steps=st.integers(1, 12),
    stack=st.sampled_from([1, 2, 4]),
    reset_steps=st.integers(0, 2),
    saves=st.sets(st.integers(0, 6), max_size=3),
    forgets=st.sets(st.integers(0, 6), max_size=2),
)
def test_every_finished_episode_equals_a_plain_loop(
    seed, lengths, num_envs, max_steps, stack, reset_steps, saves, forgets
):
    generator = torch.Generator().manual_seed(seed)
    builder = EpisodeBuilder(max_steps, frame_stack=stack)
    played: list[list[Row]] = []
    cuts: set[int] = set()
    built: list[tuple[float, int, int, Episode]] = []
    everything = make_streams(generator, sum(lengths), num_envs, stack, reset_steps)
    for i, num_steps in enumerate(lengths):
        if i in forgets and all(row.valid for row in everything[len(played)]):
            builder.forget_unfinished()  # the stream's frames continue; a dropped episode must not use them
            cuts.add(len(played))
        if i in saves:
            state = builder.state_dict()
            builder = EpisodeBuilder(max_steps, frame_stack=stack)
            builder.load_state_dict(state)
        rollout = everything[len(played) : len(played) + num_steps]
        for done in builder.add(to_steps(rollout, stack)):
            built.append((done.total_reward, done.length + done.skipped, done.group, done.build()))
        played += rollout
        assert len(builder.history["rewards"]) <= max_steps + stack - 1 + max(lengths), (
            "the history is larger than its limit"
        )
    expected = expected_episodes(played, cuts, max_steps)
    assert len(built) == len(expected)
    for (total, length, group, episode), right in zip(built, expected, strict=True):
        assert (total, length, group) == (right["total"], right["length"], right["rows"][-1].group)
        assert (episode.total_reward, episode.group, episode.clipped) == (total, group, right["clipped"])
        assert_same(episode, right["rows"], stack)


def finished(builder: EpisodeBuilder, steps: Steps) -> list[Episode]:
    return [done.build() for done in builder.add(steps)]


def test_episodes_are_in_order_of_time_and_then_of_stream():
    steps = make_steps([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[0, 1], [1, 1], [0, 1]])
    assert [e.total_reward for e in finished(EpisodeBuilder(10), steps)] == [2.0, 4.0, 4.0, 6.0]


def test_an_episode_that_spans_two_rollouts_is_one_episode():
    builder = EpisodeBuilder(10)
    assert finished(builder, make_steps([[1.0], [2.0]], [[0], [0]])) == []
    (episode,) = finished(builder, make_steps([[4.0], [8.0]], [[1], [0]]))
    assert episode.rewards.tolist() == [1.0, 2.0, 4.0]
    assert episode.total_reward == 7.0


def test_raw_rewards_and_episode_ends_define_an_episode():
    # two lives: the learner sees an end after the first, the episode continues
    raw = {"raw_rewards": torch.tensor([[10.0], [20.0], [40.0]]), "episode_ends": [[0], [0], [1]]}
    steps = make_steps([[1.0], [1.0], [1.0]], [[0], [1], [1]], **raw)
    (episode,) = finished(EpisodeBuilder(10), steps)
    assert (episode.total_reward, len(episode), episode.dones.tolist()) == (70.0, 3, [False, True, True])


def test_an_episode_whose_end_the_learner_ignores_is_stored_with_an_end():
    steps = make_steps([[1.0], [1.0]], [[0], [0]], episode_ends=[[0], [1]])
    (episode,) = finished(EpisodeBuilder(10), steps)
    assert episode.dones.tolist() == [False, True]
    assert not steps.dones.any(), "the host's steps were changed"


def test_a_reset_step_belongs_to_no_episode_wherever_the_rollout_ends():
    # end, reset step, one step that ends: within a rollout, and with its border on either side of the reset step
    rewards, dones, valid = [[1.0], [99.0], [2.0]], [[1], [0], [1]], [[1], [0], [1]]
    for border in (1, 2, 3):
        builder, found = EpisodeBuilder(10), []
        for part in (slice(0, border), slice(border, 3)):
            if rewards[part]:
                found += finished(builder, make_steps(rewards[part], dones[part], valid=valid[part]))
        assert [(e.total_reward, e.rewards.tolist()) for e in found] == [(1.0, [1.0]), (2.0, [2.0])], border


def test_an_end_on_a_reset_step_is_ignored():
    steps = make_steps([[1.0], [5.0], [2.0]], [[1], [1], [1]], valid=[[1], [0], [1]])
    assert [e.total_reward for e in finished(EpisodeBuilder(10), steps)] == [1.0, 2.0]


def test_a_long_episode_keeps_its_last_steps_and_its_full_return():
    builder = EpisodeBuilder(3)
    finished(builder, make_steps([[1.0], [2.0], [4.0]], [[0], [0], [0]]))
    (done,) = builder.add(make_steps([[8.0], [16.0]], [[0], [1]]))
    episode = done.build()
    assert (done.length, done.skipped, episode.clipped, episode.total_reward) == (3, 2, True, 31.0)
    assert episode.rewards.tolist() == [4.0, 8.0, 16.0]


def test_episodes_built_together_are_those_built_one_by_one():
    steps = make_steps([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], [[0, 0], [1, 0], [0, 0], [1, 1]])
    builder = EpisodeBuilder(3)
    done = builder.add(steps)
    together, alone = builder.build(done), [episode.build() for episode in done]
    assert together.lengths == [2, 2, 3]
    assert together.clipped == [False, False, True]
    assert together.steps["rewards"].tolist() == [1.0, 3.0, 5.0, 7.0, 4.0, 6.0, 8.0]
    assert together.steps["dones"].tolist() == [0, 1, 0, 1, 0, 0, 1]
    for name, column in together.steps.items():
        assert column.equal(torch.cat([getattr(episode, name) for episode in alone]))


def test_the_history_of_a_long_episode_stops_growing():
    builder, sizes = EpisodeBuilder(20), []
    for _ in range(40):
        finished(builder, make_steps(torch.ones(4, 2), torch.zeros(4, 2)))
        sizes.append(builder.num_bytes)
    assert (
        sizes[-1] == sizes[10] == (20 + 4) * 2 * sum((8, 8, 4, 4, 1, 4))
    )  # obs, action, reward, logp, done, bootstrap
    assert sorted(sizes) == sizes


def test_stacked_images_cost_one_frame_a_step():
    builder = EpisodeBuilder(100, frame_stack=4)
    obs = torch.zeros(10, 2, 4, 8, 8, dtype=torch.uint8)
    finished(builder, make_steps(torch.ones(10, 2), torch.zeros(10, 2), obs=obs))
    assert builder.history["frames"].nbytes == 10 * 2 * 64
    assert builder.openings.nbytes == 2 * 3 * 64


def test_a_return_does_not_depend_on_earlier_episodes():
    # 0.1 + 0.2 − 0.1 is not 0.2 in floating point; two equal episodes must tie
    rewards = torch.tensor([0.1, 0.1, 0.7, 0.2, 0.1, 0.7, 0.2, 1e9, 0.1, 0.7, 0.2], dtype=torch.float64)[:, None]
    dones = [[0], [1], [0], [1], [0], [0], [1], [1], [0], [0], [1]]
    steps = make_steps(torch.zeros(11, 1), dones, raw_rewards=rewards)
    totals = [e.total_reward for e in finished(EpisodeBuilder(10), steps)]
    assert totals == [0.2, 0.7 + 0.2, 0.1 + 0.7 + 0.2, 1e9, 0.1 + 0.7 + 0.2]


def test_a_return_does_not_depend_on_where_rollouts_end():
    rewards = torch.tensor([[0.1], [0.7], [0.2], [0.3]], dtype=torch.float64)
    for border in range(4):
        builder, found = EpisodeBuilder(10), []
        for part in (slice(0, border), slice(border, 4)):
            if len(rewards[part]):
                dones = torch.arange(4)[part, None] == 3
                found += finished(builder, make_steps(torch.zeros(len(dones), 1), dones, raw_rewards=rewards[part]))
        assert [e.total_reward for e in found] == [0.1 + 0.7 + 0.2 + 0.3]


def test_dropping_unfinished_episodes_drops_steps_and_return():
    builder = EpisodeBuilder(10)
    finished(builder, make_steps([[1.0], [2.0]], [[0], [0]]))
    builder.forget_unfinished()
    (episode,) = finished(builder, make_steps([[4.0]], [[1]]))
    assert (episode.total_reward, episode.rewards.tolist()) == (4.0, [4.0])


def test_a_restored_builder_holds_as_many_bytes():
    builder = EpisodeBuilder(50, frame_stack=2)
    for _ in range(5):
        finished(builder, make_steps(torch.ones(6, 2), torch.zeros(6, 2), obs=torch.zeros(6, 2, 2, 3)))
    restored = EpisodeBuilder(50, frame_stack=2)
    restored.load_state_dict(builder.state_dict())
    assert restored.num_bytes == builder.num_bytes


def test_a_builder_without_steps_is_restored_too():
    restored = EpisodeBuilder(5)
    restored.load_state_dict(EpisodeBuilder(5).state_dict())
    assert [e.total_reward for e in finished(restored, make_steps([[3.0]], [[1]]))] == [3.0]


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int64, torch.float32])
def test_ends_and_rewards_may_be_integers(kind):
    ends = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 1]]).to(kind)
    columns = {"obs": torch.zeros(4, 3), "actions": torch.zeros(4, 3), "logp": torch.zeros(4, 3)}
    steps = Steps(rewards=torch.ones(4, 3, dtype=torch.int64), dones=ends, valid=torch.ones(4, 3).to(kind), **columns)
    played = [(episode.total_reward, episode.length) for episode in EpisodeBuilder(10).add(steps)]
    assert played == [(2.0, 2), (4.0, 4), (4.0, 4), (2.0, 2)]


def test_steps_of_another_shape_or_dtype_than_before_are_refused():
    builder, zeros = EpisodeBuilder(10), torch.zeros(2, 3)
    list(builder.add(make_steps(zeros, zeros)))
    with pytest.raises(ShapeMismatch, match="steps are of 4 environments but were of 3 before"):
        list(builder.add(make_steps(torch.zeros(2, 4), torch.zeros(2, 4))))
    with pytest.raises(
        ShapeMismatch, match=r"obs is \[\] of torch\.float32 a step and was \[\] of torch\.int64 before"
    ):
        list(builder.add(make_steps(zeros, zeros, obs=zeros)))
    with pytest.raises(
        ShapeMismatch, match=r"actions is \[\] of torch\.float32 a step and was \[\] of torch\.int64 before"
    ):
        list(builder.add(make_steps(zeros, zeros, actions=zeros)))


@pytest.mark.parametrize("shape", [(2, 3, 84, 84, 4), (2, 3, 6), (2, 3)])
def test_observations_without_the_frame_stack_are_refused(shape):
    steps = make_steps(torch.zeros(2, 3), torch.zeros(2, 3), obs=torch.zeros(shape))
    with pytest.raises(ShapeMismatch, match=r"of 4 stacked frames expected \[T, N, 4, ...\]"):
        list(EpisodeBuilder(10, frame_stack=4).add(steps))
