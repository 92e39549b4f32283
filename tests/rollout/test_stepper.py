"""VectorStepper in all three autoreset modes."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from optimist.rollout.stepper import VectorStepper, overlaid, rows_of
from tests.envs.toy import ToyVectorEnv, episode_length

MODES = list(AutoresetMode)


@pytest.mark.parametrize("mode", MODES)
def test_the_last_observation_of_an_episode_is_not_the_first_of_the_next(mode):
    stepper = VectorStepper(ToyVectorEnv(3, mode))
    stepper.reset(0)
    seen = 0
    for _ in range(30):
        transition = stepper.step(np.zeros(3, np.int64))
        for env in np.flatnonzero(transition.ended):
            _, episode, step = transition.final_obs[env].astype(int)
            assert step == episode_length(env, episode)
            if mode is not AutoresetMode.NEXT_STEP:
                assert transition.obs[env].tolist() == [env, episode + 1, 0]
            seen += 1
    assert seen > 10


def test_after_an_end_a_next_step_environment_only_resets():
    stepper = VectorStepper(ToyVectorEnv(2, AutoresetMode.NEXT_STEP, reset_reward=9.0))
    stepper.reset(0)
    ended = np.zeros(2, bool)
    for _ in range(20):
        transition = stepper.step(np.zeros(2, np.int64))
        valid = np.ones(2, bool) if transition.valid is None else transition.valid
        assert (valid == ~ended).all()
        assert not transition.rewards[~valid].any()
        assert not transition.ended[~valid].any()
        ended = transition.ended


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_the_other_modes_have_no_reset_step(mode):
    stepper = VectorStepper(ToyVectorEnv(2, mode))
    stepper.reset(0)
    assert all(stepper.step(np.zeros(2, np.int64)).valid is None for _ in range(20))


def test_only_given_entries_replace_values():
    values, all_envs = np.array([1, 2, 3]), np.ones(3, bool)
    infos = {"key": np.array([7, 0, 9]), "_key": np.array([True, False, True])}
    assert overlaid(values, infos, "key", all_envs).tolist() == [7, 2, 9]
    assert overlaid(values, infos, "key", np.array([False, True, True])).tolist() == [1, 2, 9]
    assert overlaid(values, {"key": np.array([7, 8, 9])}, "key", all_envs).tolist() == [7, 8, 9]
    assert overlaid(values, {}, "key", all_envs) is values
    assert values.tolist() == [1, 2, 3]


def test_rows_are_taken_from_an_array_of_objects():
    objects = np.full(3, None, dtype=object)
    objects[1] = np.array([1.0, 2.0])
    assert rows_of(objects, np.array([False, True, False])).tolist() == [[1.0, 2.0]]
