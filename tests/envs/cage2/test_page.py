"""The documentation page: its Python runs as written, its actions are the real ones."""

from __future__ import annotations

import re
from pathlib import Path

import gymnasium
import numpy as np

from optimist.envs.cage2.actions import ACTION_NAMES
from optimist.envs.cage2.network import DECOYS, HOSTS

PAGE = (Path(__file__).parents[3] / "docs" / "envs" / "cage2.md").read_text()


def test_snippets_run_as_written() -> None:
    plain, cardiff, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict = {}
    exec(plain, names)
    assert names["observations"].shape == (4096, 52)
    envs = gymnasium.make_vec("optimist/CAGE2Cardiff-v0", num_envs=4, red="Meander", opening=True)
    envs.reset(seed=0)
    for _ in range(3):
        observations, *_ = envs.step(np.zeros(4, np.int64))
    names = {"observations": observations, "envs": envs, "outputs": np.full(4, 27), "probabilities": np.ones((4, 36))}
    exec(cardiff, names)
    assert names["attacker"].tolist() == [1] * 4
    assert names["outputs"].tolist() == [27] * 4


def test_listed_actions_are_the_real_ones() -> None:
    verbs = dict(re.findall(r"(\w+)\s+(\d+)\+h", PAGE))
    decoys = {decoy.name for decoy in DECOYS}
    assert decoys < set(verbs)
    for verb, offset in verbs.items():
        name = f"Decoy{verb}" if verb in decoys else verb
        assert ACTION_NAMES[int(offset) + 12] == f"{name} {HOSTS[12]}"
