"""Scores of a run: means over the last 100 episodes, goals, and the best evaluation."""

import json

import pytest

from optimist.rollout.collector import EpisodeRecord
from optimist.training.scores import Scores


def records(returns, goals=None, start=0):
    goals = [None] * len(returns) if goals is None else goals
    numbers = enumerate(zip(returns, goals, strict=True))
    return [EpisodeRecord(r, length=i + 1, group=0, goal=g, step=start + 10 * i) for i, (r, g) in numbers]


def test_before_the_first_episode_there_is_no_mean():
    scores = Scores()
    assert scores.metrics() == {"rollout/episodes": 0.0}
    summary = scores.summary()
    assert (summary["last_100_return"], summary["episodes"], summary["episodes_in_statistic"]) == (None, 0, 0)
    assert "goal_seen" not in summary


def test_means_are_over_the_last_100_episodes():
    scores = Scores()
    scores.add(records([1000.0] * 50 + [1.0] * 60 + [3.0] * 40))
    assert scores.metrics()["rollout/raw_return"] == pytest.approx(1.8)
    summary = scores.summary()
    assert summary["last_100_return"] == pytest.approx(1.8)
    assert (summary["episodes"], summary["episodes_in_statistic"]) == (150, 100)
    assert "last 100 training episodes" in summary["statistic"]


def test_the_mean_length_is_logged():
    scores = Scores()
    scores.add(records([0.0] * 3))
    assert scores.metrics()["rollout/length"] == 2.0


@pytest.mark.parametrize(("reached", "solved"), [(90, True), (89, False), (100, True), (0, False)])
def test_solved_means_90_of_the_last_100(reached, solved):
    scores = Scores()
    scores.add(records([0.0] * 100, [True] * reached + [False] * (100 - reached)))
    assert scores.summary()["solved"] is solved
    assert scores.summary()["goal_rate"] == reached / 100


def test_99_episodes_are_too_few_to_be_solved():
    scores = Scores()
    scores.add(records([0.0] * 99, [True] * 99))
    assert scores.summary()["solved"] is False
    scores.add(records([0.0], [True]))
    assert scores.summary()["solved"] is True


def test_the_first_goal_stays_in_the_summary_after_the_policy_forgets_it():
    scores = Scores()
    scores.add(records([0.0, 1.0], [False, True], start=500))
    scores.add(records([0.0] * 200, [False] * 200, start=10_000))
    summary = scores.summary()
    assert (summary["goal_seen"], summary["first_goal_step"], summary["goal_rate"]) == (True, 510, 0.0)


def test_restored_scores_continue_like_the_saved_ones():
    scores, other = Scores(), Scores()
    scores.add(records([1.0, 2.0], [False, True], start=7))
    other.load_state_dict(scores.state_dict())
    for each in (scores, other):
        each.add(records([float(i) for i in range(99)], [True] * 99))
    assert other.summary() == scores.summary()
    assert other.metrics() == scores.metrics()


def test_the_best_evaluation_is_the_first_with_the_highest_mean_and_is_restored():
    scores = Scores()
    for mean_return, step in ((1.0, 10), (3.0, 20), (3.0, 30), (2.0, 40)):
        scores.add_evaluation(mean_return, step)
    again = Scores()
    again.load_state_dict(json.loads(json.dumps(scores.state_dict())))
    for found in (scores, again):
        best = found.summary()["best_evaluation"]
        assert (best["mean_return"], best["step"]) == (3.0, 20)
    again.load_state_dict(Scores().state_dict())
    assert "best_evaluation" not in again.summary()
