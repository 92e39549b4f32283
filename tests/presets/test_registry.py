"""The registry of presets: names, descriptions, suggestions, and presets of other packages."""

import os
import subprocess
import sys
from itertools import groupby

import pytest

from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.config.toml import from_toml, to_toml
from optimist.errors import ConfigError, UnknownName
from optimist.presets import Method, all_presets, get_preset, register


@pytest.mark.parametrize("known", all_presets(), ids=lambda known: known.name)
def test_every_preset_builds_is_restored_from_toml_and_has_a_description(known):
    config = known()
    assert config.preset == known.name
    assert from_toml(RunConfig, to_toml(config)) == config
    assert known.description.endswith(".")
    assert known.build.__doc__
    assert all(parameter.meaning for parameter in known.parameters)


def test_unknown_names_get_a_suggestion():
    with pytest.raises(UnknownName, match="no preset 'deepsea/orp'; did you mean 'deepsea/opr'"):
        get_preset("deepsea/orp")
    with pytest.raises(UnknownName, match="no parameter of preset deepsea/opr 'sise'; did you mean 'size'"):
        get_preset("deepsea/opr")(sise=3)


def test_presets_of_a_family_are_listed_together():
    families = [family for family, _ in groupby(all_presets(), key=lambda known: known.name.partition("/")[0])]
    assert len(set(families)) == len(families)


def test_a_name_is_registered_once():
    with pytest.raises(ConfigError, match="preset deepsea/opr is registered twice; choose another name"):
        register("deepsea", {"opr": Method("A second one.", PPOConfig())}, lambda method: RunConfig())


PACKAGE = """
from typing import Annotated
from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.presets import Method, register

def maze(method: Method, rows: Annotated[int, "Rows of the maze."] = 5) -> RunConfig:
    return RunConfig(env=EnvConfig(id="maze/Maze-v0", kwargs={"rows": rows}), algorithm=method.algorithm)

register("maze", {"ppo": Method("PPO on a maze.", PPOConfig(epochs=7), settings={"env": {"num_envs": 3}})}, maze)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package that declares an entry point for presets on the path of a new Python process."""

    def install(module: str) -> None:
        (tmp_path / "maze_presets.py").write_text(module)
        (tmp_path / "maze-1.0.dist-info").mkdir()
        (tmp_path / "maze-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: maze\nVersion: 1.0\n")
        (tmp_path / "maze-1.0.dist-info" / "entry_points.txt").write_text("[optimist.presets]\nmaze = maze_presets\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    return install


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def test_presets_of_another_package_are_found_by_their_entry_point(install):
    install(PACKAGE)
    show = (
        "from optimist.presets import *; c = get_preset('maze/ppo')(rows=4); print(c.preset, c.env, c.algorithm.epochs)"
    )
    assert python(show) == f"maze/ppo {EnvConfig(id='maze/Maze-v0', num_envs=3, kwargs={'rows': 4})} 7"
    listed = python("from optimist.cli.main import main; main(['presets']); main(['presets', 'maze'])")
    assert "\nmaze  1 preset.\n  ppo\n" in listed
    assert "  maze/ppo  PPO on a maze.\n" in listed


def test_a_package_whose_presets_cannot_be_loaded_is_named(install):
    install("import absent_package")
    assert python("from optimist.cli.main import main; main(['presets'])") == (
        "optimist: error: presets of maze_presets cannot be loaded (ModuleNotFoundError: No module named "
        "'absent_package'); update or uninstall the package that declares them"
    )


def test_presets_import_neither_torch_nor_gymnasium():
    code = (
        "import sys, optimist.presets; print([name for name in ('torch', 'tyro', 'gymnasium') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
