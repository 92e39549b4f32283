"""docs/settings.md and docs/settings_learners.md list every setting and are up to date."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from optimist.cli.flags import flag_names
from optimist.presets import get_preset

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("settings_page", ROOT / "tools" / "settings_page.py")
settings_page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(settings_page)


@pytest.mark.parametrize("name", ["settings.md", "settings_learners.md"])
def test_the_page_is_what_the_classes_say(name):
    written = (ROOT / "docs" / name).read_text("utf-8")
    assert written == settings_page.pages()[name], "write it again: python tools/settings_page.py"


@pytest.mark.parametrize("preset", ["deepsea/ppo-opr-sil", "cage2/cardiff", "atari/a2c", "gym/acper", "gym/rainbow"])
def test_every_flag_of_a_preset_is_a_setting_of_the_pages(preset):
    listed = set(re.findall(r"^\| `([\w.]+)` \|", "\n".join(settings_page.pages().values()), re.MULTILINE))
    flags = {flag.removeprefix("--") for flag in flag_names(get_preset(preset)())}
    names = {name.replace("-", "_") for name in flags if not re.search(r"(^|\.)no-", name)}
    unlisted = {name for name in names - listed if not name.startswith("env.kwargs.")}
    assert unlisted == {"preset", "algorithm.name"}


def test_meanings_choices_and_ranges_are_those_of_the_class():
    page = settings_page.pages()["settings.md"]
    assert "| `opr.percentile` | `75.0` | number ≥ 0, ≤ 100 | P. An episode is admitted to M when" in page
    assert "| `opr.admission` | `gated` | `paper`, `gated` |" in page
    assert "| `opr.max_age_updates` | `none` | whole number ≥ 1, or `none` |" in page
    assert "| `env.kwargs` | `{}` | table |" in page
    assert "| `network.hidden` | `[64, 64]` | list of numbers ≥ 1 |" in page
