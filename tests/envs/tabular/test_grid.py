"""What DeepSea and Key-Door-Treasure have in common: faces, saved states, seeds, bad input."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

import optimist.envs  # noqa: F401 (registers)
from optimist.envs.tabular.deepsea import DeepSeaEnv, DeepSeaVectorEnv
from optimist.envs.tabular.grid import TabularVectorEnv
from optimist.envs.tabular.key_door import KeyDoorTreasureEnv, KeyDoorTreasureVectorEnv
from optimist.errors import CheckpointError, ConfigError, ShapeMismatch

IDS = ["optimist/DeepSea-v0", "optimist/KeyDoorTreasure-v0"]


def deepsea(num_envs: int = 3) -> DeepSeaVectorEnv:
    return DeepSeaVectorEnv(num_envs, size=4)


def key_door(num_envs: int = 3) -> KeyDoorTreasureVectorEnv:
    return KeyDoorTreasureVectorEnv(num_envs, height=2, horizon=7, apple=True)


TASKS = [deepsea, key_door]


def random_actions(envs: TabularVectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, envs.num_actions, size=(steps, envs.num_envs))


def flatten(step: Any) -> list[Any]:
    """A step's results as nested lists, comparable with ==."""
    if isinstance(step, dict):
        return [(key, flatten(value)) for key, value in sorted(step.items())]
    if isinstance(step, tuple):
        return [flatten(part) for part in step]
    return np.asarray(step).tolist()


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_finds_nothing_wrong_with_the_single_face(env_id: str) -> None:
    env = gymnasium.make(env_id)
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("env_id", IDS)
def test_registered_vector_version_is_ours_and_resets_in_the_same_step(env_id: str) -> None:
    envs = gymnasium.make_vec(env_id, num_envs=3)
    assert isinstance(envs, TabularVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_observation_space == gymnasium.make(env_id).observation_space
    assert envs.single_action_space == gymnasium.make(env_id).action_space
    assert envs.action_space.shape == (3,)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), num_envs=st.integers(1, 4), sea=st.booleans())
def test_vector_face_equals_gymnasiums_vectorisation_of_the_single_face(seed: int, num_envs: int, sea: bool) -> None:
    if sea:
        many: TabularVectorEnv = DeepSeaVectorEnv(num_envs, size=4, map_seed=seed)
        single = [lambda: DeepSeaEnv(size=4, map_seed=seed)] * num_envs
    else:
        many = KeyDoorTreasureVectorEnv(num_envs, height=2, horizon=30, apple=True)
        single = [lambda: KeyDoorTreasureEnv(height=2, horizon=30, apple=True)] * num_envs
    separate = SyncVectorEnv(single, autoreset_mode=AutoresetMode.SAME_STEP)
    assert flatten(many.reset(seed=seed)) == flatten(separate.reset(seed=seed))
    for actions in random_actions(many, 90, seed):
        one, other = many.step(actions), separate.step(actions)
        assert flatten(one[:4]) == flatten(other[:4])
        ended = one[2] | one[3]
        assert one[4].keys() == other[4].keys()
        if ended.any():
            assert np.array_equal(one[4]["_final_obs"], other[4]["_final_obs"])
            assert one[4]["final_obs"][ended].tolist() == other[4]["final_obs"][ended].tolist()
            assert one[4]["final_info"]["goal"][ended].tolist() == other[4]["final_info"]["goal"][ended].tolist()


@settings(max_examples=40, deadline=None)
@given(before=st.integers(0, 25), seed=st.integers(0, 2**31), make=st.sampled_from(TASKS))
def test_restored_games_continue_exactly(before: int, seed: int, make: Any) -> None:
    envs = make()
    envs.reset(seed=seed)
    actions = random_actions(envs, before + 30, seed)
    for row in actions[:before]:
        envs.step(row)
    saved = envs.state_dict()
    ahead = [flatten(envs.step(row)) for row in actions[before:]]

    fresh = make()
    fresh.load_state_dict(saved)
    assert [flatten(fresh.step(row)) for row in actions[before:]] == ahead

    envs.load_state_dict(saved)  # and the saved state is not changed by further steps
    assert [flatten(envs.step(row)) for row in actions[before:]] == ahead


@pytest.mark.parametrize("make", TASKS)
def test_saved_state_is_arrays_and_json(make: Any) -> None:
    envs = make()
    envs.reset(seed=0)
    state = envs.state_dict()
    json.dumps({key: value for key, value in state.items() if not isinstance(value, np.ndarray)})
    assert all(value.dtype != object for value in state.values() if isinstance(value, np.ndarray))


@pytest.mark.parametrize("other", [DeepSeaVectorEnv(3, 5), DeepSeaVectorEnv(3, 4, map_seed=1), deepsea(2), key_door()])
def test_a_state_of_another_task_is_refused_and_changes_nothing(other: TabularVectorEnv) -> None:
    envs = deepsea()
    envs.step(np.zeros(3, dtype=np.int64))
    good = envs.state_dict()
    with pytest.raises(CheckpointError, match=r"the saved state is of .*; expected 3 × {'name': 'DeepSea'"):
        envs.load_state_dict(other.state_dict())
    assert flatten(envs.state_dict()) == flatten(good)


@pytest.mark.parametrize("make", TASKS)
def test_reset_mask_restarts_only_the_games_in_it(make: Any) -> None:
    envs = make()
    start, _ = envs.reset(seed=0)
    moved, *_ = envs.step(np.zeros(3, dtype=np.int64))
    options = {"reset_mask": np.array([True, False, True])}
    after, _ = envs.reset(options=options)
    assert after.tolist() == [start[0], moved[1], start[2]]
    assert options["reset_mask"].tolist() == [True, False, True]  # the caller's options are left alone


@pytest.mark.parametrize("make", TASKS)
def test_results_are_the_callers_to_change(make: Any) -> None:
    envs = make()
    observations, _ = envs.reset(seed=0)
    before = flatten(envs.state_dict())
    observations += 1
    assert flatten(envs.state_dict()) == before
    for row in random_actions(envs, 8):
        observations, rewards, terminated, truncated, infos = envs.step(row)
        before = flatten(envs.state_dict())
        for array in (observations, rewards, terminated, truncated, infos.get("final_obs", rewards)):
            array += array.dtype.type(1)
        assert flatten(envs.state_dict()) == before


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ([0, 1], ShapeMismatch, r"actions is int64\[2\], expected int64\[3\]"),
        ([[0, 1, 0]], ShapeMismatch, r"actions is int64\[1, 3\]"),
        ([0.0, 1.0, 0.0], ShapeMismatch, r"actions is float64\[3\]"),
        ([0, 1, 4], ConfigError, r"must be in \[0, "),
        ([0, -1, 0], ConfigError, r"got -1 to 0"),
    ],
)
@pytest.mark.parametrize("make", TASKS)
def test_bad_actions_are_named(make: Any, actions: list[Any], error: type[Exception], message: str) -> None:
    envs = make()
    envs.reset(seed=0)
    with pytest.raises(error, match=message):
        envs.step(np.array(actions))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize("make", TASKS)
def test_any_integer_type_of_action_will_do(make: Any, dtype: Any) -> None:
    envs, other = make(), make()
    envs.reset(seed=0)
    other.reset(seed=0)
    for row in random_actions(envs, 10):
        assert flatten(envs.step(row.astype(dtype))) == flatten(other.step(row))


@pytest.mark.parametrize("env", [DeepSeaEnv(size=2), KeyDoorTreasureEnv(horizon=2)])
def test_single_face_waits_for_reset_after_an_end(env: Any) -> None:
    env.reset(seed=0)
    env.step(0)
    env.step(0)
    with pytest.raises(ResetNeeded):
        env.step(0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DeepSeaVectorEnv(0), "num_envs must be an integer of at least 1, got 0"),
        (lambda: DeepSeaVectorEnv(2, size=1), "size must be an integer of at least 2, got 1"),
        (lambda: DeepSeaVectorEnv(2, size=3.0), "got 3.0"),
        (lambda: DeepSeaVectorEnv(2, size="12"), "got '12'"),
        (lambda: DeepSeaVectorEnv(2, map_seed=-1), "map_seed must be an integer of at least 0"),
        (lambda: KeyDoorTreasureVectorEnv(2, height=1), "height must be an integer of at least 2, got 1"),
        (lambda: KeyDoorTreasureVectorEnv(2, horizon=0), "horizon must be an integer of at least 1, got 0"),
        (lambda: KeyDoorTreasureVectorEnv(2, apple=1), "apple must be true or false, got 1"),
        (lambda: deepsea().reset(seed=0, options={"low": 1}), "one option, reset_mask as bool.3.; got {'low': 1}"),
        (lambda: deepsea().reset(seed=0, options={"reset_mask": np.ones(2, bool)}), r"reset_mask as bool\[3\]"),
        (lambda: key_door().reset(options={"reset_mask": np.ones(3)}), r"reset_mask as bool\[3\]"),
    ],
)
def test_bad_settings_are_named_in_one_line(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
