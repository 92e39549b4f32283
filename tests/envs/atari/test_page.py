"""The code on the page about Atari runs and prints what the page says, and the page knows every preset and keyword."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from optimist.envs.atari import AtariVectorEnv
from optimist.envs.atari.fire import STEPS_UNTIL_IT_BEGINS, STEPS_UNTIL_IT_WAITS
from optimist.presets import all_presets

PAGE = (Path(__file__).parents[3] / "docs" / "envs" / "atari.md").read_text(encoding="utf-8")


def test_code_on_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(block, "atari.md", "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.*)", block)
    assert capsys.readouterr().out.splitlines() == promised


def test_the_page_knows_every_preset_keyword_and_game_that_waits():
    presets = [preset.name for preset in all_presets() if preset.name.startswith("atari/")]
    keywords = [
        name for name in inspect.signature(AtariVectorEnv.__init__).parameters if name not in ("self", "num_envs")
    ]
    for name in (*presets, *keywords, *STEPS_UNTIL_IT_WAITS):
        assert name in PAGE, name
    assert "(36 and 64 steps later)" in PAGE
    assert STEPS_UNTIL_IT_WAITS == {"Breakout": 0, "Gopher": 36, "NameThisGame": 64}
    assert "(104 steps after the start)" in PAGE
    assert STEPS_UNTIL_IT_BEGINS == {"NameThisGame": 104}
