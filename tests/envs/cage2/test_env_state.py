"""Copies, saved states and infos of CAGE 2: nobody changes a game by the back door."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from optimist.envs.cage2.cardiff import CardiffVectorEnv
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.expert import ExpertVectorEnv
from optimist.envs.cage2.single import CageEnv
from optimist.envs.cage2.state import to_arrays
from optimist.errors import ConfigError


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("kind", [CageVectorEnv, CardiffVectorEnv, ExpertVectorEnv])
def test_a_copy_goes_on_by_itself_after_a_step_on_several_threads(kind: type[CageVectorEnv], make_copy: Any) -> None:
    env = kind(6, threads=3)
    env.reset(seed=0)
    env.step(np.ones(6, int))
    other = make_copy(env)
    for action in (2, 3, 4):
        np.testing.assert_array_equal(env.step(np.full(6, action))[0], other.step(np.full(6, action))[0])


@pytest.mark.parametrize("kind", [CageVectorEnv, CardiffVectorEnv, ExpertVectorEnv])
def test_infos_that_steps_share_cannot_be_written_to(kind: type[CageVectorEnv]) -> None:
    env = kind(3)
    _, infos = env.reset(seed=0)
    for name in ("red", "_red"):
        with pytest.raises(ValueError, match="read-only"):
            infos[name][0] = 0
    _, *_, infos = env.step(np.zeros(3, int))
    for name in infos.keys() - {"executed"}:
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
def test_a_state_that_does_not_fit_changes_nothing(kind: type[CageVectorEnv], part: str, field: str | None) -> None:
    env, other = kind(3), kind(3)
    env.reset(seed=0)
    other.reset(seed=1)
    other.step(np.ones(3, int))
    state = other.state_dict()
    name = field or list(state[part])[-1]
    state[part] = {**state[part], name: state[part][name][:2]}
    before = to_arrays(env.games)
    with pytest.raises(ConfigError, match=f"{name} is"):
        env.load_state_dict(state)
    for name, after in to_arrays(env.games).items():
        np.testing.assert_array_equal(after, before[name])


@pytest.mark.parametrize(
    ("saved", "here", "message"),
    [
        (CardiffVectorEnv(2, sleep_output=True), CardiffVectorEnv(2), "num_actions=37, this environment 36"),
        (ExpertVectorEnv(2, scored_at=(30, 50)), ExpertVectorEnv(2), "other horizons"),
        (CageEnv(horizon=30), CageEnv(horizon=50), "horizon=30, this environment 50"),
    ],
)
def test_a_state_of_another_game_is_refused(saved: Any, here: Any, message: str) -> None:
    saved.reset(seed=0)
    with pytest.raises(ConfigError, match=message):
        here.load_state_dict(saved.state_dict())


def test_states_of_before_say_less_and_are_taken() -> None:
    for env, name in ((CardiffVectorEnv(2), "num_actions"), (ExpertVectorEnv(2), "weights"), (CageEnv(), "horizon")):
        env.reset(seed=0)
        state = env.state_dict()
        del state[name]
        env.load_state_dict(state)
