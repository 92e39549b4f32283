"""Agents of users: every form is played, and every mistake is one clear line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cage2
from cage2 import CyborgAgent
from cage2.agents.shipped import load_agent
from cage2.agents.user import UserAgent, load
from cage2.cli import main
from cage2.errors import AgentError, UnknownName
from cage2.scoring import play

CELL: dict[str, Any] = {
    "red": "B_line", "horizon": 30, "rules": "competition", "table": "official", "greedy": True, "seed": 4
}  # fmt: skip


def restore_alarmed(observation: Any) -> int:
    """The shipped agent `react`, as a function for one game."""
    alarmed = [h for h in range(13) if observation[4 * h + 3] == 1 and h != 8]
    return 132 + alarmed[0] if alarmed else 1


class WithGetAction:
    def get_action(self, observation: Any, action_space: Any) -> int:
        assert action_space == 145
        return restore_alarmed(observation)


class WithAct:
    def act(self, observation: Any) -> np.int64:
        return np.int64(restore_alarmed(observation))


class WithPredict:
    def predict(self, observation: Any, state: Any = None, deterministic: bool = False) -> tuple[Any, Any]:
        assert deterministic
        return np.array(restore_alarmed(observation)), (state or 0) + 1


class Batched:
    batched = True

    def __call__(self, observations: Any) -> list[int]:
        return [restore_alarmed(row) for row in observations]


@pytest.mark.parametrize("agent", [restore_alarmed, WithGetAction, WithAct(), WithPredict(), Batched()])
def test_every_form_of_an_agent_plays_the_same_games(agent: Any) -> None:
    expected = play(load_agent("react", "competition"), 40, **CELL)
    assert (play(load(agent, "competition"), 40, **CELL) == expected).all()
    assert expected.std() > 0


def test_agent_with_memory_is_reset_before_each_game() -> None:
    class Remembers:
        games = 0

        def reset(self) -> None:
            self.steps = 0

        def act(self, observation: Any) -> int:
            self.steps += 1
            assert self.steps <= 30
            return 0

        def end_episode(self) -> None:
            assert self.steps == 30
            self.games += 1

    agent = Remembers()
    play(load(agent, "final"), 5, **CELL)
    assert agent.games == 5


def test_score_gives_nine_cells_and_a_rank() -> None:
    score = cage2.score(WithAct(), episodes=3)
    assert (score.rules, score.mode, len(score.cells)) == ("competition", "agent", 9)
    assert score.rank is not None
    assert "would take place" in str(score)
    assert cage2.score(WithAct(), episodes=3, rules="final").rank is None


def test_the_agent_cannot_change_the_game_through_its_observation() -> None:
    def vandal(observation: Any) -> int:
        observation[:] = 1
        return 0

    assert (play(load(vandal, "final"), 3, **CELL) == play(load_agent("sleep", "final"), 3, **CELL)).all()


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (lambda observation: 145, "returned 145; expected an action from 0 to 144"),
        (lambda observation: -1, "returned -1; expected an action from 0 to 144"),
        (lambda observation: 1.5, r"returned 1.5 \(float\); expected a whole number from 0 to 144"),
        (lambda observation: None, r"returned None \(NoneType\)"),
        (lambda observation: True, r"returned True \(bool\)"),
        (lambda observation: "0", r"returned '0' \(str\)"),
        (lambda observation: np.array([3]), r"returned an array int64 \[1\]"),
        (lambda observation: np.array(3.0), r"returned an array float64 \[\]"),
        (lambda observation: [][0], "raised IndexError: list index out of range, test_user.py line"),
        (lambda: 0, "raised TypeError"),
        (lambda observation: sys.exit("done"), "raised SystemExit: done, test_user.py line"),
        (lambda observation: np.zeros(62) @ observation, r"raised ValueError.*; it was given an observation \[52\]"),
    ],
)
def test_bad_answer_is_one_line_with_cell_game_and_step(agent: Any, message: str) -> None:
    with pytest.raises(AgentError, match=message) as error:
        play(load(agent, "final"), 2, **CELL)
    assert "(cell B_line 30, game 1, step 1)" in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_batched_answer_is_one_line() -> None:
    class Wrong(Batched):
        def __call__(self, observations: Any) -> list[int]:
            return self.answer  # type: ignore[attr-defined, no-any-return]

    for answer, message in (
        ([0], "expected 2 whole numbers"), ([0, 145], "returned 145 for game 1"), ([0.0, 1.0], "whole numbers")
    ):  # fmt: skip
        agent = Wrong()
        agent.answer = answer  # type: ignore[attr-defined]
        with pytest.raises(AgentError, match=message):
            play(load(agent, "final"), 2, **CELL)


def test_agent_for_other_observations_is_refused() -> None:
    class Other(WithPredict):
        observation_space = np.zeros(62)

    with pytest.raises(AgentError, match=r"takes observations \[62\]; expected \[52\]"):
        load(Other(), "final")


GOOD = "class Agent:\n    def get_action(self, observation, action_space):\n        return 0\n"
FILES = {
    "one.py": GOOD,
    "function.py": "import numpy as np\ndef policy(observation):\n    return 0\n",
    "object.py": GOOD.replace("class Agent", "class _Agent") + "agent = _Agent()\n",
    "derived.py": GOOD.replace("class Agent", "class Base") + "class Agent(Base):\n    pass\n",
    "two.py": GOOD + GOOD.replace("Agent", "Other"),
    "none.py": "import numpy\nx = 1\n",
    "broken.py": "def f(:\n",
    "raises.py": "import nowhere_at_all\n",
    "exits.py": "raise SystemExit(3)\n",
    "needs.py": "class Agent:\n    def __init__(self, size): pass\n    def act(self, observation): return 0\n",
    "number.py": "agent = 5\n",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / f"cage2agent_{name}").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["one.py", "one.py:Agent", "function.py", "object.py", "derived.py", "two.py:Other"])
def test_agent_of_a_file_is_found(files: Path, name: str) -> None:
    agent = load(f"cage2agent_{name}", "final")
    assert isinstance(agent, UserAgent)
    assert agent.action(np.zeros(52, np.int8)) == 0


def test_agent_of_a_module_is_found(files: Path) -> None:
    assert isinstance(load("cage2agent_one:Agent", "final"), UserAgent)
    assert str(files) not in sys.path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two.py", "has 2 agents: Agent, Other; name one, as in cage2agent_two.py:Agent"),
        ("none.py", "has no agent; expected a function, or a class or object with get_action, act or predict"),
        ("broken.py", "cannot be imported: SyntaxError"),
        (
            "raises.py",
            "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all', cage2agent_raises.py",
        ),
        ("exits.py", "cannot be imported: SystemExit: 3"),
        ("needs.py", "cannot be made without arguments: TypeError"),
        ("number.py:agent", "is int; expected a function, or an object"),
        ("one.py:Agnt", "has no 'Agnt'; it has Agent"),
        ("absent.py", "no file cage2agent_absent.py"),
    ],
)
def test_mistake_of_a_file_is_one_line(
    files: Path, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", f"cage2agent_{name}", "--episodes", "1"]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("cage2: error: ")
    assert message in lines[0]


def test_sampled_is_refused_for_an_agent_that_chooses_itself(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "cage2agent_one.py", "--sampled", "--episodes", "1"]) == 2
    assert "--sampled needs a shipped agent or a run; cage2agent_one.py chooses its own" in capsys.readouterr().err


def test_other_names_are_refused(files: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'best'"):
        load("bst", "final")
    with pytest.raises(AgentError, match=r"cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'$"):
        load("nowhere_at_all:Agent", "final")
    with pytest.raises(AgentError, match="is a folder; trained runs are scored by `optimist score"):
        load(str(files), "final")


def test_any_agent_has_the_interface_of_the_original() -> None:
    for name in ("best", restore_alarmed):
        there = CyborgAgent(name, rules="competition")
        for seed in (3, 4):
            game = cage2.play_game(name, red="Meander", seed=seed, rules="competition", horizon=40)
            bits = [game.steps[0].bits, *(step.bits for step in game.steps[1:])]
            actions = [there.get_action(np.array(row, np.float32), 145) for row in bits[:-1]]
            assert actions == [step.action for step in game.steps[1:]]
            there.end_episode()
    with pytest.raises(AgentError, match="has 51 numbers; expected 52"):
        CyborgAgent("sleep").get_action(np.zeros(51), None)
