import pytest
import torch

from optimist.replay.segments import COLUMNS, SegmentReplay, Segments


def replay(capacity: int = 1_000) -> SegmentReplay:
    return SegmentReplay(capacity, 0.6, 0.1)


def numbered(seed: int, **changes) -> Segments:
    """A rollout of 4 × 3 steps whose probabilities name the rollout, the step and the environment."""
    names = 100.0 * seed + 10.0 * torch.arange(4.0)[:, None] + torch.arange(3.0)
    ones = torch.ones(4, 3, dtype=torch.bool)
    columns = {
        "obs": names.int(),
        "actions": names.long() % 3,
        "rewards": 2.0 * names,
        "behavior": names[..., None] + torch.zeros(2),
        "dones": names % 4 == 0,
        "bootstraps": torch.zeros(4, 3),
        "valid": ones,
        "chosen": ones,
    }
    return Segments(**(columns | changes), weights=torch.ones(3))


def names_of(segments: Segments) -> set[int]:
    return {int(name) // 100 for name in segments.behavior.flatten()}


def test_a_segment_is_one_environments_part_of_one_rollout():
    buffer = replay()
    for seed in range(3):
        buffer.add(numbered(seed))
    segments = buffer.draw(60, torch.Generator().manual_seed(0))
    assert segments.behavior.shape == (4, 60, 2)
    found = set()
    for b in range(60):
        seed, env = divmod(int(segments.behavior[0, b, 0]), 100)
        rollout = numbered(seed)
        assert all(getattr(segments, name)[:, b].equal(getattr(rollout, name)[:, env]) for name in COLUMNS)
        found.add((seed, env))
    assert found == {(seed, env) for seed in range(3) for env in range(3)}


def test_the_oldest_rollout_is_overwritten_and_at_least_one_is_kept():
    buffer, tiny = replay(capacity=2 * 12 + 5), replay(capacity=1)
    for seed in range(5):
        for each in (buffer, tiny):
            each.add(numbered(seed))
    assert names_of(buffer.draw(100, torch.Generator())) == {3, 4}
    assert (buffer.num_steps, tiny.num_steps) == (24, 12)
    assert names_of(tiny.draw(100, torch.Generator())) == {4}


def test_segments_are_drawn_by_priority():
    buffer = replay()
    buffer.add(numbered(0))
    buffer.set_priorities(torch.tensor([0, 1, 2]), torch.tensor([0.0, 0.0, 1.0]))
    drawn = buffer.draw(100, torch.Generator().manual_seed(0))
    assert (drawn.places == 2).float().mean() > 0.95


@pytest.mark.parametrize("rollouts", [0, 1, 5])
def test_the_state_goes_through_a_dict(rollouts):
    buffer, other = replay(30), replay(30)
    valid = torch.ones(4, 3, dtype=torch.bool)
    valid[1, 2] = False
    for seed in range(rollouts):
        buffer.add(numbered(seed, valid=valid, bootstraps=torch.full((4, 3), 0.5)))
    other.load_state_dict(buffer.state_dict())
    for each in (buffer, other):
        each.add(numbered(9))
    mine, its = (each.draw(20, torch.Generator().manual_seed(1)) for each in (buffer, other))
    assert all(getattr(mine, name).equal(getattr(its, name)) for name in (*COLUMNS, "weights", "places"))


def test_a_replay_of_another_capacity_is_not_restored():
    with pytest.raises(ValueError, match="room for 30 steps, this one for 40"):
        replay(40).load_state_dict(replay(30).state_dict())


def test_the_last_step_can_be_left_out():
    whole = numbered(1)
    assert whole.without_last().rewards.equal(whole.rewards[:-1])
    assert whole.without_last().behavior.shape == (3, 3, 2)
