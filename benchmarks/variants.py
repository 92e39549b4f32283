"""A preset with settings changed, as a benchmark's command line names it: `ppo-opr:bc_coef=0.01,algorithm.epochs=4`."""

from __future__ import annotations

import json
from typing import Any


def changed(config: Any, changes: str) -> Any:
    """The config with `field=value` pairs set: fields of OPR, or of another part as `part.field`."""
    from optimist.tracking.config_io import merge

    nested: dict[str, Any] = {}
    for pair in changes.split(","):
        if pair:
            setting, _, value = pair.partition("=")
            part, _, field = setting.rpartition(".")
            nested.setdefault(part or "opr", {})[field] = value_of(value)
    return merge(config, nested)


def value_of(text: str) -> Any:
    """A number, true, false or None; anything else as it stands."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None if text == "None" else text
