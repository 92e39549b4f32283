"""Pictures and text of the grid worlds."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.envs.tabular.deepsea import DeepSeaEnv, DeepSeaVectorEnv
from optimist.envs.tabular.grid import scripted_success
from optimist.envs.tabular.key_door import KeyDoorTreasureEnv
from optimist.envs.tabular.picture import COLOURS, Scene, picture_of, text_of
from optimist.errors import ConfigError


def has_colour(picture, name):
    return bool((picture == list(bytes.fromhex(COLOURS[name]))).all(-1).any())


def test_text_shows_objects_path_and_agent():
    scene = Scene([[".", "#", "T"], [".", "D", "."]], [(0, 0), (1, 0)])
    assert text_of(scene) == "* # T\no D ."


def test_picture_has_every_object_the_path_and_the_agent():
    picture = picture_of(Scene([["k", "#", "T"], [".", "D", "a"]], [(1, 0), (1, 1)]))
    assert picture.dtype == np.uint8
    assert picture.shape == (256, 384, 3)
    for name in ("k", "T", "D", "a", "wall", "path", "trace", "agent", "floor"):
        assert has_colour(picture, name), name


def test_deepsea_draws_the_whole_episode_its_last_step_included():
    env = DeepSeaEnv(size=4, render_mode="ansi")
    env.reset()
    assert env.render().splitlines()[0] == "o . . ."
    for action in scripted_success(env):
        env.step(action)
    assert env.render() == "* . . .\n. * . .\n. . * .\n. . . o"
    env.reset()
    assert env.render().count("*") == 0


def test_a_vector_environment_draws_each_environment_and_keeps_the_path_of_a_finished_episode():
    envs = DeepSeaVectorEnv(2, size=2, render_mode="rgb_array")
    envs.reset()
    right = envs.right_is_one[0, 0].astype(int)
    envs.step(np.array([right, 1 - right]))
    first, second = envs.render()
    assert first.shape == second.shape == (384, 384, 3)
    assert not np.array_equal(first, second)
    envs.step(np.array([0, 0]))
    assert envs.finished_paths == [[0, 3, 3], [0, 2, 2]]
    assert envs.paths == [[0], [0]]


def test_the_door_opens_and_the_key_goes_when_it_is_taken():
    env = KeyDoorTreasureEnv(apple=True, render_mode="ansi")
    env.reset()
    before = env.render()
    assert {"k", "D", "a", "T", "#"} <= set(before)
    for action in scripted_success(env)[:-1]:
        env.step(action)
    after = env.render()
    assert "d" in after
    assert not {"k", "D", "a"} & set(after)


def test_without_a_render_mode_nothing_is_drawn_or_recorded():
    envs = DeepSeaVectorEnv(2, size=3)
    envs.reset()
    envs.step(np.array([0, 1]))
    assert envs.render() is None
    assert envs.paths == []


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(ConfigError, match=r"^render_mode must be None, 'rgb_array' or 'ansi', got 'human'$"):
        DeepSeaEnv(render_mode="human")
