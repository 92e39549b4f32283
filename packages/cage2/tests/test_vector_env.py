"""The Gymnasium environments: interface, seeds, threads, saved state, masks, bad input."""

from __future__ import annotations

import copy
import multiprocessing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import cage2
from cage2 import CageEnv, CageVectorEnv, CardiffEnv, CardiffVectorEnv
from cage2.errors import ConfigError, UnknownName
from cage2.rules.scenario import HOSTS

KINDS = [CageVectorEnv, CardiffVectorEnv]


def play(env: CageVectorEnv, steps: int, seed: int = 0) -> list[Any]:
    """Everything that comes back from so many steps with random actions."""
    rng = np.random.default_rng(seed)
    return [env.step(rng.integers(env.num_actions, size=env.num_envs)) for _ in range(steps)]


def assert_same(left: Any, right: Any) -> None:
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_same(a, b)
    else:
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_types(kind: type[CageVectorEnv]) -> None:
    env = kind(6, red="mixed", horizon=5)
    observations, infos = env.reset(seed=1)
    assert observations.shape == (6, env.observation_width)
    assert not observations.any()
    assert env.observation_space.contains(observations)
    for observations, rewards, terminated, truncated, infos in play(env, 12):
        assert env.observation_space.contains(observations)
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float32, np.bool_, np.bool_)
        assert rewards.shape == terminated.shape == truncated.shape == (6,)
        assert not terminated.any()
        assert infos["red"].shape == (6,)


def test_game_is_truncated_at_its_horizon_and_reset_in_the_same_step() -> None:
    env = CageVectorEnv(50, red="mixed", horizon=7)
    _, infos = env.reset(seed=3)
    for step, (observations, _, _, truncated, now) in enumerate(play(env, 21), 1):
        if step % 7:
            assert not truncated.any()
            assert "final_obs" not in now
            assert_same(now["red"], infos["red"])
        else:
            assert truncated.all()
            assert not observations.any()
            assert now["final_obs"].any()
            assert now["_final_obs"].all()
            assert_same(now["final_info"]["red"], infos["red"])
            assert (env.games["steps"] == 0).all()
        infos = now
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_final_observation_equals_that_of_a_longer_game() -> None:
    short, long = CageVectorEnv(30, horizon=9), CageVectorEnv(30, horizon=99)
    for env in (short, long):
        env.reset(seed=4)
    assert_same(play(short, 9)[-1][4]["final_obs"], play(long, 9)[-1][0])


@pytest.mark.parametrize("kind", KINDS)
def test_seed_fixes_everything_on_any_number_of_threads(kind: type[CageVectorEnv]) -> None:
    def rollout(threads: int, seed: int) -> list[Any]:
        env = kind(37, red="mixed", green="GreenAgent", horizon=11, threads=threads)
        first = env.reset(seed=seed)
        return [first, *play(env, 30)]

    one = rollout(1, 5)
    assert_same(one, rollout(1, 5))
    assert_same(one, rollout(3, 5))
    assert any((a[0] != b[0]).any() for a, b in zip(one, rollout(1, 6), strict=True))


def test_games_of_one_seed_differ_from_each_other() -> None:
    env = CageVectorEnv(64, red="Meander", horizon=100)
    env.reset(seed=0)
    for _ in range(20):
        observations, *_ = env.step(np.zeros(64, np.int64))
    assert len(np.unique(env.games["random"], axis=0)) == 64
    assert len(np.unique(observations, axis=0)) > 10


def test_games_do_not_depend_on_the_number_of_games() -> None:
    few, many = CageVectorEnv(3), CageVectorEnv(9)
    few.reset(seed=8)
    many.reset(seed=8)
    assert_same(few.games["random"], many.games["random"][:3])


def test_reset_without_seed_continues_the_random_state() -> None:
    env, same = CageVectorEnv(4, red="Meander"), CageVectorEnv(4, red="Meander")
    for e in (env, same):
        e.reset(seed=2)
        e.reset()
    assert_same(play(env, 10), play(same, 10))
    fresh = CageVectorEnv(4, red="Meander")
    fresh.reset(seed=2)
    assert (fresh.games["random"] != same.games["random"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_restored_state_continues_exactly(kind: type[CageVectorEnv]) -> None:
    keywords = {"red": "mixed", "green": "GreenAgent", "rules": "competition", "horizon": 13}
    env = kind(20, **keywords)
    env.reset(seed=6)
    play(env, 17)
    state = copy.deepcopy(env.state_dict())
    rest = play(env, 30, seed=1)
    other = kind(20, **keywords)
    other.load_state_dict(state)
    assert_same(rest, play(other, 30, seed=1))
    back = env
    back.load_state_dict(state)
    assert_same(rest, play(back, 30, seed=1))


def test_state_of_other_games_is_refused() -> None:
    env = CageVectorEnv(3)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="saved games have"):
        CageVectorEnv(3, rules="competition").load_state_dict(env.state_dict())
    with pytest.raises(ConfigError, match=r"expected \[4"):
        CageVectorEnv(4).load_state_dict(env.state_dict())
    opened = CardiffVectorEnv(3, opening=True)
    opened.reset(seed=0)
    with pytest.raises(ConfigError, match="opening"):
        CardiffVectorEnv(3).load_state_dict(opened.state_dict())


def test_reset_mask_restarts_only_the_masked_games() -> None:
    env = CageVectorEnv(8, red="Meander", horizon=50)
    env.reset(seed=1)
    before = play(env, 20)[-1][0]
    mask = np.arange(8) % 2 == 0
    observations, _ = env.reset(options={"reset_mask": mask})
    assert_same(observations[~mask], before[~mask])
    assert not observations[mask].any()
    assert_same(env.games["steps"], np.where(mask, 0, 20).astype(np.int32))
    *_, truncated, infos = play(env, 30)[-1]
    assert_same(truncated, ~mask)
    assert_same(infos["_final_obs"], ~mask)


def test_seed_for_each_game() -> None:
    env = CageVectorEnv(2)
    env.reset(seed=[4, 9])
    for i, seed in enumerate((4, 9)):
        one = CageVectorEnv(1)
        one.reset(seed=seed)
        assert_same(one.games["random"][0], env.games["random"][i])


def test_output_arrays_are_new_unless_copy_is_false() -> None:
    fresh, reused = CageVectorEnv(4), CageVectorEnv(4, copy=False)
    for env, same in ((fresh, False), (reused, True)):
        env.reset(seed=0)
        first, second = play(env, 2)
        for a, b in zip(first[:4], second[:4], strict=True):
            assert np.shares_memory(a, b) == same


def test_mixed_draws_a_red_for_each_episode() -> None:
    env = CageVectorEnv(20_000, red="mixed", horizon=1)
    _, infos = env.reset(seed=0)
    assert abs((infos["red"] == 0).mean() - 0.5) < 0.02
    assert (infos["red"] < 2).all()
    env = CageVectorEnv(20_000, red="mixed", red_weights={"Sleep": 3, "Meander": 1}, horizon=1)
    _, infos = env.reset(seed=0)
    assert abs((infos["red"] == 2).mean() - 0.75) < 0.02
    assert (infos["red"] > 0).all()
    *_, later = env.step(np.zeros(20_000, np.int64))
    assert_same(later["final_info"]["red"], infos["red"])
    assert (later["red"] != infos["red"]).any()


def test_infos_have_the_true_state_on_request() -> None:
    env = CageVectorEnv(5, red="B_line", true_state=True)
    _, infos = env.reset(seed=0)
    truth = infos["true_state"]
    assert (truth["access"] == 2).sum() == 5  # User0 of each game
    assert truth["access"].shape == truth["removable"].shape == (5, 13)
    _, _, _, _, infos = play(env, 5)[-1]
    assert (infos["true_state"]["steps"] == 5).all()
    assert "true_state" not in CageVectorEnv(5).reset(seed=0)[1]


def test_made_through_gymnasium() -> None:
    keywords = {"red": "Meander", "green": "GreenAgent", "rules": "competition", "table": "cardiff", "horizon": 30}
    many = gymnasium.make_vec("cage2/Scenario2-v0", num_envs=3, **keywords)
    assert isinstance(many.unwrapped, CageVectorEnv)
    assert many.single_action_space.n == 145
    assert many.single_observation_space.shape == (52,)
    one = gymnasium.make("cage2/Scenario2-v0", **keywords)
    assert isinstance(one.unwrapped, CageEnv)
    cardiff = gymnasium.make_vec("cage2/Scenario2Cardiff-v0", num_envs=3, opening=True)
    assert isinstance(cardiff.unwrapped, CardiffVectorEnv)
    assert cardiff.single_action_space.n == 36
    assert cardiff.single_observation_space.shape == (62,)
    assert isinstance(gymnasium.make("cage2/Scenario2Cardiff-v0").unwrapped, CardiffEnv)


@pytest.mark.parametrize("name", ["cage2/Scenario2-v0", "cage2/Scenario2Cardiff-v0"])
@pytest.mark.filterwarnings("ignore:.*")
def test_single_game_passes_the_gymnasium_checks(name: str) -> None:
    check_env(gymnasium.make(name, horizon=20).unwrapped)


def test_single_game_is_truncated_at_its_horizon_and_saves_its_state() -> None:
    env = gymnasium.make("cage2/Scenario2-v0", red="mixed", horizon=12).unwrapped
    assert isinstance(env, CageEnv)
    _, info = env.reset(seed=3)
    assert info["red"] in (0, 1)
    ends = [env.step(i)[3] for i in range(5)]
    state = env.state_dict()
    rest = [env.step(i) for i in range(7)]
    env.load_state_dict(state)
    assert_same(rest, [env.step(i) for i in range(7)])
    assert [*ends, *(step[3] for step in rest)] == [False] * 11 + [True]


@pytest.mark.parametrize(
    ("red", "action", "words"), [("Sleep", 116, "Tomcat"), ("B_line", 0, "Discover User: succeeds")]
)
def test_text_has_all_hosts_in_80_columns(
    red: str, action: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env = CageEnv(red=red, render_mode="ansi")
    env.reset(seed=0)
    env.step(action)
    text = env.render()
    assert isinstance(text, str)
    assert f"{red} · step 1" in text
    assert words in text
    assert all(host in text for host in HOSTS)
    assert max(map(len, text.splitlines())) <= 80
    printing = CageEnv(red=red, render_mode="human")
    printing.reset(seed=0)
    printing.step(action)
    assert printing.render() is None
    assert capsys.readouterr().out.strip() == text


def _play_in_child(env: CageVectorEnv, results: Any) -> None:
    results.put(float(play(env, 3)[-1][1].sum()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_threads_survive_a_fork() -> None:
    env = CageVectorEnv(64, threads=2)
    env.reset(seed=0)
    play(env, 2)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_play_in_child, args=(env, results))
    child.start()
    assert results.get(timeout=60) == float(play(env, 3)[-1][1].sum())
    child.join(timeout=60)
    env.close()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"red": "Bline"}, "no red agent 'Bline'; did you mean 'B_line'"),
        ({"green": "Green"}, "no green agent 'Green'; did you mean 'GreenAgent'"),
        ({"rules": "finale"}, "no rule set 'finale'; did you mean 'final'"),
        ({"table": "cardif"}, "no table 'cardif'; did you mean 'cardiff'"),
    ],
)
def test_unknown_names_get_a_suggestion(keywords: dict[str, Any], message: str) -> None:
    for kind in (CageVectorEnv, CardiffVectorEnv, CageEnv):
        with pytest.raises(UnknownName, match=message):
            kind(**keywords)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of steps above 0"),
        ({"horizon": -5}, "got -5"),
        ({"horizon": 2.5}, "got 2.5"),
        ({"num_envs": 0}, "num_envs must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"red_weights": (1, 1, 1)}, "red_weights needs red='mixed'"),
        ({"red": "mixed", "red_weights": (1, 1)}, "3 numbers"),
        ({"red": "mixed", "red_weights": (1, -1, 1)}, "none below 0"),
        ({"red": "mixed", "red_weights": {"Bline": 1}}, "no red agent 'Bline'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        CageVectorEnv(**keywords)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 145, 0], "action 145 of game 1 is outside 0..144"),
        ([-1, 0, 0], "action -1 of game 0 is outside 0..144"),
        ([0, 0], r"actions are int64 \[2\]; expected integers \[3\]"),
        ([0.0, 1.0, 2.0], "actions are float64"),
    ],
)
def test_bad_actions_are_refused_and_change_nothing(actions: list[Any], message: str) -> None:
    env = CageVectorEnv(3)
    env.reset(seed=0)
    before = env.state_dict()
    with pytest.raises(ConfigError, match=message):
        env.step(actions)
    assert_same(before, env.state_dict())


def test_other_mistakes_are_refused_in_one_line() -> None:
    env = CageVectorEnv(3)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0, 0, 0])
    with pytest.raises(ConfigError, match="never reset"):
        env.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ConfigError, match=r"expected bool \[3\]"):
        env.reset(options={"reset_mask": np.array([1, 0, 1])})
    with pytest.raises(ConfigError, match="got 2 seeds for 3 games"):
        env.reset(seed=[1, 2])


def episodes(env: CageVectorEnv, number: int) -> list[list[list[float]]]:
    """For each game its first episodes, as the rewards of their steps; actions depend on the step of the episode."""
    env.reset(seed=8)
    at, next_step = np.zeros(env.num_envs, np.int64), env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    ended, found = np.zeros(env.num_envs, np.bool_), [[[]] for _ in range(env.num_envs)]
    while min(map(len, found)) <= number:
        _, rewards, _, truncated, _ = env.step(at * 7 % env.num_actions)
        for game in range(env.num_envs):
            if next_step and ended[game]:
                assert rewards[game] == 0.0
                at[game] = 0
                continue
            found[game][-1].append(float(rewards[game]))
            at[game] += 1
            if truncated[game]:
                found[game].append([])
                at[game] = 0
        ended = truncated.copy()
    return [of_game[:number] for of_game in found]


@pytest.mark.parametrize("kind", [*KINDS, cage2.ExpertVectorEnv])
def test_episodes_are_the_same_with_reset_in_the_next_step(kind: type[CageVectorEnv]) -> None:
    same, later = (kind(5, red="mixed", horizon=12, autoreset_mode=mode) for mode in ("SameStep", "NextStep"))
    expected = episodes(same, 4)
    assert episodes(later, 4) == expected
    assert {len(episode) for of_game in expected for episode in of_game} == {12}
    assert sum(map(sum, expected[0])) < 0


def test_reset_in_the_next_step_returns_the_last_observation_then_the_first() -> None:
    env = CageVectorEnv(2, red="B_line", horizon=6, autoreset_mode=AutoresetMode.NEXT_STEP)
    env.reset(seed=0)
    for step in range(1, 15):
        observations, rewards, terminated, truncated, infos = env.step([0, 0])
        assert (truncated == (step in (6, 13))).all()
        assert not terminated.any()
        assert "final_obs" not in infos
        if step in (7, 14):
            assert not observations.any()
            assert not rewards.any()
        if step == 6:
            assert observations.any()


def test_saved_state_keeps_the_way_of_reset() -> None:
    one, other = (CageVectorEnv(3, horizon=4, autoreset_mode="NextStep") for _ in range(2))
    one.reset(seed=5)
    play(one, 4)  # all have ended and are reset in the next step
    other.load_state_dict(one.state_dict())
    assert_same(play(one, 6, seed=2), play(other, 6, seed=2))
    with pytest.raises(ConfigError, match="NextStep"):
        CageVectorEnv(3, horizon=4).load_state_dict(one.state_dict())
    for mode in ("Disabled", AutoresetMode.DISABLED, None, "next"):
        with pytest.raises(ConfigError, match="expected SameStep or NextStep"):
            CageVectorEnv(3, autoreset_mode=mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["FlattenObservation", "NormalizeObservation", "NormalizeReward", "DtypeObservation"])
def test_gymnasium_wrappers_of_vector_environments_take_it(name: str) -> None:
    keywords = {"dtype": np.float32} if name == "DtypeObservation" else {}
    envs = gymnasium.make_vec("cage2/Scenario2-v0", num_envs=3, horizon=4, autoreset_mode="NextStep")
    wrapped = getattr(gymnasium.wrappers.vector, name)(
        gymnasium.wrappers.vector.RecordEpisodeStatistics(envs), **keywords
    )
    wrapped.reset(seed=0)
    found = [wrapped.step(np.zeros(3, np.int64))[-1] for _ in range(10)]
    assert [step for step, infos in enumerate(found, 1) if "episode" in infos] == [4, 9]
    assert found[3]["episode"]["l"].tolist() == [4, 4, 4]
