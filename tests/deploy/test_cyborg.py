"""Agents exported to CybORG act as in optimist, without it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cage2.deploy.export import rules_of
from cage2.vector_env import CageVectorEnv
from optimist.deploy.cage2_runs import export_cyborg, load_defender
from optimist.errors import ConfigError, RunFolderError

PLAY = """
import json, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("optimist", "torch", "numba", "gymnasium", "CybORG"):
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Blocked())
sys.path.insert(0, sys.argv[1])
import numpy as np
from agent import BlueAgent
observations = np.load(sys.argv[2])  # [games, steps, 52]
agent = BlueAgent()
played = []
for game in observations:
    agent.set_initial_values(None, game[0])
    played.append([agent.get_action(list(map(int, row)), None) for row in game])
    agent.end_episode()
print(json.dumps(played))
"""


def recorded(defender, red, games=40, horizon=50, seed=5):
    """Observations [games, horizon, 52] and the defender's actions [games, horizon]."""
    env = CageVectorEnv(games, red=red, rules="competition", table=defender.table, horizon=horizon + 1)
    observations, _ = env.reset(seed=seed)
    defender.reset(games)
    seen, actions = [], []
    for _ in range(horizon):
        seen.append(observations)
        actions.append(defender.act(observations, greedy=True, generator=np.random.default_rng(0)))
        observations, *_ = env.step(actions[-1])
    env.close()
    return np.stack(seen, 1), np.stack(actions, 1)


@pytest.mark.parametrize(
    ("names", "red"),
    [
        (["plain"], "Meander"),
        (["mixed"], "mixed"),
        (["b_line", "meander"], "mixed"),
        (["b_line", "meander"], "Sleep"),
        (["b_line", "meander_tanh"], "mixed"),
        (["meander_tanh", "b_line"], "mixed"),
        (["sleepy"], "mixed"),
        (["expert"], "mixed"),
        (["expert"], "Sleep"),
        (["expert_unmasked"], "mixed"),
        (["expert_mask_not_obeyed"], "mixed"),
        (["best"], "mixed"),
    ],
)
def test_exported_agent_acts_the_same_without_optimist(runs, names, red, tmp_path):
    paths = [runs.get(name, name) for name in names]
    files = export_cyborg(paths, tmp_path / "agent", "competition" if names == ["best"] else None)
    assert sorted(file.name for file in files) == ["agent.py", "weights.npz"]
    observations, actions = recorded(load_defender(paths, "competition"), red)
    np.save(tmp_path / "seen.npy", observations)
    command = [sys.executable, "-c", PLAY, str(tmp_path / "agent"), str(tmp_path / "seen.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (np.array(json.loads(done.stdout)) == actions).all()
    assert len(np.unique(actions)) > 1 or red == "Sleep"


def test_export_states_the_rules_of_its_training(runs, tmp_path):
    for number, (name, rules) in enumerate((("plain", None), ("mixed", "competition"), ("best", None))):
        export_cyborg([runs.get(name, name)], tmp_path / str(number), rules)
    found = [rules_of(tmp_path / str(number)) for number in range(3)]
    assert found == [["final"], ["competition"], ["final"]]
    with pytest.raises(ConfigError, match="was trained under the rules final; leave --rules competition out"):
        export_cyborg([runs["plain"]], tmp_path / "x", "competition")


def test_normalised_observations_are_refused(runs, tmp_path):
    with pytest.raises(ConfigError, match="the CybORG export does not support normalize_observations"):
        export_cyborg([runs["plain_normalized"]], tmp_path / "x")


def test_exported_agent_imports_no_package_but_numpy(runs, tmp_path):
    for name in ("plain", "mixed", "expert"):
        export_cyborg([runs[name]], tmp_path / name)
        source = (tmp_path / name / "agent.py").read_text()
        imports = {
            line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))
        }
        assert imports <= {"__future__", "collections", "copy", "json", "numpy", "os", "types", "typing"}


def test_sampling_agent_is_fixed_by_its_seed(runs, tmp_path, monkeypatch):
    export_cyborg([runs["mixed"]], tmp_path / "agent")
    monkeypatch.syspath_prepend(str(tmp_path / "agent"))
    monkeypatch.delitem(sys.modules, "agent", raising=False)
    from agent import BlueAgent

    def actions(seed):
        agent = BlueAgent(greedy=False, seed=seed)
        return [agent.get_action(np.zeros(52)) for _ in range(30)]

    assert actions(1) == actions(1)
    assert actions(1) != actions(2)
    assert actions(1)[:3] == [51, 116, 55]
    monkeypatch.delitem(sys.modules, "agent")


def test_snippet_of_the_docs_runs_as_written(runs, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "environments" / "cage2_training.md").read_text()
    snippet = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    export_cyborg([runs["b_line"], runs["meander"]], tmp_path / "agent")
    monkeypatch.syspath_prepend(str(tmp_path / "agent"))
    monkeypatch.delitem(sys.modules, "agent", raising=False)
    names = {"observation": np.zeros(52), "action_space": list(range(145))}
    exec(snippet, names)
    assert names["action"] == 51
    monkeypatch.delitem(sys.modules, "agent")


def test_folder_with_content_is_refused_and_unchanged(runs, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="is not empty"):
        export_cyborg([runs["plain"]], tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(RunFolderError, match="cannot write"):
        export_cyborg([runs["plain"]], tmp_path / "notes.txt")
