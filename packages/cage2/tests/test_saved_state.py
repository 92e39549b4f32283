"""Copies, saved states and infos of CAGE 2: each is independent of the running games."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from cage2.cardiff import CardiffVectorEnv
from cage2.cardiff_rules import MEMORY_RANGES as CARDIFF_RANGES
from cage2.env import CageEnv
from cage2.errors import ConfigError
from cage2.expert.env import ExpertVectorEnv
from cage2.expert.memory import MEMORY_RANGES as EXPERT_RANGES
from cage2.rules.state import RANGES, to_arrays
from cage2.vector_env import CageVectorEnv


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("kind", [CageVectorEnv, CardiffVectorEnv, ExpertVectorEnv])
def test_copy_continues_independently_after_a_step_on_several_threads(
    kind: type[CageVectorEnv], make_copy: Any
) -> None:
    env = kind(6, threads=3)
    env.reset(seed=0)
    env.step(np.ones(6, int))
    other = make_copy(env)
    for action in (2, 3, 4):
        np.testing.assert_array_equal(env.step(np.full(6, action))[0], other.step(np.full(6, action))[0])


@pytest.mark.parametrize("kind", [CageVectorEnv, CardiffVectorEnv, ExpertVectorEnv])
def test_infos_shared_by_steps_are_read_only(kind: type[CageVectorEnv]) -> None:
    env = kind(3)
    _, infos = env.reset(seed=0)
    for name in ("red", "_red"):
        with pytest.raises(ValueError, match="read-only"):
            infos[name][0] = 0
    _, *_, infos = env.step(np.zeros(3, int))
    for name in infos.keys() - {"executed", "forced"}:
        with pytest.raises(ValueError, match="read-only"):
            infos[name][0] = 0


@pytest.mark.parametrize(
    ("kind", "part", "field"),
    [
        (CageVectorEnv, "games", "ot_running"),
        (CardiffVectorEnv, "memories", "placed"),
        (ExpertVectorEnv, "memories", None),
    ],
)
def test_state_that_does_not_match_changes_nothing(kind: type[CageVectorEnv], part: str, field: str | None) -> None:
    env, other = kind(3), kind(3)
    env.reset(seed=0)
    other.reset(seed=1)
    other.step(np.ones(3, int))
    state = other.state_dict()
    name = field or list(state[part])[-1]
    state[part] = {**state[part], name: state[part][name][:2]}
    before = to_arrays(env.games)
    with pytest.raises(ConfigError, match=f"have {name} of shape"):
        env.load_state_dict(state)
    for name, after in to_arrays(env.games).items():
        np.testing.assert_array_equal(after, before[name])


@pytest.mark.parametrize(
    ("saved", "here", "message"),
    [
        (
            CardiffVectorEnv(2, sleep_output=True),
            CardiffVectorEnv(2),
            "num_actions=37; this environment has num_actions=36",
        ),
        (ExpertVectorEnv(2, scored_at=(30, 50)), ExpertVectorEnv(2), "another scored_at"),
        (CageEnv(horizon=30), CageEnv(horizon=50), "horizon=30; this environment has horizon=50"),
    ],
)
def test_state_of_another_game_is_refused(saved: Any, here: Any, message: str) -> None:
    saved.reset(seed=0)
    with pytest.raises(ConfigError, match=message):
        here.load_state_dict(saved.state_dict())


def test_older_states_with_fewer_fields_are_accepted() -> None:
    for env, name in ((CardiffVectorEnv(2), "num_actions"), (ExpertVectorEnv(2), "weights"), (CageEnv(), "horizon")):
        env.reset(seed=0)
        state = env.state_dict()
        del state[name]
        env.load_state_dict(state)


KINDS = [CageVectorEnv, CardiffVectorEnv, ExpertVectorEnv]
MEMORY_RANGES = {CardiffVectorEnv: CARDIFF_RANGES, ExpertVectorEnv: EXPERT_RANGES}


def saved_after_some_steps(kind: type[CageVectorEnv]) -> tuple[CageVectorEnv, dict[str, Any]]:
    env = kind(4, red="mixed")
    env.reset(seed=0)
    for action in (1, 2, 3, 4):
        env.step(np.full(4, action))
    return env, env.state_dict()


def ranges_of(kind: type[CageVectorEnv]) -> list[tuple[str, str, int, int]]:
    parts = {"games": RANGES, "memories": MEMORY_RANGES.get(kind, {})}
    return [(part, name, low, high) for part, ranges in parts.items() for name, (low, high) in ranges.items()]


@pytest.mark.parametrize("kind", KINDS)
def test_values_out_of_range_are_refused_before_anything_is_changed(kind: type[CageVectorEnv]) -> None:
    env, state = saved_after_some_steps(kind)
    before = env.state_dict()
    for part, name, low, high in ranges_of(kind):
        for value in (low - 1, high + 1, 0.5):
            forged = copy.deepcopy(state)
            array = np.asarray(forged[part][name])
            forged[part][name] = array.astype(object if abs(value) > 2**62 else float if value == 0.5 else np.int64)
            forged[part][name].flat[0] = value
            with pytest.raises(ConfigError, match=f"saved games have {name} of"):
                env.load_state_dict(forged)
    for part, name, _, _ in ranges_of(kind):
        np.testing.assert_array_equal(env.state_dict()[part][name], before[part][name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("red", ["B_line", "Meander", "mixed"])
def test_any_state_within_the_ranges_plays_on(kind: type[CageVectorEnv], red: str) -> None:
    """A forged state may be impossible in play; it must not index outside an array (checked: NUMBA_BOUNDSCHECK=1)."""
    random = np.random.default_rng(0)
    env = kind(512, red=red, green="GreenAgent")
    env.reset(seed=0)
    for _ in range(4):
        state = env.state_dict()
        for part, name, low, high in ranges_of(kind):
            array, kind_of = state[part][name], np.uint64 if high > 2**62 else np.int64
            state[part][name] = random.integers(low, high, array.shape, kind_of, endpoint=True).astype(array.dtype)
        state["games"]["steps"] %= 50
        env.load_state_dict(state)
        for _ in range(60):
            observations, rewards, *_ = env.step(random.integers(0, env.num_actions, 512))
        assert np.isfinite(rewards).all()
        assert observations.min() >= 0
