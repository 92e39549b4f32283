"""A run's config → what it is called: family, environment, method, and how it differs from its preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optimist.errors import OptimistError

ATARI, CAGE2, DEEPSEA, KEYDOOR, GYM = "Atari", "CAGE Challenge 2", "DeepSea", "Key-Door-Treasure", "Gymnasium"
FAMILIES = (ATARI, CAGE2, DEEPSEA, KEYDOOR, GYM)
"""In the order in which a report shows them."""
WORDS = {
    "ppo": "PPO", "ppo145": "PPO, 145 actions", "a2c": "A2C", "acper": "ACPER", "sil": "SIL", "opr": "OPR",
    "dqn": "DQN", "rainbow": "Rainbow", "cardiff": "Cardiff", "paper": "literal", "best": "expert PPO",
}  # fmt: skip
ADDED = ("OPR", "SIL")
NOT_COMPARED = ("env.kwargs", "env.id", "env.vectorization")
"""Settings that make no other method."""
NAMED = ("game", "sticky", "red", "rules", "horizon", "green", "size", "height", "apple")
"""Keywords of environments that are part of the environment's name, or of the score."""
SECTIONS = ("env", "network", "algorithm", "opr")


@dataclass(frozen=True)
class Identity:
    """Which experiment a run belongs to."""

    family: str
    env: str
    base: str
    """The preset's method, PPO+OPR."""
    changes: tuple[str, ...]
    """Settings that differ from the preset's, `bc_coef=1.0`."""
    preset: str

    @property
    def method(self) -> str:
        """The name a column has."""
        return " · ".join((self.base, *self.changes))


def identify(config: Mapping[str, Any]) -> Identity:
    """The identity of a run with this config, as nested plain values; fields may be missing."""
    env = config.get("env") or {}
    preset = str(config.get("preset") or "")
    family, label = name_env(str(env.get("id", "?")), env.get("kwargs") or {})
    base, changes = name_method(preset, config), changes_from_preset(preset, config)
    if "enabled=False" in changes:
        base = base.replace("+OPR", "")
        changes = [change for change in changes if not change.startswith("enabled")]
    return Identity(family, label, base, tuple(changes), preset)


def name_env(env_id: str, kwargs: Mapping[str, Any]) -> tuple[str, str]:
    """Family and label of an environment; what a method's interface adds to the game is not part of it."""
    if env_id.startswith("optimist/Atari"):
        return ATARI, str(kwargs.get("game", "?"))
    if env_id.startswith("optimist/CAGE2"):
        return CAGE2, name_cage2(**{key: kwargs[key] for key in ("red", "rules", "horizon", "green") if key in kwargs})
    if env_id.startswith("optimist/DeepSea"):
        return DEEPSEA, f"DeepSea-{kwargs.get('size', 12)}"
    if env_id.startswith("optimist/KeyDoor"):
        return KEYDOOR, f"Key-Door-Treasure {kwargs.get('height', 6)} × 9" + (", apple" if kwargs.get("apple") else "")
    words = ", ".join(f"{key}={value}" for key, value in kwargs.items())
    return GYM, f"{env_id} ({words})" if words else env_id


def name_cage2(red: str = "B_line", rules: str = "final", horizon: int = 30, green: str = "Sleep") -> str:
    """Attacker, rules and length of a game."""
    return f"{red}, {rules} rules, {horizon} steps" + ("" if green == "Sleep" else f", green {green}")


def name_method(preset: str, config: Mapping[str, Any] | None = None) -> str:
    """deepsea/opr-paper → PPO+OPR, literal; without a preset the algorithm's name."""
    if not preset:
        algorithm = ((config or {}).get("algorithm") or {}).get("name", "?")
        name = "+".join(WORDS.get(part, part) for part in str(algorithm).replace("cardiff-ppo", "cardiff").split("-"))
        return name + ("+OPR" if ((config or {}).get("opr") or {}).get("enabled") else "")
    *_, tail = preset.split("/")
    known = [WORDS.get(part, part) for part in tail.split("-")]
    name = known[0]
    if name in ADDED or name == "literal":  # the base is PPO where a preset does not say
        name, known = "PPO", ["PPO", *(["OPR"] if name == "literal" else []), *known]
    elif name in ("fast", "smoke"):
        name, known = "PPO", ["PPO", "OPR", *known]
    for part in known[1:]:
        name += f"+{part}" if part in ADDED else f", {part}"
    return name


def changes_from_preset(preset: str, config: Mapping[str, Any]) -> list[str]:
    """`setting=value` for everything of the method that differs from its preset; empty if the preset is unknown."""
    from optimist.presets import get_preset
    from optimist.tracking.config_io import to_dict

    env = config.get("env") or {}
    kwargs = env.get("kwargs") or {}
    known = {"env": env.get("id"), **kwargs, "games": env.get("num_envs")}
    try:
        found = get_preset(preset)
        chosen = {p.name: known[p.name] for p in found.parameters if type(known.get(p.name)) is p.kind}
        default = to_dict(found(**chosen))
    except OptimistError:
        return []
    changes = []
    for section in SECTIONS:
        ours, theirs = config.get(section) or {}, default.get(section) or {}
        changes += [
            f"{key}={value}"
            for key, value in ours.items()
            if f"{section}.{key}" not in NOT_COMPARED and key in theirs and _plain(value) != _plain(theirs[key])
        ]
    usual = default["env"]["kwargs"]
    return changes + [
        f"{key}={value}"
        for key, value in kwargs.items()
        if key not in NAMED and _plain(value) != _plain(usual.get(key))
    ]


def split_changes(method: str) -> tuple[str, tuple[str, ...]]:
    """`opr:bc_coef=1.0,sampling=uniform`, as benchmarks call a method → its preset's part and the changes."""
    name, _, changes = method.partition(":")
    return name, tuple(change for change in changes.split(",") if change)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if value == "none" else value
