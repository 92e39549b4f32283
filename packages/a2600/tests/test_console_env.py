"""The vector environment: equal to ale-py's, the same for any number of threads, restorable, strict on input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

import a2600
from a2600.env import AtariVectorEnv
from a2600.errors import A2600Error, InexactGame, RomError, StateError, UnknownGame
from a2600.games import all_games


def ale_env(game: str, num_envs: int, **options: Any) -> Any:
    from ale_py.vector_env import AtariVectorEnv as AleVectorEnv

    return type("AleEnv", (AleVectorEnv,), {"metadata": {}})(game, num_envs, num_threads=1, **options)


@pytest.mark.parametrize(
    ("game", "options", "steps"),
    [
        ("breakout", {}, 300),
        ("breakout", {"autoreset_mode": "SameStep", "reward_clipping": False, "episodic_life": True}, 300),
        ("breakout", {"life_loss_info": True}, 200),
        ("breakout", {"max_num_frames_per_episode": 300, "autoreset_mode": "SameStep"}, 200),
        ("alien", {"repeat_action_probability": 0.25}, 400),
        ("alien", {"use_fire_reset": False, "noop_max": 5, "maxpool": False}, 60),
        ("alien", {"grayscale": False, "frameskip": 3}, 60),
        ("alien", {"img_height": 100, "img_width": 64, "stack_num": 2}, 60),
        ("pong", {"full_action_space": True}, 100),
        ("name_this_game", {}, 60),
    ],
)
def test_steps_equal_ales_vector_environment(game: str, options: dict[str, Any], steps: int) -> None:
    theirs, mine = ale_env(game, 3, **options), AtariVectorEnv(game, 3, num_threads=1, **options)
    assert mine.single_observation_space == theirs.single_observation_space
    assert mine.action_space == theirs.action_space
    (obs, infos), (found, found_infos) = theirs.reset(seed=11), mine.reset(seed=11)
    rng, ended, dones = np.random.default_rng(0), 0, np.zeros(3, np.bool_)
    for step in range(steps):
        np.testing.assert_array_equal(found, obs)
        for name, values in infos.items():
            rows = slice(None) if name != "final_obs" else dones
            np.testing.assert_array_equal(found_infos[name][rows], values[rows], err_msg=f"{name} at step {step}")
        if step % 3 == 0:
            actions = rng.integers(0, mine.single_action_space.n, 3)
        obs, *signals, infos = theirs.step(actions)
        found, *found_signals, found_infos = mine.step(actions)
        for expected, signal in zip(signals, found_signals, strict=True):
            np.testing.assert_array_equal(signal, expected)
            assert signal.dtype == expected.dtype
        dones = signals[1] | signals[2]
        ended += dones.sum()
    assert ended or game != "breakout"


def rollout(env: AtariVectorEnv, steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [env.step(rng.integers(0, env.single_action_space.n, env.num_envs))[:4] for _ in range(steps)]


def assert_equal(first: list[Any], second: list[Any]) -> None:
    for mine, other in zip(first, second, strict=True):
        for left, right in zip(mine, other, strict=True):
            np.testing.assert_array_equal(left, right)


def test_threads_do_not_change_results() -> None:
    runs = []
    for threads in (1, 3):
        env = AtariVectorEnv("breakout", 5, num_threads=threads, repeat_action_probability=0.25)
        env.reset(seed=4)
        runs.append(rollout(env, 150))
        env.close()
    assert_equal(*runs)


def test_load_state_continues_as_if_nothing_had_happened() -> None:
    env, other = (AtariVectorEnv("seaquest", 2, repeat_action_probability=0.25) for _ in range(2))
    env.reset(seed=1)
    rollout(env, 60)
    state = env.save_state()
    obs = other.load_state(state)
    np.testing.assert_array_equal(obs, env.obs)
    expected = rollout(env, 200, seed=5)
    assert_equal(rollout(other, 200, seed=5), expected)
    other.load_state(state)
    assert_equal(rollout(other, 200, seed=5), expected)


def test_send_and_recv_step_slots_independently() -> None:
    whole, parts = (AtariVectorEnv("pong", 4, num_threads=2) for _ in range(2))
    for env in (whole, parts):
        env.reset(seed=2)
    counts, history = np.zeros(4, int), [[] for _ in range(4)]
    actions = np.random.default_rng(0).integers(0, 6, (50, 4))
    parts.send_slots(np.arange(4), actions[0])
    while (counts < 50).any():
        slots = parts.recv_slots()
        for slot in slots:
            history[slot].append(parts.obs[slot].copy())
        counts[slots] += 1
        ready = slots[counts[slots] < 50]
        if len(ready):
            parts.send_slots(ready, actions[counts[ready], ready])
    for step in range(50):
        obs = whole.step(actions[step])[0]
        np.testing.assert_array_equal(obs, np.stack([history[slot][step] for slot in range(4)]))


def test_recv_returns_batches() -> None:
    env = AtariVectorEnv("pong", 4, num_threads=2, batch_size=2)
    env.reset(seed=2)
    env.send(np.zeros(4, int))
    seen = []
    for _ in range(10):
        obs, rewards, *_, infos = env.recv()
        assert obs.shape == (2, 4, 84, 84)
        assert rewards.shape == (2,)
        seen += infos["env_id"].tolist()
        env.send(np.zeros(2, int))
    assert set(seen) == {0, 1, 2, 3}


def test_bound_arrays_receive_results() -> None:
    env = AtariVectorEnv("pong", 2)
    obs, final, results = (np.zeros_like(array) for array in (env.obs, env.final_obs, env.results))
    env.bind(obs, final, results)
    env.reset(seed=1)
    assert obs[:, -1].any()
    assert not obs[:, 0].any()
    with pytest.raises(A2600Error, match="obs must be contiguous uint8"):
        env.bind(obs[:, :2], final, results)


def test_gymnasium_makes_registered_games() -> None:
    env = gymnasium.make_vec("a2600/MsPacman-v0", num_envs=2, num_threads=1)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    obs, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
    assert obs.shape == (2, 4, 84, 84)
    assert rewards.dtype == np.int32
    assert terminated.dtype == truncated.dtype == np.bool_
    env.close()
    assert len([name for name in gymnasium.registry if name.startswith("a2600/")]) == 49


def test_screens_in_colour_equal_ales() -> None:
    import ale_py

    env = AtariVectorEnv("enduro", 1, grayscale=False, noop_max=1, use_fire_reset=False, render_mode="rgb_array")
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path("enduro"))
    ale.reset_game()
    env.reset(seed=0)
    for action in [1, 3, 4, 2, 0] * 10:
        env.step(np.array([action]))
        for _ in range(4):
            ale.act(env.game.actions[action])
        np.testing.assert_array_equal(env.render()[0], ale.getScreenRGB())
        np.testing.assert_array_equal(env.rams()[0], ale.getRAM())


def test_disabled_autoreset_waits_for_reset() -> None:
    env = AtariVectorEnv("breakout", 2, autoreset_mode="Disabled", max_num_frames_per_episode=40)
    env.reset(seed=0)
    for _ in range(10):
        truncated = env.step(np.array([1, 1]))[3]
    assert truncated.all()
    before = env.obs[1].copy()
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["episode_frame_number"][0] < 40 <= infos["episode_frame_number"][1]
    np.testing.assert_array_equal(env.obs[1], before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"continuous": True}, "continuous actions are not supported"),
        ({"thread_affinity_offset": 0}, "thread_affinity_offset is not supported"),
        ({"num_envs": 0}, "num_envs must be a whole number from 1"),
        ({"num_threads": -1}, "num_threads must be a whole number from 0"),
        ({"frameskip": 0}, "frameskip must be"),
        ({"stack_num": 0}, "stack_num must be"),
        ({"img_height": 300}, "img_height must be a whole number from 1 to 210"),
        ({"repeat_action_probability": 1.0}, "repeat_action_probability must be in"),
        ({"render_mode": "human"}, "render_mode must be 'rgb_array' or None"),
    ],
)
def test_bad_options_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(A2600Error, match=message) as caught:
        AtariVectorEnv("pong", **{"num_envs": 1, **options})
    assert "\n" not in str(caught.value)


def test_unknown_games_name_the_closest() -> None:
    with pytest.raises(UnknownGame, match=r"no game 'Brekout'.*did you mean 'breakout'"):
        a2600.make_vec("Brekout")


def test_actions_outside_the_set_are_refused() -> None:
    env = AtariVectorEnv("pong", 2)
    with pytest.raises(ResetNeeded, match="pong has not started"):
        env.step(np.zeros(2, int))
    env.reset(seed=0)
    with pytest.raises(A2600Error, match=r"actions must be in \[0, 6\), got 0 to 6"):
        env.step(np.array([0, 6]))
    with pytest.raises(A2600Error, match=r"actions must be int\[2\]"):
        env.step(np.zeros(3, int))
    with pytest.raises(A2600Error, match="xla is not supported"):
        env.xla()
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="pong was closed"):
        env.step(np.zeros(2, int))


def test_an_environment_takes_one_command_at_a_time() -> None:
    env = AtariVectorEnv("pong", 3, num_threads=2)
    env.reset(seed=0)
    env.send(np.zeros(3, int))
    with pytest.raises(A2600Error, match=r"a step of one of the slots \[0, 1, 2\] is in progress"):
        env.send(np.zeros(3, int))
    with pytest.raises(A2600Error, match="3 steps of send\\(\\) are in progress"):
        env.step(np.zeros(3, int))
    env.recv()
    with pytest.raises(A2600Error, match=r"slots must differ, got \[1, 1\]"):
        env.send_slots(np.array([1, 1]), np.zeros(2, int))
    with pytest.raises(A2600Error, match=r"slots must be numbers in \[0, 3\), got \[3\]"):
        env.send_slots(np.array([3]), np.zeros(1, int))
    env.step(np.zeros(3, int))


def test_inexact_games_are_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    inexact = {**all_games(), "pong": replace(all_games()["pong"], inexact="screens of level 3")}
    monkeypatch.setattr("a2600.games.all_games", lambda: inexact)
    with pytest.raises(InexactGame, match=r"pong differs from ale-py \(screens of level 3\); pass allow_inexact=True"):
        AtariVectorEnv("pong")
    AtariVectorEnv("pong", allow_inexact=True).reset(seed=0)


def test_random_damage_of_a_state_never_stops_the_process() -> None:
    env = AtariVectorEnv("hero", 1, img_height=10, img_width=10)
    env.reset(seed=0)
    good, rng = np.frombuffer(env.save_state(), np.uint8), np.random.default_rng(0)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(1000):
        bad = good.copy()
        places = 32 + rng.integers(0, 16_000, rng.integers(1, 40))  # the console's numbers; pictures follow
        bad[places] = rng.choice([0, 255, 128, rng.integers(256)], len(places))
        try:
            env.load_state(bad.tobytes())
        except StateError:
            outcomes["refused"] += 1
        else:
            outcomes["loaded"] += 1
            rollout(env, 1)
    assert min(outcomes.values()) > 50


def test_damaged_states_are_refused_and_change_nothing() -> None:
    env, other = AtariVectorEnv("pong", 2), AtariVectorEnv("breakout", 2)
    env.reset(seed=0)
    other.reset(seed=0)
    state = env.save_state()
    expected = env.obs.copy()
    with pytest.raises(StateError, match="not a state of a2600"):
        env.load_state(b"")
    with pytest.raises(StateError, match="of another version"):
        env.load_state(b"a2600-0\n" + state[8:])
    with pytest.raises(StateError, match="load it into the same number of environments"):
        env.load_state(state[:-1])
    with pytest.raises(StateError, match="damaged or of another game than breakout"):
        other.load_state(state)
    damaged = bytearray(state)
    size = (len(state) - 32) // 2
    damaged[32 + size : 32 + size + 8] = bytes(8)
    with pytest.raises(StateError, match="environment 1 is damaged"):
        env.load_state(bytes(damaged))
    np.testing.assert_array_equal(env.obs, expected)
    assert env.save_state() == state


def test_wrong_roms_are_refused(tmp_path: Any) -> None:
    with pytest.raises(RomError, match=r"cannot read .*expected the 2048 bytes of pong"):
        AtariVectorEnv("pong", rom_folder=tmp_path)
    (tmp_path / "pong.bin").write_bytes(bytes(100))
    with pytest.raises(RomError, match="has 100 bytes, expected 2048"):
        AtariVectorEnv("pong", rom_folder=tmp_path)
    (tmp_path / "pong.bin").write_bytes(bytes(2048))
    with pytest.raises(RomError, match=r"has the MD5 sum .*, expected"):
        AtariVectorEnv("pong", rom_folder=tmp_path)
