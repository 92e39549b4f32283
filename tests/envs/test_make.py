"""make_envs: which vectorisation comes out, how the run's seed reaches the task, and each error in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.envs.registration import WrapperSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from optimist.config import EnvConfig
from optimist.envs import can_save_state, make_envs
from optimist.envs.tabular.deepsea import DeepSeaVectorEnv, deepsea_map
from optimist.envs.tabular.key_door import KeyDoorTreasureVectorEnv
from optimist.errors import ConfigError, MissingExtra, OptimistError, UnknownName

DEEPSEA, KEY_DOOR = "optimist/DeepSea-v0", "optimist/KeyDoorTreasure-v0"
TWO = spaces.Discrete(2)


class SpacesEnv(gymnasium.Env):
    """An environment with the spaces that a test gives."""

    def __init__(self, observation: Any, action: Any) -> None:
        self.observation_space, self.action_space = observation, action
        self.closed = False

    def close(self) -> None:
        self.closed = True


class SilentVectorEnv(VectorEnv):
    """A vector environment that does not state its autoreset mode."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = self.single_action_space = spaces.Discrete(2)


@pytest.fixture
def registered() -> Iterator[Any]:
    """Register environments for one test."""
    ids = []

    def register(env_id: str, **kwargs: Any) -> str:
        gymnasium.register(env_id, **kwargs)
        ids.append(env_id)
        return env_id

    yield register
    for env_id in ids:
        del gymnasium.registry[env_id]


@pytest.mark.parametrize(
    ("config", "kind", "mode"),
    [
        (EnvConfig(id=DEEPSEA, num_envs=3), DeepSeaVectorEnv, AutoresetMode.SAME_STEP),
        (EnvConfig(id=KEY_DOOR, num_envs=3), KeyDoorTreasureVectorEnv, AutoresetMode.SAME_STEP),
        (EnvConfig(id="CartPole-v1", num_envs=3), CartPoleVectorEnv, AutoresetMode.NEXT_STEP),
        (EnvConfig(id="CartPole-v1", num_envs=3, vectorization="sync"), SyncVectorEnv, AutoresetMode.SAME_STEP),
        (EnvConfig(id="Acrobot-v1", num_envs=3), SyncVectorEnv, AutoresetMode.SAME_STEP),
        (EnvConfig(id="Pendulum-v1", num_envs=2, vectorization="async"), AsyncVectorEnv, AutoresetMode.SAME_STEP),
        (EnvConfig(id="optimist.envs:" + DEEPSEA, num_envs=1), DeepSeaVectorEnv, AutoresetMode.SAME_STEP),
    ],
)
def test_vectorisation_and_autoreset_mode(config: EnvConfig, kind: type, mode: AutoresetMode) -> None:
    envs = make_envs(config, seed=0)
    assert type(envs) is kind
    assert envs.num_envs == config.num_envs
    assert envs.metadata["autoreset_mode"] is mode
    observations, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(observations)
    envs.step(envs.action_space.sample())
    envs.close()


def test_keywords_reach_the_environment() -> None:
    assert make_envs(EnvConfig(id=DEEPSEA, kwargs={"size": 5})).num_states == 25
    assert make_envs(EnvConfig(id=KEY_DOOR, kwargs={"height": 3, "apple": True})).single_observation_space.n == 108
    assert make_envs(EnvConfig(id="CartPole-v1", kwargs={"max_episode_steps": 7})).max_episode_steps == 7


def test_seed_fixes_the_map_and_resets_with_other_seeds_keep_it() -> None:
    training = make_envs(EnvConfig(id=DEEPSEA, num_envs=4), seed=3)
    evaluation = make_envs(EnvConfig(id=DEEPSEA, num_envs=2), seed=3)
    training.reset(seed=100)
    evaluation.reset(seed=200)
    assert np.array_equal(training.right_is_one, deepsea_map(3, 12))
    assert np.array_equal(evaluation.right_is_one, deepsea_map(3, 12))


def test_map_seed_in_the_config_wins_over_the_seed() -> None:
    envs = make_envs(EnvConfig(id=DEEPSEA, kwargs={"map_seed": 8}), seed=3)
    assert np.array_equal(envs.right_is_one, deepsea_map(8, 12))


def test_separate_processes_or_copies_share_the_map_too() -> None:
    envs = make_envs(EnvConfig(id=DEEPSEA, num_envs=3, vectorization="sync"), seed=3)
    envs.reset(seed=50)
    for env in envs.envs:
        assert np.array_equal(env.unwrapped.game.right_is_one, deepsea_map(3, 12))


def test_who_can_save_its_state() -> None:
    assert can_save_state(make_envs(EnvConfig(id=DEEPSEA)))
    assert can_save_state(RecordEpisodeStatistics(make_envs(EnvConfig(id=KEY_DOOR))))
    assert not can_save_state(make_envs(EnvConfig(id="CartPole-v1")))
    assert not can_save_state(make_envs(EnvConfig(id=KEY_DOOR, vectorization="sync")))


def test_spec_with_wrappers_is_not_given_to_its_vector_version(registered: Any) -> None:
    limit = WrapperSpec("TimeLimit", "gymnasium.wrappers:TimeLimit", {"max_episode_steps": 3})
    env_id = registered(
        "test/Wrapped-v0",
        entry_point="optimist.envs.tabular.deepsea:DeepSeaEnv",
        vector_entry_point="optimist.envs.tabular.deepsea:DeepSeaVectorEnv",
        additional_wrappers=(limit,),
    )
    envs = make_envs(EnvConfig(id=env_id, num_envs=1))
    assert isinstance(envs, SyncVectorEnv)
    envs.reset(seed=0)
    truncated = [envs.step(np.array([0]))[3][0] for _ in range(3)]
    assert truncated == [False, False, True]


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("CartPole", "CartPole-v1"),
        ("cartpole-v1", "CartPole-v1"),
        ("LunarLander-v2", "LunarLander-v3"),
        ("DeepSea", DEEPSEA),
        ("optimist/DeepSee-v0", DEEPSEA),
        ("KeyDoor-v0", KEY_DOOR),
    ],
)
def test_unknown_id_gets_a_suggestion(asked: str, suggested: str) -> None:
    with pytest.raises(UnknownName) as caught:
        make_envs(EnvConfig(id=asked))
    assert str(caught.value) == f"no environment '{asked}'; did you mean '{suggested}'?"


@pytest.mark.parametrize(
    ("asked", "game"),
    [
        ("ALE/Pong-v5", "Pong"),
        ("ALE/Brekout-v5", "Breakout"),
        ("PongNoFrameskip-v4", "Pong"),
        ("MsPacmanDeterministic-v4", "MsPacman"),
        ("Breakout-ram-v4", "Breakout"),
        ("ALE/Qqq-v5", "NAME (`optimist games` lists them)"),
    ],
)
def test_atari_id_of_another_package_is_answered_with_the_presets_of_atari(asked: str, game: str) -> None:
    code = (  # in a process of its own, as ale-py registers its ids where it is imported
        "from optimist.envs.make import find_spec\nfrom optimist.errors import UnknownName\n"
        f"try: find_spec({asked!r})\nexcept UnknownName as error: print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert shown.stdout.strip() == (
        f"no environment '{asked}'; Atari games have presets of their own: optimist train atari/opr --game {game}"
    )


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, which Python does not search."""
    (tmp_path / "corridor_of_mine.py").write_text("import gymnasium\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    return "corridor_of_mine"


def test_module_in_this_folder_that_python_does_not_find_is_explained(package: str) -> None:
    with pytest.raises(MissingExtra) as caught:
        make_envs(EnvConfig(id=f"{package}:MyEnv-v0"))
    assert str(caught.value) == (
        f"cannot import '{package}' of environment '{package}:MyEnv-v0': No module named '{package}'; it is in this "
        "folder, where Python does not look for modules: install it with pip install -e ., or run PYTHONPATH=. "
        "optimist …"
    )


def test_module_that_is_nowhere_or_fails_itself_is_explained(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MissingExtra, match="install its package, or run PYTHONPATH=FOLDER optimist … with the folder"):
        make_envs(EnvConfig(id="no_module_of_mine:MyEnv-v0"))
    (tmp_path / "broken_of_mine.py").write_text("import absent_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtra, match=r"'broken_of_mine:MyEnv-v0': No module named 'absent_package'$"):
        make_envs(EnvConfig(id="broken_of_mine:MyEnv-v0"))
    with pytest.raises(
        UnknownName, match=rf"'{package}' is imported and registers no such id; expected gymnasium\.reg"
    ):
        make_envs(EnvConfig(id=f"{package}:Qqqqqq-v0"))


@pytest.mark.parametrize("asked", ["qqqqqqq", "", "NoSuch/Zzyzx-v5", ":", "a b/c"])
def test_id_like_no_other_gets_advice(asked: str) -> None:
    with pytest.raises(UnknownName, match="expected a registered Gymnasium id"):
        make_envs(EnvConfig(id=asked))


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (EnvConfig(id="nomodule:Foo-v0"), MissingExtra, "cannot import 'nomodule'"),
        (EnvConfig(id=".x:Foo-v0"), MissingExtra, "cannot import '.x'"),
        (
            EnvConfig(kwargs={"sise": 3}),
            UnknownName,
            "^no keyword of CartPole-v1 'sise'; known: max_episode_steps, render_mode, sutton_barto_reward$",
        ),
        (EnvConfig(kwargs={"sise": 3}, vectorization="sync"), UnknownName, "'sise'; known: render_mode, sutton_"),
        (EnvConfig(kwargs={"num_envs": 3}), ConfigError, "multiple values for keyword argument 'num_envs'"),
        (EnvConfig(id=DEEPSEA, kwargs={"size": 1}), ConfigError, "^DeepSea's size must be an integer of at least 2"),
        (EnvConfig(id=DEEPSEA, kwargs={"size": 1}, vectorization="async"), ConfigError, "DeepSea's size must be"),
        (EnvConfig(id=DEEPSEA, kwargs={"grid": 1}), UnknownName, "'grid'; known: map_seed, "),
        (EnvConfig(id="FrozenLake-v1", kwargs={"map_name": "9x9"}), ConfigError, "KeyError '9x9'"),
        (EnvConfig(frame_stack=4), ConfigError, "env.frame_stack is 4 but CartPole-v1 observes Box"),
    ],
)
def test_bad_configs_are_named_in_one_line(config: EnvConfig, error: type[OptimistError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make_envs(config, seed=0)
    assert "\n" not in str(caught.value)


def takes_size(size: int = 3) -> SpacesEnv:
    return SpacesEnv(TWO, TWO)


def passes_on(size: int = 3, **kwargs: Any) -> SpacesEnv:
    return takes_size(**kwargs)


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_misspelt_keyword_gets_a_suggestion(vectorization: str) -> None:
    with pytest.raises(UnknownName) as caught:
        make_envs(EnvConfig(id=DEEPSEA, kwargs={"sise": 4}, vectorization=vectorization), seed=0)
    assert str(caught.value) == f"no keyword of {DEEPSEA} 'sise'; did you mean 'size'?"


@pytest.mark.parametrize("maker", [takes_size, passes_on, partial(takes_size)])
def test_misspelt_keyword_of_a_function_gets_a_suggestion_too(registered: Any, maker: Any) -> None:
    env_id = registered("test/Made-v0", entry_point=maker)
    with pytest.raises(UnknownName, match="no keyword of test/Made-v0 'sise'; did you mean 'size'"):
        make_envs(EnvConfig(id=env_id, kwargs={"sise": 4}))
    known = "size and those it passes on" if maker is passes_on else "size"
    with pytest.raises(UnknownName, match=f"^no keyword of test/Made-v0 'zoom'; known: {known}$"):
        make_envs(EnvConfig(id=env_id, kwargs={"zoom": 4}))


@pytest.mark.parametrize("given", [{}, {"sise": 4}])
def test_keyword_refused_further_within_gets_no_suggestion(registered: Any, given: dict[str, int]) -> None:
    def never_given(size: int = 3) -> SpacesEnv:
        return takes_size(sise=size)

    def takes_it(size: int = 3, sise: int = 4) -> SpacesEnv:
        return takes_size(sise=sise)

    env_id = registered("test/Broken-v0", entry_point=takes_it if given else never_given)
    with pytest.raises(ConfigError, match=r"cannot make .* takes_size\(\) got an unexpected keyword argument 'sise'"):
        make_envs(EnvConfig(id=env_id, kwargs=given))


@pytest.mark.parametrize(
    ("module", "env_id", "message"),
    [
        ("Box2D", "LunarLander-v3", "LunarLander-v3 needs Box2D: pip install '.[classic]'"),
        ("jax", "phys2d/CartPole-v1", "phys2d/CartPole-v1 needs jax: pip install jax"),
        ("mujoco", "Ant-v5", "Ant-v5 needs MuJoCo: pip install '.[mujoco]'"),
    ],
)
def test_missing_package_names_the_command(module: str, env_id: str, message: str) -> None:
    # In a process of its own, as the package may already be loaded here.
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from optimist.config import EnvConfig\n"
        "from optimist.envs import make_envs\n"
        "from optimist.errors import MissingExtra\n"
        f"try: make_envs(EnvConfig(id={env_id!r}))\nexcept MissingExtra as error: print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert shown.stdout.startswith(message), shown.stderr
    assert shown.stdout.count("\n") == 1


def test_error_of_the_environments_own_goes_through_as_it_is(registered: Any) -> None:
    def entry_point() -> SpacesEnv:
        raise MissingExtra("this needs that: pip install that")

    env_id = registered("test/Needy-v0", entry_point=entry_point)
    with pytest.raises(MissingExtra, match=r"^this needs that: pip install that$"):
        make_envs(EnvConfig(id=env_id))


def test_vector_version_that_hides_its_autoreset_mode_is_refused(registered: Any) -> None:
    env_id = registered("test/Silent-v0", vector_entry_point=SilentVectorEnv)
    with (
        pytest.raises(ConfigError, match="does not state its autoreset mode"),
        pytest.warns(UserWarning, match="Autoreset"),
    ):
        make_envs(EnvConfig(id=env_id))
    with pytest.raises(ConfigError, match="only a vector version"):
        make_envs(EnvConfig(id=env_id, vectorization="sync"))


def test_environments_with_a_wrong_frame_stack_are_closed(registered: Any) -> None:
    made: list[SpacesEnv] = []

    def entry_point() -> SpacesEnv:
        made.append(SpacesEnv(spaces.Box(0, 255, (3, 84, 84), np.uint8), TWO))
        return made[-1]

    env_id = registered("test/Spaces-v0", entry_point=entry_point, disable_env_checker=True)
    with pytest.raises(ConfigError, match=r"frame_stack is 4 .* expected images \[4, height, width\]"):
        make_envs(EnvConfig(id=env_id, num_envs=2, frame_stack=4))
    assert [env.closed for env in made] == [True, True]
    make_envs(EnvConfig(id=env_id, num_envs=2, frame_stack=3))


def test_importing_the_environments_loads_neither_torch_nor_numba() -> None:
    heavy = {"torch", "numba", "optimist.envs.tabular.deepsea"}
    code = f"import sys, optimist.envs; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout.strip() == "[]"
