"""The pages of CAGE 2: their Python runs as written, and the actions they list exist."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from cage2.cli import main
from cage2.rules.scenario import ACTION_NAMES, DECOYS, HOSTS

PAGES = Path(__file__).parents[3] / "docs" / "environments"
GAME, TRAINING, SCORE = ((PAGES / f"{name}.md").read_text() for name in ("cage2", "cage2_training", "score_your_agent"))


def snippets(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_snippets_run_as_written() -> None:
    (plain,), (cardiff, _) = snippets(GAME), snippets(TRAINING)
    names: dict = {}
    exec(plain, names)
    assert names["observations"].shape == (4096, 52)
    envs = gymnasium.make_vec("cage2/Scenario2Cardiff-v0", num_envs=4, red="Meander", opening=True)
    envs.reset(seed=0)
    for _ in range(3):
        observations, *_ = envs.step(np.zeros(4, np.int64))
    names = {"observations": observations, "envs": envs, "outputs": np.full(4, 27), "probabilities": np.ones((4, 36))}
    exec(cardiff, names)
    assert names["attacker"].tolist() == [1] * 4
    assert names["outputs"].tolist() == [27] * 4


def test_listed_actions_equal_the_action_names() -> None:
    verbs = dict(re.findall(r"(\w+)\s+(\d+)\+h", GAME))
    decoys = {decoy.name for decoy in DECOYS}
    assert decoys < set(verbs)
    for verb, offset in verbs.items():
        name = f"Decoy{verb}" if verb in decoys else verb
        assert ACTION_NAMES[int(offset) + 12] == f"{name} {HOSTS[12]}"


def test_agent_of_the_page_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, _, there = snippets(SCORE)
    assert len(mine.strip().splitlines()) <= 10
    (tmp_path / "mine.py").write_text(mine)
    assert main(["score", str(tmp_path / "mine.py"), "--episodes", "5"]) == 0
    assert "This agent would take place" in capsys.readouterr().out
    names: dict = {}
    exec(there, names)
    assert 0 <= names["action"] < 145


def test_model_of_stable_baselines3_is_scored_as_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    code = snippets(SCORE)[1].replace("learn(10_000)", "learn(10)").replace("episodes=10", "episodes=1")
    exec(code.replace('"MlpPolicy", ', '"MlpPolicy", n_steps=8, batch_size=8, n_epochs=1, env='), {})
    assert "total" in capsys.readouterr().out


def test_commands_of_the_pages_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    known = capsys.readouterr().out
    named = set(re.findall(r"^cage2 (\w+)", GAME + TRAINING + SCORE, re.MULTILINE))
    assert named == {"score", "watch", "duel", "replay", "export", "verify", "bench"}
    assert all(command in known for command in named)
