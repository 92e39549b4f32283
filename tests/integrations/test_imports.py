"""Imports of the integrations: what they load, and what a wrong import says."""

from __future__ import annotations

import subprocess
import sys

import pytest

import optimist
import optimist.integrations

WRONG = {
    "from optimist import OPRCallback": "OPRCallback",
    "from optimist import OPRPPO": "OPRPPO, OPRA2C",
    "from optimist import with_opr": "with_opr",
    "import optimist; optimist.sb3": "OPRCallback",
    "import optimist.sb3": "OPRCallback",
    "from optimist.sb3 import OPRCallback": "OPRCallback",
    "import optimist.stable_baselines3": "OPRCallback",
    "from optimist.integrations.stable_baselines3 import OPRCallback": "OPRCallback",
    "from optimist.tianshou import OPRPPO": "OPRPPO, OPRA2C",
    "from optimist.rllib import with_opr": "with_opr",
}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_importing_the_integrations_loads_no_other_library():
    result = run(
        "import sys, optimist.integrations; print({'stable_baselines3', 'tianshou', 'ray'} & set(sys.modules))"
    )
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("line", WRONG)
def test_a_guessed_import_names_the_right_one(line):
    with pytest.raises(ImportError, match=f"; write: from optimist.integrations import {WRONG[line]}$"):
        exec(line, {})


@pytest.mark.parametrize("names", sorted(set(WRONG.values())))
def test_the_import_that_is_named_works(names):
    exec(f"from optimist.integrations import {names}", {})


@pytest.mark.parametrize("line", ["import optimist.nothing", "import optimist.core.sb3"])
def test_other_modules_are_missing_as_usual(line):
    with pytest.raises(ModuleNotFoundError, match="No module named 'optimist"):
        exec(line, {})


def test_an_unknown_name_of_the_integrations_is_an_attribute_error_that_lists_the_names():
    with pytest.raises(AttributeError, match="no attribute 'OPRSAC'; it has OPRA2C, OPRPPO, OPRCallback, OPRLearner, "):
        getattr(optimist.integrations, "OPRSAC")  # noqa: B009
    assert set(optimist.integrations.__all__) <= set(dir(optimist.integrations))
    assert not hasattr(optimist, "OPRSAC")


def test_without_the_library_the_error_names_the_extra():
    result = run("import sys; sys.modules['stable_baselines3'] = None\nfrom optimist.integrations import OPRCallback")
    assert result.returncode != 0
    assert "MissingExtra: the Stable-Baselines3 integration needs stable-baselines3" in result.stderr.splitlines()[-1]
    assert "[sb3]'" in result.stderr.splitlines()[-1]
