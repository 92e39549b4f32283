"""One game through Gymnasium: names, pictures, hosts that ask for other render modes."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest

import cage2
from cage2.errors import ConfigError
from cage2.picture import CARD, CARDS, HEIGHT, RED, SCALE, TOP, WIDTH, _route, arrow
from cage2.rules.scenario import ACTION_NAMES

IDS = [f"cage2/Scenario2{interface}-v0" for interface in cage2.ENTRY_POINTS]


def test_actions_are_described_in_words() -> None:
    env = gymnasium.make("cage2/Scenario2-v0").unwrapped
    assert [env.describe(action) for action in (0, 1, 116, 143)] == [
        "Sleep",
        "Monitor",
        "Decoy Tomcat User2",
        "Restore User3",
    ]
    assert len({env.describe(action) for action in range(145)}) == 145
    many = cage2.CardiffVectorEnv(2, sleep_output=True)
    assert [many.describe(output) for output in (0, 27, 35, 36)] == [
        "Restore Enterprise0", "Decoy Enterprise0", "Decoy Op_Server0", "Sleep"
    ]  # fmt: skip
    for wrong in (145, -1, 1.0, True, None):
        with pytest.raises(ConfigError, match="expected a whole number from 0 to 144"):
            env.describe(wrong)
    assert ACTION_NAMES[143] == "Restore User3"


@pytest.mark.parametrize("env_id", IDS)
def test_picture_changes_with_the_game(env_id: str) -> None:
    env = gymnasium.make(env_id, red="Meander", render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    assert (before.shape, before.dtype) == ((730, 1290, 3), np.uint8)
    for action in (1, 27, 5):
        env.step(action)
    after = env.render()
    assert (before != after).any()
    assert (after == env.render()).all()


def test_picture_shows_who_holds_a_host() -> None:
    env = gymnasium.make("cage2/Scenario2-v0", red="B_line", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    for _ in range(4):
        env.step(0)
    picture, owned = env.render(), int(env.games.games["owned"][0])
    for h, host in enumerate(cage2.rules.scenario.HOSTS):
        x, y = CARDS[host]
        corner = picture[round(y * SCALE) + TOP + 1, round(x * SCALE) + 1]
        assert (corner.tolist() == list(RED)) == bool(owned >> h & 1), host
    assert bin(owned).count("1") == 2


@pytest.mark.parametrize("host", [host for host in CARDS if host != "User0"])
def test_arrow_of_red_ends_at_its_target_and_crosses_no_other_card(host: str) -> None:
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    arrow(picture, _route(host), RED, dashed=False)
    drawn = (picture == RED).all(axis=-1)
    assert drawn.any()
    for other, (x, y) in CARDS.items():
        left, top = round(x * SCALE), round(y * SCALE) + TOP
        inside = drawn[top : top + round(CARD[1] * SCALE), left : left + round(CARD[0] * SCALE)]
        assert not inside[:, 2:-2].any(), other
        if other == host:
            assert drawn[top : top + round(CARD[1] * SCALE), left - 6 : left].any()


def test_vector_environment_has_a_picture_for_each_game() -> None:
    envs = gymnasium.make_vec("cage2/Scenario2-v0", num_envs=3, red="mixed", render_mode="rgb_array")
    envs.reset(seed=0)
    envs.step([0, 28, 143])
    pictures = envs.render()
    assert len(pictures) == 3
    assert (pictures[0] != pictures[1]).any()


@pytest.mark.parametrize("env_id", IDS)
def test_unknown_render_mode_is_a_warning_and_renders_nothing(env_id: str) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        env = gymnasium.make(env_id, render_mode="depth_array").unwrapped
    assert any("no render_mode 'depth_array'" in str(warning.message) for warning in found)
    env.reset(seed=0)
    assert env.render() is None
