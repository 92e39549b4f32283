"""Compiled functions, with and without a writable cache folder."""

from __future__ import annotations

import os

from optimist.envs.atari.resize import cached_njit


def test_function_is_compiled_without_a_cache_folder():
    found = {}
    exec(compile("def twice(x):\n    return 2 * x", "/nowhere/that/is/a/folder.py", "exec"), found)
    assert cached_njit(found["twice"])(21) == 42


def test_compiled_function_is_cached_on_disk(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "thrice.py").write_text("def thrice(x):\n    return 3 * x\n")
    from thrice import thrice

    assert cached_njit(thrice)(14) == 42
    assert any(name.endswith(".nbc") for name in os.listdir(tmp_path / "__pycache__"))
