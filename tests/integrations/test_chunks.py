"""Whole episodes from RLlib's chunks."""

import numpy as np
import torch

from optimist.core import OPRConfig, OptimisticRegularizer, Steps
from optimist.integrations.chunks import Chunk, EpisodeAssembler


def piece(name, start, rewards, *, done=False, recorded=None):
    """Return a chunk and its columns; each observation is its time step."""
    times = torch.arange(start, start + len(rewards))
    return Chunk(name, start, np.array(rewards, float), done, False, recorded), {
        "obs": times.float(),
        "rewards": torch.tensor(rewards, dtype=torch.float32),
    }


def times(episodes):
    return [episode["obs"].int().tolist() for episode in episodes]


def returns(episodes):
    return [float(episode["raw_rewards"].sum()) for episode in episodes]


def test_an_episode_that_spans_batches_is_whole():
    assembler = EpisodeAssembler(100)
    assert assembler.add([piece("a", 0, [1, 2]), piece("b", 0, [5])]) == []
    assert assembler.add([piece("a", 2, [3]), piece("b", 1, [5, 5])]) == []
    finished = assembler.add([piece("a", 3, [4, 5], done=True), piece("b", 3, [1])])
    assert times(finished) == [[0, 1, 2, 3, 4]]
    assert returns(finished) == [15]
    assert list(assembler.episodes) == ["b"]


def test_chunks_of_one_batch_may_be_in_any_order():
    finished = EpisodeAssembler(100).add(
        [piece("a", 2, [1, 1, 1]), piece("a", 5, [1], done=True), piece("a", 0, [1, 1])]
    )
    assert times(finished) == [[0, 1, 2, 3, 4, 5]]


def test_an_episode_without_its_start_is_dropped():
    assembler = EpisodeAssembler(100)
    assert assembler.add([piece("a", 2, [1])]) == []
    assert assembler.add([piece("a", 3, [1], done=True)]) == []
    assert assembler.episodes == {}


def test_an_episode_with_a_gap_is_dropped():
    assembler = EpisodeAssembler(100)
    assembler.add([piece("a", 0, [1, 1])])
    assert assembler.add([piece("a", 3, [1]), piece("a", 4, [1], done=True)]) == []
    assert assembler.episodes == {}


def test_an_episode_that_a_batch_does_not_continue_is_dropped():
    assembler = EpisodeAssembler(100)
    assembler.add([piece("a", 0, [1]), piece("b", 0, [1])])
    assembler.add([piece("b", 1, [1])])
    assert list(assembler.episodes) == ["b"]
    assert assembler.add([piece("a", 1, [1], done=True)]) == []


def test_a_recorded_return_replaces_the_sum_of_rewards():
    assert returns(EpisodeAssembler(100).add([piece("a", 0, [1, 1], done=True, recorded=40.0)])) == [40]


def test_equal_episodes_tie_wherever_chunks_end():
    rewards = [0.1, 0.2, 0.3, 1e9, -1e9, 0.4]
    (once,) = EpisodeAssembler(100).add([piece("a", 0, rewards, done=True)])
    assembler = EpisodeAssembler(100)
    assembler.add([piece("b", 0, rewards[:3])])
    (twice,) = assembler.add([piece("b", 3, rewards[3:], done=True)])
    assert returns([once]) == returns([twice])


def test_a_long_episode_keeps_its_end_and_its_whole_return_and_is_marked_as_clipped():
    assembler = EpisodeAssembler(4)
    for start in range(0, 20, 2):
        assert assembler.add([piece("a", start, [1, 1])]) == []
        assert sum(len(part["rewards"]) for part in assembler.episodes["a"].parts) <= 4 + 2
    (whole,) = assembler.add([piece("a", 20, [1, 1], done=True)])
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


def test_stored_parts_do_not_keep_the_batch_alive():
    batch = torch.zeros(1000)
    assembler = EpisodeAssembler(100)
    assembler.add([(Chunk("a", 0, np.zeros(2), False, False), {"rewards": batch[:2]})])
    (part,) = assembler.episodes["a"].parts
    assert part["rewards"].untyped_storage().nbytes() == 8


def test_unfinished_episodes_survive_a_resume():
    assembler, resumed = EpisodeAssembler(100), EpisodeAssembler(100)
    assembler.add([piece("a", 0, [1, 2])])
    resumed.load_state_dict(assembler.state_dict())
    last = piece("a", 2, [3], done=True)
    assert times(resumed.add([last])) == times(assembler.add([last])) == [[0, 1, 2]]
