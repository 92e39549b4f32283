"""The expert interface: memory of scripted games, masks, and equality of environment and defender."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from cage2.errors import ConfigError, ShapeMismatch
from cage2.expert.actions import (
    DECOY_FLAT,
    DECOY_LISTS,
    EXPERT_ACTION_NAMES,
    FIRST_DECOY,
    FIRST_REMOVE,
    NUM_EXPERT_ACTIONS,
    PLAIN_FLAT,
    SLOTS,
)
from cage2.expert.env import ExpertDefender, ExpertVectorEnv, score_weights, take_actions
from cage2.expert.features import NUM_ACTOR_BITS, NUM_FEATURES, NUM_TRUTH, feature_names
from cage2.rules.scenario import ACTION_NAMES, HOSTS, YES
from cage2.vector_env import CageVectorEnv

NAMES = feature_names()
SCAN, EXPLOIT = (1, 0), (1, 1)
USER, PRIVILEGED = (0, 1), (1, 1)


class Script:
    """One game given step by step: blue's action, the activity after it, and the statuses in the table."""

    def __init__(self) -> None:
        self.defender = ExpertDefender(lambda rows: np.zeros((len(rows), NUM_EXPERT_ACTIONS), np.float32))
        self.defender.reset(1)
        self.status = np.zeros(52, np.int8)
        self.row = self.defender.inputs(np.zeros((1, 52), np.int8))[0]

    def step(
        self, action: str = "Sleep", activity: dict[str, tuple[int, int]] | None = None, **status: tuple[int, int]
    ) -> str:
        """Play a step and return the name of its flat action."""
        flat = np.zeros(1, np.int64)
        take_actions(self.defender.memories, np.array([EXPERT_ACTION_NAMES.index(action)]), flat)
        for host, bits in status.items():
            at = 4 * HOSTS.index(host)
            self.status[at + 2 : at + 4] = bits
        bits = self.status.copy()
        for host, pair in (activity or {}).items():
            bits[4 * HOSTS.index(host) : 4 * HOSTS.index(host) + 2] = pair
        self.row = self.defender.inputs(bits[None])[0]
        return ACTION_NAMES[flat[0]]

    def bit(self, name: str) -> int:
        return int(self.row[NAMES.index(name)])

    def count(self, prefix: str) -> int:
        return sum(int(self.row[i]) for i, name in enumerate(NAMES) if name.startswith(prefix))


def random_allowed(rows: Any, rng: np.random.Generator) -> np.ndarray:
    allowed = rows[:, NUM_FEATURES:NUM_ACTOR_BITS]
    return np.argmax(allowed * rng.uniform(0.01, 1.0, allowed.shape), axis=1)


def test_each_bit_has_its_own_name() -> None:
    assert len(NAMES) == NUM_ACTOR_BITS == len(set(NAMES))


def test_new_game_shows_nothing_but_time_and_mask() -> None:
    script = Script()
    assert [NAMES[i] for i in np.flatnonzero(script.row[:NUM_FEATURES])] == []
    allowed = {EXPERT_ACTION_NAMES[i] for i in np.flatnonzero(script.row[NUM_FEATURES:])}
    assert allowed == {"Sleep"} | {f"Decoy {HOSTS[h]}" for h, decoys in zip(SLOTS, DECOY_LISTS, strict=True) if decoys}


def test_scan_alarm_and_remove_are_remembered_with_their_ages() -> None:
    script = Script()
    script.step(activity={"User1": SCAN})
    assert script.count("User1: age of scan") == 6
    assert script.bit("User1: to be analysed")
    assert not script.bit("allowed: Remove User1")
    script.step("Decoy Enterprise0", {"User1": EXPLOIT}, User1=USER)
    assert script.bit("User1: exploited")
    assert script.bit("User1: status 1")
    assert script.bit("User1: age of alarm ≤ 1")
    assert not script.bit("User1: age of scan ≤ 1")
    assert script.bit("User1: age of scan ≤ 2")
    assert script.bit("allowed: Remove User1")
    script.step("Remove User1")
    assert not script.bit("User1: exploited")
    assert script.bit("User1: removed since alarm")
    assert script.bit("User1: alarm since Restore")
    assert not script.bit("User1: alarm since Remove or Restore")
    assert not script.bit("allowed: Remove User1")
    assert script.bit("1 steps ago: blue: Remove")
    assert script.bit("1 steps ago: blue on User1")
    assert script.bit("2 steps ago: event on User1")
    assert script.bit("2 steps ago: event was an alarm")
    assert script.bit("3 steps ago: event on User1")
    assert not script.bit("3 steps ago: event was an alarm")


def test_alarm_in_the_step_of_a_remove_comes_after_it() -> None:
    script = Script()
    script.step(activity={"User2": EXPLOIT})
    script.step("Remove User2", {"User2": EXPLOIT})
    assert script.bit("allowed: Remove User2")
    assert not script.bit("User2: removed since alarm")
    assert script.count("User2: alarms since Restore") == 2


def test_restore_clears_alarms_decoys_and_files_but_is_remembered() -> None:
    script = Script()
    script.step("Decoy User2", {"User2": SCAN})
    script.step("Decoy User2", {"User2": EXPLOIT})
    script.step("Analyse User2", User2=PRIVILEGED)
    assert script.bit("User2: file found")
    assert not script.bit("allowed: Analyse User2")
    assert script.count("User2: decoys now") == 2
    assert script.count("User2: decoys at first scan") == 1
    script.step("Restore User2", User2=(0, 0))
    assert script.bit("User2: restored")
    assert not any(script.bit(f"User2: {state}") for state in ("file found", "alarm since Restore", "decoys now ≥ 1"))
    assert script.count("User2: decoys at any scan") == 1  # red remembers those
    assert script.bit("User2: alarms ≥ 1")
    assert not script.bit("allowed: Restore User2")
    script.step(activity={"User2": SCAN})
    assert script.bit("allowed: Restore User2")
    assert script.bit("allowed: Analyse User2")


def test_analyse_without_a_file_waits_for_the_next_event() -> None:
    script = Script()
    script.step(activity={"User4": SCAN})
    script.step("Analyse User4")
    assert not script.bit("allowed: Analyse User4")
    assert not script.bit("User4: file found")
    script.step("Sleep", {"User4": SCAN})
    assert script.bit("allowed: Analyse User4")


def test_event_in_the_step_of_an_analyse_is_not_yet_analysed() -> None:
    script = Script()
    script.step(activity={"User4": SCAN})
    script.step("Analyse User4", {"User4": EXPLOIT})
    assert script.bit("allowed: Analyse User4")


def test_decoys_are_placed_in_order_and_then_the_action_is_a_sleep() -> None:
    script = Script()
    played = [script.step("Decoy Enterprise0") for _ in range(4)]
    assert played == ["DecoyHarakaSMPT Enterprise0", "DecoyTomcat Enterprise0", "DecoyApache Enterprise0", "Sleep"]
    assert not script.bit("allowed: Decoy Enterprise0")


@pytest.mark.parametrize(
    ("hosts", "attacker"),
    [
        (["", "User1", "User1"], "B_line"),
        (["", "User3", ""], "B_line"),  # BlueKeep on User3 fails without a trace
        (["", "User1", "User2"], "Meander"),
        (["", "User0"], "Meander"),
        (["", "User1"], "unknown"),
    ],
)
def test_attacker_is_identified_within_three_steps(hosts: list[str], attacker: str) -> None:
    script = Script()
    for host in hosts:
        script.step(activity={host: SCAN} if host else None)
    shown = [name for name in NAMES if name.startswith("attacker") and script.bit(name)]
    assert shown == [f"attacker: {attacker}"]


@pytest.mark.parametrize("rules", ["final", "competition"])
def test_attacker_is_recognised_in_every_game(rules: str) -> None:
    env = ExpertVectorEnv(600, red="mixed", red_weights=[1, 1, 1], rules=rules)
    rows, infos = env.reset(seed=3)
    rng = np.random.default_rng(3)
    for _ in range(3):
        rows, *_, infos = env.step(random_allowed(rows, rng))
    at = NAMES.index("attacker: unknown")
    said = np.select([rows[:, at + 1] == 1, rows[:, at + 2] == 1], [0, 1], 2)
    np.testing.assert_array_equal(said, infos["red"])
    assert not rows[:, at].any()


def test_observation_has_time_and_steps_left_to_the_challenge_horizons() -> None:
    script = Script()
    for _ in range(28):
        script.step()
    assert script.count("steps ≥") == 5
    assert script.count("steps left") == 5  # 2 left to 30: ≤ 2, 3, 5, 8, 12
    for _ in range(2):
        script.step()
    assert script.count("steps left") == 0
    for _ in range(69):
        script.step()
    assert script.count("steps left") == 6


@pytest.mark.parametrize("red", ["B_line", "Meander", "Sleep"])
@pytest.mark.parametrize("rules", ["final", "competition"])
def test_defender_computes_the_observations_of_the_environment(red: str, rules: str) -> None:
    number = 50
    expert = ExpertVectorEnv(number, red=red, rules=rules, horizon=101)
    plain = CageVectorEnv(number, red=red, rules=rules, horizon=101)
    rows, _ = expert.reset(seed=5)
    bits, _ = plain.reset(seed=5)
    defender = ExpertDefender(lambda rows: np.zeros((len(rows), NUM_EXPERT_ACTIONS), np.float32))
    defender.reset(number)
    rng = np.random.default_rng(2)
    flat = np.zeros(number, np.int64)
    for _ in range(100):
        np.testing.assert_array_equal(defender.inputs(bits), rows[:, :NUM_ACTOR_BITS])
        actions = random_allowed(rows, rng)
        take_actions(defender.memories, actions, flat)
        rows, rewards, *_ = expert.step(actions)
        bits, plain_rewards, *_ = plain.step(flat)
        np.testing.assert_array_equal(rewards, plain_rewards)


def test_defender_takes_the_most_probable_allowed_action() -> None:
    logits = np.linspace(0.0, 1.0, NUM_EXPERT_ACTIONS, dtype=np.float32)
    logits[EXPERT_ACTION_NAMES.index("Restore User1")] = 9.0
    defender = ExpertDefender(lambda rows: np.tile(logits, (len(rows), 1)))
    defender.reset(2)
    played = defender.act(np.zeros((2, 52), np.int8), greedy=True, generator=np.random.default_rng(0))
    assert [ACTION_NAMES[action] for action in played] == ["DecoySSHD User3"] * 2  # Restore is not allowed yet
    with pytest.raises(ShapeMismatch, match="expected \\[2, 52\\]"):
        defender.act(np.zeros((3, 52), np.int8), greedy=True, generator=np.random.default_rng(0))


@pytest.mark.parametrize("red", ["B_line", "Meander"])
def test_mask_forbids_no_useful_remove_and_allows_only_decoys_that_are_accepted(red: str) -> None:
    env = ExpertVectorEnv(300, red=red, horizon=100)
    rows, _ = env.reset(seed=8)
    rng = np.random.default_rng(8)
    for _ in range(99):
        allowed = rows[:, NUM_FEATURES:NUM_ACTOR_BITS]
        assert allowed[:, 0].all()
        removable = env.games["flagged"][:, list(SLOTS)] > 0
        assert not (removable & (allowed[:, FIRST_REMOVE : FIRST_REMOVE + len(SLOTS)] == 0)).any()
        actions = random_allowed(rows, rng)
        rows, *_ = env.step(actions)
        assert (env.games["blue_success"][actions >= FIRST_DECOY] == YES).all()


def test_while_red_sleeps_an_allowed_action_never_costs() -> None:
    env = ExpertVectorEnv(200, red="Sleep", horizon=100)
    rows, _ = env.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(100):
        rows, rewards, *_ = env.step(random_allowed(rows, rng))
        assert not rewards.any()


def test_without_mask_everything_is_allowed_and_played() -> None:
    env = ExpertVectorEnv(1, red="Sleep", mask=False)
    rows, _ = env.reset(seed=0)
    assert rows[0, NUM_FEATURES:NUM_ACTOR_BITS].all()
    _, rewards, *_ = env.step([EXPERT_ACTION_NAMES.index("Restore User3")])
    assert rewards[0] == -1.0


def test_return_is_the_mean_over_the_scored_horizons() -> None:
    weighted = ExpertVectorEnv(64, red="mixed", scored_at=[3, 5, 10], horizon=12)
    plain = ExpertVectorEnv(64, red="mixed", horizon=12)
    rows, _ = weighted.reset(seed=4)
    plain.reset(seed=4)
    rng = np.random.default_rng(4)
    total, rewards = np.zeros(64), []
    for _ in range(12):
        actions = random_allowed(rows, rng)
        rows, reward, *_ = weighted.step(actions)
        total += reward
        rewards.append(plain.step(actions)[1])
    means = np.mean([np.sum(rewards[:horizon], axis=0) for horizon in (3, 5, 10)], axis=0)
    assert np.abs(means).max() > 0
    np.testing.assert_allclose(total, means, atol=1e-5)


@pytest.mark.parametrize("wrong", [[], [0], [30.5], [[30]]])
def test_horizons_that_cannot_be_scored_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="scored_at"):
        score_weights(wrong)


def test_restored_games_continue_exactly() -> None:
    env = ExpertVectorEnv(20, red="mixed")
    rows, _ = env.reset(seed=6)
    rng = np.random.default_rng(6)
    for _ in range(30):
        rows, *_ = env.step(random_allowed(rows, rng))
    saved, actions = env.state_dict(), random_allowed(rows, rng)
    expected, *_ = env.step(actions)
    other = ExpertVectorEnv(20, red="mixed")
    other.reset(seed=0)
    other.load_state_dict(saved)
    np.testing.assert_array_equal(other.step(actions)[0], expected)
    with pytest.raises(ConfigError, match="mask"):
        ExpertVectorEnv(20, red="mixed", mask=False).load_state_dict(saved)


def test_final_observation_is_of_the_old_episode_and_the_returned_one_of_the_new() -> None:
    env = ExpertVectorEnv(4, red="B_line", horizon=3)
    first, _ = env.reset(seed=0)
    for _ in range(3):
        rows, _, _, truncated, infos = env.step(np.zeros(4, np.int64))
    assert truncated.all()
    np.testing.assert_array_equal(rows[:, :NUM_ACTOR_BITS], first[:, :NUM_ACTOR_BITS])
    assert infos["final_obs"][:, NAMES.index("attacker: B_line")].all()


def test_registered_with_gymnasium() -> None:
    import cage2  # noqa: F401  registers

    env = gymnasium.make("cage2/Scenario2Expert-v0", red="Meander", horizon=4)
    row, _ = env.reset(seed=0)
    assert row.shape == (NUM_ACTOR_BITS + NUM_TRUTH,)
    many = gymnasium.make_vec("cage2/Scenario2Expert-v0", num_envs=3, red="Meander", rules="competition")
    assert many.reset(seed=0)[0].shape == (3, NUM_ACTOR_BITS + NUM_TRUTH)


def test_decoy_tables_agree_with_the_flat_actions() -> None:
    for slot, decoys in enumerate(DECOY_LISTS):
        names = [ACTION_NAMES[action] for action in DECOY_FLAT[slot][: len(decoys)]]
        assert names == [f"Decoy{decoy} {HOSTS[SLOTS[slot]]}" for decoy in decoys]
    assert [ACTION_NAMES[action] for action in PLAIN_FLAT] == list(EXPERT_ACTION_NAMES[:FIRST_DECOY])
