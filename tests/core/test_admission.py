from hypothesis import given
from hypothesis import strategies as st

from optimist.core.admission import is_good
from optimist.core.config import OPRConfig
from optimist.core.threshold import ReturnWindow

PAPER = OPRConfig(admission="paper")
GATED = OPRConfig(admission="gated")


def test_episode_equal_to_threshold_is_not_admitted_by_the_paper():
    assert not is_good(5.0, 5.0, PAPER)
    assert is_good(5.000001, 5.0, PAPER)


def test_episode_equal_to_threshold_is_admitted_by_the_gate():
    assert is_good(5.0, 5.0, GATED)
    assert not is_good(4.999999, 5.0, GATED)


def test_the_floor_must_be_exceeded_not_only_reached():
    floored = OPRConfig(admission="gated", admission_floor=0.0)
    assert not is_good(0.0, -1.0, floored)
    assert is_good(0.001, -1.0, floored)
    assert not is_good(0.5, 1.0, floored)


@given(st.lists(st.floats(-1e3, 1e3), max_size=50))
def test_with_k_1_the_paper_admits_nothing_and_the_gate_everything(returns):
    window = ReturnWindow(1, 75.0)
    for total_reward in returns:
        threshold = window.add(total_reward)
        assert not is_good(total_reward, threshold, PAPER)
        assert is_good(total_reward, threshold, GATED)


def test_ties_at_the_ceiling_stop_the_paper_and_not_the_gate():
    window = ReturnWindow(100, 75.0, [0.0] * 70 + [1.0] * 29)
    threshold = window.add(1.0)  # 30 of 100 at the best return: τ is that return
    assert threshold == 1.0
    assert not is_good(1.0, threshold, PAPER)
    assert is_good(1.0, threshold, GATED)
