"""Compiled functions, with and without a folder to keep them in."""

from __future__ import annotations

import os

from optimist.envs.compiling import compiled


def test_without_a_folder_for_it_a_function_is_compiled_all_the_same():
    found = {}
    exec(compile("def twice(x):\n    return 2 * x", "/nowhere/that/is/a/folder.py", "exec"), found)
    assert compiled(found["twice"])(21) == 42


def test_what_is_compiled_is_kept(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "thrice.py").write_text("def thrice(x):\n    return 3 * x\n")
    from thrice import thrice

    assert compiled(thrice)(14) == 42
    assert any(name.endswith(".nbc") for name in os.listdir(tmp_path / "__pycache__"))
