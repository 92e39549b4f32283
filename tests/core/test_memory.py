"""M against a model of it in plain lists: whatever happens, it holds what it should and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.advantages import discounted_returns
from optimist.core.config import OPRConfig
from optimist.core.episode import Episode
from optimist.core.memory import GoodEpisodeMemory, GoodRows
from optimist.core.retention import make_retention
from tests.core.tables import make_episode

GAMMA = 0.9


@dataclass
class Model:
    """What M should hold, by the words of its documentation; slow and obvious."""

    capacity_transitions: int
    capacity_episodes: int
    retention: str
    max_age: int | None
    kept: list[tuple[Episode, int, int]] = field(default_factory=list)  # episode, steps kept, update it was born at

    def add(self, episode: Episode, update: int) -> bool:
        steps = min(len(episode), self.capacity_transitions)
        staying = list(self.kept)
        while sum(s for _, s, _ in staying) + steps > self.capacity_transitions or (
            len(staying) + 1 > self.capacity_episodes
        ):
            leaving = self.next_to_leave(staying)
            weakest = staying[leaving][0]
            worse = weakest.group == episode.group and episode.total_reward < weakest.total_reward
            if self.retention == "ranked" and worse:
                return False
            del staying[leaving]
        self.kept = [*staying, (episode, steps, update)]
        return True

    def next_to_leave(self, staying: list[tuple[Episode, int, int]]) -> int:
        if self.retention == "fifo":
            return 0
        groups = [episode.group for episode, _, _ in staying]
        largest = min(set(groups), key=lambda group: (-groups.count(group), group))
        own = [i for i, group in enumerate(groups) if group == largest]
        return min(own, key=lambda i: (staying[i][0].total_reward, i))  # lowest return, of equals the oldest

    def expire(self, update: int) -> int:
        before = len(self.kept)
        if self.max_age is not None:
            self.kept = [(e, s, born) for e, s, born in self.kept if update - born <= self.max_age]
        return before - len(self.kept)


def rows_of(good: GoodRows) -> list[tuple]:
    columns = (good.obs, good.actions, good.rewards, good.logp, good.dones, good.bootstraps, good.returns)
    return [tuple(str(column[i].tolist()) for column in columns) for i in range(len(good))]


def expected_rows(episode: Episode, steps: int, stack: int) -> list[tuple]:
    """The last `steps` rows of an episode, as sampling should give them."""
    length = len(episode)
    returns = discounted_returns(episode.rewards, episode.dones, episode.bootstraps, GAMMA)
    stacked = [episode.frames[t : t + stack] if stack > 1 else episode.frames[t] for t in range(length)]
    columns = (episode.actions, episode.rewards, episode.logp, episode.dones, episode.bootstraps, returns)
    all_rows = [(str(stacked[t].tolist()), *(str(c[t].tolist()) for c in columns)) for t in range(length)]
    return all_rows[length - steps :]


def check(memory: GoodEpisodeMemory, model: Model) -> None:
    assert memory.num_transitions <= memory.capacity_transitions
    assert len(memory.episodes) <= memory.capacity_episodes
    stored = [(e.total_reward, e.group, e.born, e.clipped, len(e.rows)) for e in memory.episodes]
    assert stored == [(e.total_reward, e.group, born, s < len(e), s) for e, s, born in model.kept]
    rows = [row for e in memory.episodes for row in e.rows.tolist()]
    frames = [frame for e in memory.episodes for frame in e.frames.tolist()]
    num_frames = memory.capacity_transitions + (memory.frame_stack - 1) * memory.capacity_episodes
    assert sorted(rows + memory._free_rows) == list(range(memory.capacity_transitions)), "a row leaked or is shared"
    assert sorted(frames + memory._free_frames) == list(range(num_frames)), "a frame leaked or is shared"
    if not memory.episodes:
        return
    generator = torch.Generator().manual_seed(0)
    everything = [row for good in memory.passes(1, 5, generator) for row in rows_of(good)]
    should = [row for e, s, _ in model.kept for row in expected_rows(e, s, memory.frame_stack)]
    assert sorted(everything) == sorted(should)
    assert set(rows_of(memory.sample(16, generator))) <= set(should)
    whole = rows_of(memory.sample_episodes(1, generator))
    assert whole in [expected_rows(e, s, memory.frame_stack) for e, s, _ in model.kept]


EPISODES = st.tuples(st.integers(1, 9), st.integers(0, 4), st.integers(0, 2))  # length, return, group
SIZES = {
    "capacity": st.integers(1, 12),
    "places": st.integers(1, 5),
    "retention": st.sampled_from(["fifo", "ranked"]),
    "stack": st.sampled_from([1, 3]),
    "max_age": st.none() | st.integers(1, 4),
}


def make_both(capacity, places, retention, stack, max_age, exponent=0.0):
    memory = GoodEpisodeMemory(
        capacity,
        places,
        retention=make_retention(OPRConfig(retention=retention)),
        max_age_updates=max_age,
        priority_exponent=exponent,
        frame_stack=stack,
        gamma=GAMMA,
    )
    return memory, Model(capacity, places, retention, max_age)


@settings(max_examples=150, deadline=None)
@given(added=st.lists(EPISODES, max_size=15), **SIZES)
def test_memory_equals_its_model_after_every_episode(added, capacity, places, retention, stack, max_age):
    memory, model = make_both(capacity, places, retention, stack, max_age)
    for update, (length, total_reward, group) in enumerate(added):
        assert memory.expire(update) == model.expire(update)
        check(memory, model)
        episode = make_episode(length, float(total_reward), label=update, group=group, stack=stack)
        assert memory.add(episode, update) == model.add(episode, update)
        check(memory, model)


@settings(max_examples=75, deadline=None)
@given(added=st.lists(EPISODES, min_size=2, max_size=14), cut=st.integers(0, 13), **SIZES)
def test_a_restored_memory_goes_on_as_the_saved_one(added, cut, capacity, places, retention, stack, max_age):
    memory, _ = make_both(capacity, places, retention, stack, max_age, exponent=0.5)
    for update, (length, total_reward, group) in enumerate(added):
        if update == cut:
            restored, _ = make_both(capacity, places, retention, stack, max_age, exponent=0.5)
            restored.load_state_dict(memory.state_dict())
            assert restored.num_bytes == memory.num_bytes
            before, memory = memory, restored
        both = [memory, before] if update >= cut else [memory]
        episode = make_episode(length, float(total_reward), label=update, group=group, stack=stack)
        for each in both:
            each.expire(update)
        assert len({each.add(episode, update) for each in both}) == 1
        draws = [each.sample(8, torch.Generator().manual_seed(update)) for each in both if each.episodes]
        for each, good in zip(both, draws, strict=False):
            assert rows_of(good) == rows_of(draws[0])
            each.set_priorities(good.rows, good.rewards % 7)


def test_a_restored_memory_chooses_the_same_group_to_leave():
    ranked = make_retention(OPRConfig(retention="ranked"))
    memory = GoodEpisodeMemory(100, 2, retention=ranked)
    for update, (total_reward, group) in enumerate([(1.0, 5), (1.0, 2), (2.0, 5)]):
        memory.add(make_episode(1, total_reward, group=group), update)
    restored = GoodEpisodeMemory(100, 2, retention=make_retention(OPRConfig(retention="ranked")))
    restored.load_state_dict(memory.state_dict())
    for each in (memory, restored):
        each.add(make_episode(1, 9.0, group=7), 4)
    assert [e.group for e in restored.episodes] == [e.group for e in memory.episodes]


def test_a_memory_that_has_emptied_is_restored_with_its_pools():
    memory = GoodEpisodeMemory(10, 10, max_age_updates=1)
    memory.add(make_episode(3), 0)
    memory.expire(5)
    restored = GoodEpisodeMemory(10, 10, max_age_updates=1)
    restored.load_state_dict(memory.state_dict())
    assert restored.num_bytes == memory.num_bytes > 0
    assert restored.add(make_episode(3, label=4), 6)
    assert restored.sample(1, torch.Generator().manual_seed(0)).actions.tolist() == [4]


def test_the_oldest_episode_leaves_first():
    memory = GoodEpisodeMemory(10, 3)
    for label in range(5):
        assert memory.add(make_episode(2, 10.0 - label, label=label), label)
    assert [e.born for e in memory.episodes] == [2, 3, 4]


def test_ranked_memory_keeps_the_best_and_refuses_a_worse_one():
    memory = GoodEpisodeMemory(100, 3, retention=make_retention(OPRConfig(retention="ranked")))
    returns = [5.0, 1.0, 3.0, 2.0, 0.5, 3.0]
    assert [memory.add(make_episode(1, r), i) for i, r in enumerate(returns)] == [True, True, True, True, False, True]
    assert sorted(e.total_reward for e in memory.episodes) == [3.0, 3.0, 5.0]


def test_of_equal_returns_the_oldest_leaves_so_that_ties_keep_memory_fresh():
    memory = GoodEpisodeMemory(100, 2, retention=make_retention(OPRConfig(retention="ranked")))
    for update in range(4):
        memory.add(make_episode(1, 1.0), update)
    assert [e.born for e in memory.episodes] == [2, 3]


def test_a_long_newcomer_is_refused_without_evicting_anybody():
    memory = GoodEpisodeMemory(4, 10, retention=make_retention(OPRConfig(retention="ranked")))
    for total_reward in (1.0, 2.0, 3.0, 4.0):
        memory.add(make_episode(1, total_reward))
    assert not memory.add(make_episode(4, 3.5))
    assert [e.total_reward for e in memory.episodes] == [1.0, 2.0, 3.0, 4.0]


def test_an_episode_longer_than_the_memory_keeps_its_last_steps_and_is_marked():
    memory = GoodEpisodeMemory(3, 5)
    assert memory.add(make_episode(8, 1.0))
    (good,) = memory.passes(1, 100, torch.Generator().manual_seed(0))
    assert sorted(good.rewards.tolist()) == [5.0, 6.0, 7.0]
    assert memory.episodes[0].clipped


def test_the_returns_of_a_cut_episode_are_those_of_the_whole():
    memory = GoodEpisodeMemory(2, 5, gamma=0.5)
    columns = {"rewards": torch.tensor([1.0, 1.0, 1.0, 1.0]), "bootstraps": torch.tensor([0.0, 0.0, 0.0, 4.0])}
    memory.add(make_episode(4, **columns))
    good = memory.sample_episodes(2, torch.Generator().manual_seed(0))
    assert good.returns.tolist() == [2.5, 3.0]  # 1 + 0.5 · 3, 1 + 0.5 · 4


def test_an_episode_leaves_once_it_is_older_than_the_age_limit():
    memory = GoodEpisodeMemory(10, 10, max_age_updates=2)
    memory.add(make_episode(1), 5)
    assert [memory.expire(update) for update in (6, 7, 8)] == [0, 0, 1]
    assert not memory.episodes


def test_sampling_is_uniform_over_steps_not_over_episodes():
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(1, label=1))
    memory.add(make_episode(9, label=2))
    good = memory.sample(4_000, torch.Generator().manual_seed(0))
    assert (good.actions == 1).float().mean().item() == pytest.approx(0.1, abs=0.02)


def test_priorities_decide_how_often_a_step_is_drawn():
    memory = GoodEpisodeMemory(100, 10, priority_exponent=0.5)
    memory.add(make_episode(3))
    rows = memory.episodes[0].rows
    memory.set_priorities(rows, torch.tensor([1.0, 4.0, 16.0]))  # to the power 0.5: 1, 2, 4
    good = memory.sample(7_000, torch.Generator().manual_seed(0))
    shares = [(good.rewards == step).float().mean().item() for step in range(3)]
    assert shares == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=0.02)


def test_a_step_that_gained_nothing_is_drawn_almost_never_and_a_newcomer_like_the_best():
    memory = GoodEpisodeMemory(100, 10, priority_exponent=1.0)
    memory.add(make_episode(2, label=1))
    memory.set_priorities(memory.episodes[0].rows, torch.tensor([-5.0, 3.0]))
    memory.add(make_episode(1, label=2))
    good = memory.sample(6_000, torch.Generator().manual_seed(0))
    shares = [(good.rewards == reward).float().mean().item() for reward in (1000.0, 1001.0, 2000.0)]
    assert shares == pytest.approx([0.0, 0.5, 0.5], abs=0.02)


def test_a_diverged_network_does_not_stop_the_drawing():
    memory = GoodEpisodeMemory(100, 10, priority_exponent=1.0)
    memory.add(make_episode(3))
    memory.set_priorities(memory.episodes[0].rows, torch.tensor([float("nan"), float("inf"), float("-inf")]))
    assert memory.sample(50, torch.Generator().manual_seed(0)).rewards.unique().tolist() == [1.0]


def test_without_an_exponent_priorities_change_nothing():
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(2))
    memory.set_priorities(memory.episodes[0].rows, torch.tensor([0.0, 1e9]))
    good = memory.sample(4_000, torch.Generator().manual_seed(0))
    assert (good.rewards == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)


def test_observations_keep_their_dtype_and_the_pools_are_allocated_once():
    memory = GoodEpisodeMemory(20, 4, frame_stack=4)
    frames = torch.randint(0, 256, (8, 6, 6), dtype=torch.uint8)
    memory.add(make_episode(5, frames=frames, stack=4))
    size, addresses = memory.num_bytes, {name: pool.data_ptr() for name, pool in memory.pools.items()}
    assert memory.pools["frames"].dtype == torch.uint8
    assert memory.pools["frames"].nbytes == (20 + 3 * 4) * 6 * 6
    assert memory.sample(3, torch.Generator().manual_seed(0)).obs.shape == (3, 4, 6, 6)
    for label in range(30):
        memory.add(make_episode(5, frames=frames, stack=4), label)
    assert memory.num_bytes == size
    assert {name: pool.data_ptr() for name, pool in memory.pools.items()} == addresses


def test_the_mean_return_is_of_episodes():
    memory = GoodEpisodeMemory(20, 4)
    assert memory.mean_return != memory.mean_return  # nan
    memory.add(make_episode(1, 1.0))
    memory.add(make_episode(9, 4.0))
    assert memory.mean_return == 2.5
