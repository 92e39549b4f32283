"""The code of docs/environments/atari.md prints what the page says, and the page lists every preset and keyword."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from optimist.envs.atari.games import FIRE_AFTER_LIFE_LOSS, FIRE_AT_START
from optimist.envs.atari.vector import AtariVectorEnv
from optimist.presets import all_presets

PAGE = (Path(__file__).parents[3] / "docs" / "environments" / "atari.md").read_text(encoding="utf-8")


def test_code_on_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(block, "atari.md", "exec"), {})
    expected = re.findall(r"print\(.*\)  # (.*)", block)
    assert capsys.readouterr().out.splitlines() == expected


def test_page_lists_every_preset_keyword_and_game_that_waits_for_fire():
    presets = [preset.name for preset in all_presets() if preset.name.startswith("atari/")]
    keywords = [
        name for name in inspect.signature(AtariVectorEnv.__init__).parameters if name not in ("self", "num_envs")
    ]
    for name in (*presets, *keywords, *FIRE_AFTER_LIFE_LOSS):
        assert name in PAGE, name
    assert "(36 and 64 steps later)" in PAGE
    assert FIRE_AFTER_LIFE_LOSS == {"Breakout": 0, "Gopher": 36, "NameThisGame": 64}
    assert "(104 steps after the start)" in PAGE
    assert FIRE_AT_START == {"NameThisGame": 104}
