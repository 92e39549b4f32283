"""Episodes put together from chunks."""

import numpy as np
import torch

from optimist.adapters.chunks import Chunk, EpisodesInPlay
from optimist.core import OPRConfig, OptimisticRegularizer, Steps


def piece(name, begin, rewards, *, done=False, game=None):
    """A chunk, and its steps: each is known by its time."""
    times = torch.arange(begin, begin + len(rewards))
    return Chunk(name, begin, np.array(rewards, float), done, False, game), {
        "obs": times.float(),
        "rewards": torch.tensor(rewards, dtype=torch.float32),
    }


def times(episodes):
    return [episode["obs"].int().tolist() for episode in episodes]


def returns(episodes):
    return [float(episode["raw_rewards"].sum()) for episode in episodes]


def test_an_episode_that_spans_batches_is_whole():
    play = EpisodesInPlay(100)
    assert play.add([piece("a", 0, [1, 2]), piece("b", 0, [5])]) == []
    assert play.add([piece("a", 2, [3]), piece("b", 1, [5, 5])]) == []
    finished = play.add([piece("a", 3, [4, 5], done=True), piece("b", 3, [1])])
    assert times(finished) == [[0, 1, 2, 3, 4]]
    assert returns(finished) == [15]
    assert list(play.episodes) == ["b"]


def test_chunks_of_one_batch_come_in_any_order():
    finished = EpisodesInPlay(100).add([piece("a", 2, [1, 1, 1]), piece("a", 5, [1], done=True), piece("a", 0, [1, 1])])
    assert times(finished) == [[0, 1, 2, 3, 4, 5]]


def test_an_episode_without_its_beginning_is_left_out():
    play = EpisodesInPlay(100)
    assert play.add([piece("a", 2, [1])]) == []
    assert play.add([piece("a", 3, [1], done=True)]) == []
    assert play.episodes == {}


def test_an_episode_with_a_gap_is_left_out():
    play = EpisodesInPlay(100)
    play.add([piece("a", 0, [1, 1])])
    assert play.add([piece("a", 3, [1]), piece("a", 4, [1], done=True)]) == []
    assert play.episodes == {}


def test_an_episode_that_a_batch_does_not_continue_is_forgotten():
    play = EpisodesInPlay(100)
    play.add([piece("a", 0, [1]), piece("b", 0, [1])])
    play.add([piece("b", 1, [1])])
    assert list(play.episodes) == ["b"]
    assert play.add([piece("a", 1, [1], done=True)]) == []


def test_what_a_monitor_saw_counts_instead_of_the_rewards():
    assert returns(EpisodesInPlay(100).add([piece("a", 0, [1, 1], done=True, game=40.0)])) == [40]


def test_equal_episodes_tie_wherever_chunks_end():
    rewards = [0.1, 0.2, 0.3, 1e9, -1e9, 0.4]
    (once,) = EpisodesInPlay(100).add([piece("a", 0, rewards, done=True)])
    play = EpisodesInPlay(100)
    play.add([piece("b", 0, rewards[:3])])
    (twice,) = play.add([piece("b", 3, rewards[3:], done=True)])
    assert returns([once]) == returns([twice])


def test_of_a_long_episode_the_end_is_kept_and_the_whole_return_and_m_sees_that_it_is_clipped():
    play = EpisodesInPlay(4)
    for begin in range(0, 20, 2):
        assert play.add([piece("a", begin, [1, 1])]) == []
        assert sum(len(part["rewards"]) for part in play.episodes["a"].parts) <= 4 + 2
    (whole,) = play.add([piece("a", 20, [1, 1], done=True)])
    assert returns([whole]) == [22]
    opr = OptimisticRegularizer(OPRConfig(max_episode_steps=4))
    columns = {name: whole[name][:, None] for name in ("rewards", "raw_rewards")}
    ends = torch.zeros(len(whole["obs"]), 1, dtype=torch.bool)
    ends[-1] = True
    zeros = torch.zeros_like(columns["rewards"])
    opr.observe(Steps(obs=whole["obs"][:, None, None], actions=zeros, logp=zeros, dones=ends, **columns))
    (stored,) = opr.memory.episodes
    assert stored.clipped
    assert stored.total_reward == 22
    assert opr.memory.pools["frames"][stored.frames].flatten().tolist() == [18, 19, 20, 21]


def test_what_is_kept_does_not_hold_the_batch():
    batch = torch.zeros(1000)
    play = EpisodesInPlay(100)
    play.add([(Chunk("a", 0, np.zeros(2), False, False), {"rewards": batch[:2]})])
    (part,) = play.episodes["a"].parts
    assert part["rewards"].untyped_storage().nbytes() == 8


def test_episodes_in_play_survive_a_resume():
    play, resumed = EpisodesInPlay(100), EpisodesInPlay(100)
    play.add([piece("a", 0, [1, 2])])
    resumed.load_state_dict(play.state_dict())
    last = piece("a", 2, [3], done=True)
    assert times(resumed.add([last])) == times(play.add([last])) == [[0, 1, 2]]
