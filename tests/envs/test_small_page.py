"""The code on the page about the small environments runs and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "envs" / "small.md"


def test_code_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 1
    exec(compile(blocks[0], str(PAGE), "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.*)", blocks[0])
    assert capsys.readouterr().out.split() == promised
