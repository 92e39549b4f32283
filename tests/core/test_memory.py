"""GoodEpisodeMemory compared with a model in plain lists, and its sampling."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.advantages import discounted_returns
from optimist.core.episode import Episode, Episodes
from optimist.core.eviction import FirstInFirstOut, LowestReturnFirst
from optimist.core.memory import GoodEpisodeMemory, GoodRows
from tests.core.tables import make_episode

GAMMA = 0.9


@dataclass
class Model:
    """What M should hold, written as plainly as its documentation; slow."""

    capacity_transitions: int
    capacity_episodes: int
    retention: str
    max_age: int | None
    kept: list[tuple[Episode, int, int]] = field(default_factory=list)  # episode, steps kept, update of its admission

    def add(self, episode: Episode, update: int) -> bool:
        steps = min(len(episode), self.capacity_transitions)
        kept = list(self.kept)
        while sum(s for _, s, _ in kept) + steps > self.capacity_transitions or (
            len(kept) + 1 > self.capacity_episodes
        ):
            evicted = self.next_evicted(kept)
            weakest = kept[evicted][0]
            worse = weakest.group == episode.group and episode.total_reward < weakest.total_reward
            if self.retention == "ranked" and worse:
                return False
            del kept[evicted]
        self.kept = [*kept, (episode, steps, update)]
        return True

    def next_evicted(self, kept: list[tuple[Episode, int, int]]) -> int:
        if self.retention == "fifo":
            return 0
        groups = [episode.group for episode, _, _ in kept]
        largest = min(set(groups), key=lambda group: (-groups.count(group), group))
        own = [i for i, group in enumerate(groups) if group == largest]
        return min(own, key=lambda i: (kept[i][0].total_reward, i))  # lowest return, of equals the oldest

    def evict_expired(self, update: int) -> None:
        if self.max_age is not None:
            self.kept = [(e, s, at) for e, s, at in self.kept if update - at <= self.max_age]


def rows_of(memory: GoodEpisodeMemory, good: GoodRows) -> list[tuple]:
    steps = [memory.pools[name][good.rows] for name in ("rewards", "logp", "dones", "bootstraps")]
    columns = (good.obs, good.actions, *steps, good.returns)
    return [tuple(str(column[i].tolist()) for column in columns) for i in range(len(good))]


def rewards_of(memory: GoodEpisodeMemory, good: GoodRows) -> torch.Tensor:
    return memory.pools["rewards"][good.rows]


def expected_rows(episode: Episode, steps: int, stack: int) -> list[tuple]:
    """The last `steps` rows of an episode, as sampling should give them."""
    length = len(episode)
    returns = discounted_returns(episode.rewards, episode.dones, episode.bootstraps, GAMMA)
    stacked = [episode.frames[t : t + stack] if stack > 1 else episode.frames[t] for t in range(length)]
    columns = (episode.actions, episode.rewards, episode.logp, episode.dones, episode.bootstraps, returns)
    all_rows = [(str(stacked[t].tolist()), *(str(c[t].tolist()) for c in columns)) for t in range(length)]
    return all_rows[length - steps :]


def together_of(episodes: list[Episode]) -> Episodes:
    parts = [Episodes.of(episode) for episode in episodes]
    steps = {name: torch.cat([part.steps[name] for part in parts]) for name in parts[0].steps}
    frames = torch.cat([part.frames for part in parts])
    return Episodes(frames, steps, [e.length for e in episodes], [e.clipped for e in episodes])


def check(memory: GoodEpisodeMemory, model: Model) -> None:
    assert memory.num_transitions <= memory.capacity_transitions
    assert len(memory.episodes) <= memory.capacity_episodes
    stored = [(e.total_reward, e.group, e.admitted_at, e.clipped, len(e.rows)) for e in memory.episodes]
    assert stored == [(e.total_reward, e.group, at, s < len(e), s) for e, s, at in model.kept]
    rows = [row for e in memory.episodes for row in e.rows.tolist()]
    frames = [frame for e in memory.episodes for frame in e.frames.tolist()]
    num_frames = memory.capacity_transitions + (memory.frame_stack - 1) * memory.capacity_episodes
    assert sorted(rows + memory._free_rows) == list(range(memory.capacity_transitions)), "a row is lost or used twice"
    assert sorted(frames + memory._free_frames) == list(range(num_frames)), "a frame is lost or used twice"
    if not memory.episodes:
        return
    generator = torch.Generator().manual_seed(0)
    everything = [row for good in memory.passes(1, 5, generator) for row in rows_of(memory, good)]
    should = [row for e, s, _ in model.kept for row in expected_rows(e, s, memory.frame_stack)]
    assert sorted(everything) == sorted(should)
    assert set(rows_of(memory, memory.sample(16, generator))) <= set(should)
    drawn = memory.sample_episodes(1, generator)
    for name in ("rewards", "logp", "dones", "bootstraps"):
        assert getattr(drawn, name).equal(memory.pools[name][drawn.rows])
    whole = rows_of(memory, drawn)
    assert whole in [expected_rows(e, s, memory.frame_stack) for e, s, _ in model.kept]


EPISODES = st.tuples(st.integers(1, 9), st.integers(0, 4), st.integers(0, 2))  # length, return, group
SIZES = {
    "capacity": st.integers(1, 12),
    "places": st.integers(1, 5),
    "retention": st.sampled_from(["fifo", "ranked"]),
    "stack": st.sampled_from([1, 3]),
    "max_age": st.none() | st.integers(1, 4),
}


def evict_expired(memory, update, max_age):
    if max_age is not None:
        memory.evict_older_than(update - max_age)


def make_both(capacity, places, retention, stack, max_age, *, prioritized=False):
    memory = GoodEpisodeMemory(
        capacity,
        places,
        eviction=FirstInFirstOut() if retention == "fifo" else LowestReturnFirst(),
        prioritized=prioritized,
        frame_stack=stack,
        gamma=GAMMA,
    )
    return memory, Model(capacity, places, retention, max_age)


@settings(max_examples=150, deadline=None)
@given(added=st.lists(EPISODES, max_size=15), **SIZES)
def test_memory_equals_its_model_after_every_episode(added, capacity, places, retention, stack, max_age):
    memory, model = make_both(capacity, places, retention, stack, max_age)
    for update, (length, total_reward, group) in enumerate(added):
        evict_expired(memory, update, max_age)
        model.evict_expired(update)
        check(memory, model)
        episode = make_episode(length, float(total_reward), label=update, group=group, stack=stack)
        assert memory.add(episode, update) == model.add(episode, update)
        check(memory, model)


@settings(max_examples=100, deadline=None)
@given(added=st.lists(st.lists(EPISODES, max_size=6), max_size=5), **SIZES)
def test_episodes_added_together_are_stored_as_if_added_one_by_one(added, capacity, places, retention, stack, max_age):
    memory, model = make_both(capacity, places, retention, stack, max_age)
    for update, together in enumerate(added):
        evict_expired(memory, update, max_age)
        model.evict_expired(update)
        new = [
            make_episode(length, float(total_reward), label=10 * update + i, group=group, stack=stack)
            for i, (length, total_reward, group) in enumerate(together)
        ]
        expected = sum(model.add(episode, update) for episode in new)
        assert memory.add_all(new, together_of, update) == expected
        check(memory, model)


@settings(max_examples=75, deadline=None)
@given(added=st.lists(EPISODES, min_size=2, max_size=14), cut=st.integers(0, 13), **SIZES)
def test_a_restored_memory_continues_like_the_saved_one(added, cut, capacity, places, retention, stack, max_age):
    memory, _ = make_both(capacity, places, retention, stack, max_age, prioritized=True)
    for update, (length, total_reward, group) in enumerate(added):
        if update == cut:
            restored, _ = make_both(capacity, places, retention, stack, max_age, prioritized=True)
            restored.load_state_dict(memory.state_dict())
            assert restored.num_bytes == memory.num_bytes
            before, memory = memory, restored
        both = [memory, before] if update >= cut else [memory]
        episode = make_episode(length, float(total_reward), label=update, group=group, stack=stack)
        for each in both:
            evict_expired(each, update, max_age)
        assert len({each.add(episode, update) for each in both}) == 1
        draws = [each.sample(8, torch.Generator().manual_seed(update)) for each in both if each.episodes]
        for each, good in zip(both, draws, strict=False):
            assert rows_of(each, good) == rows_of(both[0], draws[0])
            each.set_priorities(good.rows, rewards_of(each, good) % 7)


def test_a_restored_memory_evicts_from_the_same_group():
    ranked = LowestReturnFirst()
    memory = GoodEpisodeMemory(100, 2, eviction=ranked)
    for update, (total_reward, group) in enumerate([(1.0, 5), (1.0, 2), (2.0, 5)]):
        memory.add(make_episode(1, total_reward, group=group), update)
    restored = GoodEpisodeMemory(100, 2, eviction=LowestReturnFirst())
    restored.load_state_dict(memory.state_dict())
    for each in (memory, restored):
        each.add(make_episode(1, 9.0, group=7), 4)
    assert [e.group for e in restored.episodes] == [e.group for e in memory.episodes]


def test_an_emptied_memory_is_restored_with_its_pools():
    memory = GoodEpisodeMemory(10, 10)
    memory.add(make_episode(3), 0)
    memory.evict_older_than(4)
    restored = GoodEpisodeMemory(10, 10)
    restored.load_state_dict(memory.state_dict())
    assert restored.num_bytes == memory.num_bytes > 0
    assert restored.add(make_episode(3, label=4), 6)
    assert restored.sample(1, torch.Generator().manual_seed(0)).actions.tolist() == [4]


def test_fifo_evicts_the_oldest_episode_first():
    memory = GoodEpisodeMemory(10, 3)
    for label in range(5):
        assert memory.add(make_episode(2, 10.0 - label, label=label), label)
    assert [e.admitted_at for e in memory.episodes] == [2, 3, 4]


def test_ranked_memory_keeps_the_best_and_refuses_a_worse_one():
    memory = GoodEpisodeMemory(100, 3, eviction=LowestReturnFirst())
    returns = [5.0, 1.0, 3.0, 2.0, 0.5, 3.0]
    assert [memory.add(make_episode(1, r), i) for i, r in enumerate(returns)] == [True, True, True, True, False, True]
    assert sorted(e.total_reward for e in memory.episodes) == [3.0, 3.0, 5.0]


def test_of_equal_returns_the_oldest_is_evicted():
    memory = GoodEpisodeMemory(100, 2, eviction=LowestReturnFirst())
    for update in range(4):
        memory.add(make_episode(1, 1.0), update)
    assert [e.admitted_at for e in memory.episodes] == [2, 3]


def test_a_refused_episode_evicts_no_other():
    memory = GoodEpisodeMemory(4, 10, eviction=LowestReturnFirst())
    for total_reward in (1.0, 2.0, 3.0, 4.0):
        memory.add(make_episode(1, total_reward))
    assert not memory.add(make_episode(4, 3.5))
    assert [e.total_reward for e in memory.episodes] == [1.0, 2.0, 3.0, 4.0]


def test_an_episode_longer_than_the_memory_is_clipped_to_its_last_steps():
    memory = GoodEpisodeMemory(3, 5)
    assert memory.add(make_episode(8, 1.0))
    (good,) = memory.passes(1, 100, torch.Generator().manual_seed(0))
    assert sorted(rewards_of(memory, good).tolist()) == [5.0, 6.0, 7.0]
    assert memory.episodes[0].clipped


def test_the_returns_of_a_clipped_episode_are_those_of_the_whole():
    memory = GoodEpisodeMemory(2, 5, gamma=0.5)
    columns = {"rewards": torch.tensor([1.0, 1.0, 1.0, 1.0]), "bootstraps": torch.tensor([0.0, 0.0, 0.0, 4.0])}
    memory.add(make_episode(4, **columns))
    good = memory.sample_episodes(2, torch.Generator().manual_seed(0))
    assert good.returns.tolist() == [2.5, 3.0]  # 1 + 0.5 · 3, 1 + 0.5 · 4


def test_an_episode_admitted_before_an_update_can_be_evicted():
    memory = GoodEpisodeMemory(10, 10)
    memory.add(make_episode(1), 5)
    counts = []
    for update in (4, 5, 6):
        memory.evict_older_than(update)
        counts.append(len(memory.episodes))
    assert counts == [1, 1, 0]


def test_sampling_is_uniform_over_steps_not_over_episodes():
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(1, label=1))
    memory.add(make_episode(9, label=2))
    good = memory.sample(4_000, torch.Generator().manual_seed(0))
    assert (good.actions == 1).float().mean().item() == pytest.approx(0.1, abs=0.02)


def test_priorities_decide_how_often_a_step_is_drawn():
    memory = GoodEpisodeMemory(100, 10, prioritized=True)
    memory.add(make_episode(3))
    rows = memory.episodes[0].rows
    memory.set_priorities(rows, torch.tensor([1.0, 2.0, 4.0]) ** (1 / 0.6))  # to the power 0.6: 1, 2, 4
    good = memory.sample(7_000, torch.Generator().manual_seed(0))
    shares = [(rewards_of(memory, good) == step).float().mean().item() for step in range(3)]
    assert shares == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=0.02)


def test_a_new_episode_has_the_largest_priority_and_a_step_without_advantage_almost_none():
    memory = GoodEpisodeMemory(100, 10, prioritized=True)
    memory.add(make_episode(2, label=1))
    memory.set_priorities(memory.episodes[0].rows, torch.tensor([-5.0, 3.0]))
    memory.add(make_episode(1, label=2))
    good = memory.sample(6_000, torch.Generator().manual_seed(0))
    shares = [(rewards_of(memory, good) == reward).float().mean().item() for reward in (1000.0, 1001.0, 2000.0)]
    assert shares == pytest.approx([0.0, 0.5, 0.5], abs=0.02)


def test_priorities_that_are_not_finite_do_not_stop_sampling():
    memory = GoodEpisodeMemory(100, 10, prioritized=True)
    memory.add(make_episode(3))
    memory.set_priorities(memory.episodes[0].rows, torch.tensor([float("nan"), float("inf"), float("-inf")]))
    good = memory.sample(50, torch.Generator().manual_seed(0))
    assert rewards_of(memory, good).unique().tolist() == [1.0]


def test_priorities_do_not_change_uniform_sampling():
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(2))
    memory.set_priorities(memory.episodes[0].rows, torch.tensor([0.0, 1e9]))
    good = memory.sample(4_000, torch.Generator().manual_seed(0))
    assert (rewards_of(memory, good) == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)


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


def test_the_mean_return_is_over_episodes():
    memory = GoodEpisodeMemory(20, 4)
    assert memory.mean_return != memory.mean_return  # nan
    memory.add(make_episode(1, 1.0))
    memory.add(make_episode(9, 4.0))
    assert memory.mean_return == 2.5


def test_draws_are_counted_for_each_episode_and_start_at_zero():
    memory = GoodEpisodeMemory(8, 8)
    memory.add(make_episode(3, 1.0), 1, threshold=0.5, step=64)
    memory.add(make_episode(5, 2.0), 1)
    memory.sample(200, torch.Generator().manual_seed(0))
    drawn = [memory.times_drawn(stored) for stored in memory.episodes]
    assert sum(drawn) == 200
    assert 50 < drawn[0] < 100  # 3 of 8 rows
    memory.add(make_episode(5, 3.0), 2)  # evicts both: its rows were drawn before
    assert [memory.times_drawn(stored) for stored in memory.episodes] == [0]


def test_admission_and_draws_are_restored_and_unknown_in_earlier_checkpoints():
    memory = GoodEpisodeMemory(8, 8)
    memory.add(make_episode(3, 1.0), 1, threshold=0.5, step=64)
    memory.sample(10, torch.Generator().manual_seed(0))
    state = memory.state_dict()
    restored = GoodEpisodeMemory(8, 8)
    restored.load_state_dict(state)
    (stored,) = restored.episodes
    assert (stored.threshold, stored.step, restored.times_drawn(stored)) == (0.5, 64, 10)
    earlier = {name: state[name] for name in ("episodes", "pools")}
    restored.load_state_dict(earlier)
    (stored,) = restored.episodes
    assert (stored.step, restored.times_drawn(stored), stored.start_state) == (-1, None, None)
    assert stored.threshold != stored.threshold
    restored.sample(10, torch.Generator().manual_seed(0))
    assert restored.times_drawn(stored) is None
