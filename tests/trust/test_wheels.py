"""Wheels are reproducible: folder, umask and time do not reach them."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("src", "pyproject.toml", "README.md", "LICENSE", "packages/cage2")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "tests")


def build(folder, umask):
    """File name → hash of the wheels built in this folder."""
    for part in PARTS:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=LEFT_OUT, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(ROOT / part, folder / part)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", ".", "./packages/cage2", "-w", "wheels"]
    subprocess.run(command, cwd=folder, check=True, timeout=300, umask=umask, env=os.environ | {"PYTHONPATH": ""})
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "wheels").iterdir()}


@pytest.mark.slow
def test_a_wheel_built_twice_is_the_same_file(tmp_path):
    before = os.umask(0o077)
    try:
        first = build(tmp_path / "one", 0o077)
    finally:
        os.umask(before)
    assert first == build(tmp_path / "another" / "folder", 0o022)
    assert len(first) == 2
