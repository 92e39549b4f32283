import numpy as np
import pytest

from cage2.game import game_of_trace
from cage2.traces import RECORDED, read_traces
from optimist.ui.app import Site
from optimist.ui.cage2 import stored_game
from optimist.ui.folders import RunsFolder
from optimist.ui.memory import checkpoint_steps, remember
from optimist.ui.security import Guard
from tests.ui.conftest import serving


@pytest.fixture
def memory(trained):
    folder = trained / "cage2-opr"
    return remember(Site(RunsFolder(trained), Guard()), "cage2-opr", checkpoint_steps(folder)[-1])


def test_a_stored_episode_is_replayed_exactly_from_its_start(memory):
    for row in memory.rows[:5]:
        game, exact = stored_game(memory, row)
        assert exact
        assert game.total == pytest.approx(row.stored.total_reward, abs=0.05)
        frames = memory.opr.memory.pools["frames"][memory.frames_of(row.stored)[:, -1]]
        seen = [step.bits for step in game.steps[: len(frames)]]
        assert np.array_equal(seen, frames[:, :52].numpy())


def test_without_a_start_only_what_blue_saw_is_shown(memory):
    row = memory.rows[0]
    start, row.stored.start_state = row.stored.start_state, None
    try:
        game, exact = stored_game(memory, row)
    finally:
        row.stored.start_state = start
    assert not exact
    assert {step.access for step in game.steps} == {(0,) * 13}
    exact_game, _ = stored_game(memory, row)
    assert [step.bits for step in game.steps] == [step.bits for step in exact_game.steps[: len(game.steps)]]
    assert [step.action for step in game.steps] == [step.action for step in exact_game.steps[: len(game.steps)]]


def test_a_recorded_episode_has_its_recorded_rewards_and_actions():
    trace = next(read_traces(RECORDED))
    game = game_of_trace(trace, "episode 1")
    assert len(game.steps) == len(trace) + 1
    assert game.total == pytest.approx(trace.total, abs=0.05)
    assert [step.action for step in game.steps[1:]] == trace.actions.tolist()


@pytest.mark.parametrize(
    ("query", "words"),
    [("blue=gone", "no run"), ("source=trace&file=../../x.jsonl.xz", "no trace file"), ("horizon=31", "no such game"),
     ("source=trace&number=9999", "has 1,386 episodes"), ("source=stored&run=gone", "may have been deleted")],
)  # fmt: skip
def test_what_cannot_be_played_is_one_line(trained, query, words):
    with serving(trained) as site:
        text = site.get(f"/cage2?{query}").text
    assert words in text
    assert "Traceback" not in text


def test_a_damaged_trace_file_is_one_line(tmp_path):
    (tmp_path / "bad.jsonl.gz").write_bytes(b"not gzip")
    with serving(tmp_path) as site:
        text = site.get("/cage2?source=trace&file=bad.jsonl.gz").text
    assert "This cannot be played." in text
