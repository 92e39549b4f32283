"""The same examples for hypothesis in every run, without deadlines: a busy machine is no failure."""

import json
import lzma
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings

from cage2.traces import RECORDED

settings.register_profile("cage2", deadline=None, derandomize=True)
settings.load_profile("cage2")


@pytest.fixture(scope="session")
def recorded() -> dict[str, list[dict[str, Any]]]:
    """RULES-GREEN-BLUE-RED[-cardifftable] → its recorded episodes."""
    found = defaultdict(list)
    with lzma.open(RECORDED, "rt") as lines:
        for episode in map(json.loads, lines):
            green = {"Sleep": "sleep", "GreenAgent": "green"}[episode["green"]]
            table = "-cardifftable" * (episode.get("table") == "cardiff")
            found[f"{episode['rules']}-{green}-{episode['blue']}-{episode['red']}{table}"].append(episode)
    return found
