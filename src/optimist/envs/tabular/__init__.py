"""Small tasks whose whole state is one number: DeepSea, Key-Door-Treasure and pure luck."""

from __future__ import annotations

from typing import Any

from optimist.envs.family import Family


def _entries(module: str, name: str) -> dict[str, dict[str, str]]:
    entries = {
        "entry_point": f"{__name__}.{module}:{name}Env",
        "vector_entry_point": f"{__name__}.{module}:{name}VectorEnv",
    }
    return {f"optimist/{name}-v0": entries}


def _deepsea_label(_: str, kwargs: Any) -> str:
    return f"DeepSea-{kwargs.get('size', 12)}"


def _key_door_label(_: str, kwargs: Any) -> str:
    return f"Key-Door-Treasure {kwargs.get('height', 6)} × 9" + (", apple" if kwargs.get("apple") else "")


def _pure_luck_label(_: str, kwargs: Any) -> str:
    return f"Pure luck, {kwargs.get('length', 10)} steps"


FAMILIES = (
    Family(
        name="DeepSea",
        envs=_entries("deepsea", "DeepSea"),
        label=_deepsea_label,
        label_kwargs=("size",),
        task_seed="map_seed",
    ),
    Family(
        name="Key-Door-Treasure",
        envs=_entries("key_door", "KeyDoorTreasure"),
        label=_key_door_label,
        label_kwargs=("height", "horizon", "apple"),
    ),
    Family(
        name="Pure luck",
        envs=_entries("pure_luck", "PureLuck"),
        label=_pure_luck_label,
        label_kwargs=("length", "actions"),
    ),
)
