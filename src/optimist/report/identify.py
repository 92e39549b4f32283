"""A run's config → what it is called: family, environment, method, and how it differs from its preset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optimist.config import DIVIDING
from optimist.errors import OptimistError

ATARI, CAGE2, DEEPSEA, KEYDOOR, GYM = "Atari", "CAGE Challenge 2", "DeepSea", "Key-Door-Treasure", "Gymnasium"
FAMILIES = (ATARI, CAGE2, DEEPSEA, KEYDOOR, GYM)
"""In the order in which a report shows them."""
WORDS = {
    "ppo": "PPO", "ppo145": "PPO", "a2c": "A2C", "acper": "ACPER", "sil": "SIL", "opr": "OPR",
    "dqn": "DQN", "rainbow": "Rainbow", "cardiff": "Cardiff", "paper": "literal", "best": "expert PPO",
}  # fmt: skip
ADDED = ("opr", "sil")
INTERFACES = {"cage2/ppo": "145 actions", "cage2/ppo145": "145 actions"}
OPR_BY_DEFAULT = ("paper", "fast", "smoke")
QUALITIES = (*OPR_BY_DEFAULT, "best")
NOT_COMPARED = ("env.kwargs", "env.id", "env.vectorization", "env.reward_delay")
"""Settings that make no other method."""
NAMED = ("game", "sticky", "red", "rules", "horizon", "green", "size", "height", "apple")
"""Keywords of environments that are part of the environment's name, or of the score."""
SECTIONS = ("env", "network", "algorithm", "opr", "sil")


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
    if env.get("reward_delay", 1) != 1:
        label += f", rewards every {env['reward_delay']} steps"
    base, changes = name_method(preset, config), changes_from_preset(preset, config)
    for part in ADDED:
        if f"{part}.enabled=False" in changes and f"+{WORDS[part]}" in base:
            base = base.replace(f"+{WORDS[part]}", "")
            changes.remove(f"{part}.enabled=False")
    return Identity(family, label, base, tuple(sorted(changes)), preset)


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
    """deepsea/opr-paper → PPO+OPR, literal; without a preset the algorithm's name and what is added to it."""
    if not preset:
        config = config or {}
        words = str((config.get("algorithm") or {}).get("name", "?")).replace("cardiff-ppo", "cardiff")
        added = [name for name in ("opr", "sil") if (config.get(name) or {}).get("enabled")]
        return "+".join(WORDS.get(word, word) for word in (words, *added))
    *families, tail = preset.split("/")
    parts = tail.split("-")
    qualities = [part for part in parts if part in QUALITIES or part not in WORDS]
    learners = [part for part in parts if part not in qualities]
    if set(parts) <= set(OPR_BY_DEFAULT):
        learners = ["ppo", "opr"]  # atari/paper, atari/fast
    elif learners and learners[0] in ADDED:  # deepsea/opr, cage2/sil: the family's usual learner
        learners.insert(0, "cardiff" if families == ["cage2"] else "ppo")
    name = "+".join(WORDS[part] for part in learners)
    if preset in INTERFACES:
        qualities.append(INTERFACES[preset])
    elif families == ["mujoco"]:  # on the tasks of gym/…, with other settings
        qualities.append("MuJoCo's settings")
    return ", ".join([*([name] if name else []), *(WORDS.get(part, part) for part in qualities)])


def changes_from_preset(preset: str, config: Mapping[str, Any]) -> list[str]:
    """`setting=value` for everything of the method that differs from its preset; of an unknown preset a fingerprint."""
    from optimist.presets import get_preset
    from optimist.tracking.config_io import to_dict

    env = config.get("env") or {}
    kwargs = env.get("kwargs") or {}
    lag = config.get("policy_lag", 0)
    known = {"env": env.get("id"), **kwargs, "games": env.get("num_envs"), "delay": env.get("reward_delay")}
    try:
        found = get_preset(preset)
        chosen = {p.name: known[p.name] for p in found.parameters if type(known.get(p.name)) is p.kind}
        default = to_dict(found(**chosen))
    except OptimistError:
        changes = [f"policy_lag={lag}"] if lag else []
        return changes + ([f"settings {_fingerprint(config)}"] if any(map(config.get, SECTIONS[1:])) else [])
    changes = [f"policy_lag={lag}"] if lag != default["policy_lag"] else []
    for section in SECTIONS:
        ours, theirs = config.get(section) or {}, default.get(section) or {}
        if section in ADDED:
            changes += _switched(section, ours, theirs)
            ours = {**ours, "enabled": theirs.get("enabled")} if ours.get("enabled") else {}
        changes += [
            f"{key}={value}"
            for key, value in ours.items()
            if f"{section}.{key}" not in NOT_COMPARED and key in theirs and _plain(value) != _plain(theirs[key])
        ]
    usual = default["env"]["kwargs"]
    return changes + [
        f"{key}={value}"
        for key, value in kwargs.items()
        if key not in (*NAMED, *DIVIDING) and _plain(value) != _plain(usual.get(key))
    ]


def _switched(section: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Whether OPR or SIL is on against the preset's will; its other settings count only where it is on."""
    enabled = bool(ours.get("enabled"))
    return [f"{section}.enabled={enabled}"] if "enabled" in ours and enabled != bool(theirs.get("enabled")) else []


def split_changes(method: str) -> tuple[str, tuple[str, ...]]:
    """`opr:bc_coef=1.0,sampling=uniform`, as benchmarks call a method → its preset's part and the changes."""
    name, _, changes = method.partition(":")
    return name, tuple(sorted(_setting(*change.split("=", 1)) for change in changes.split(",") if "=" in change))


def _setting(key: str, value: str) -> str:
    """As a config would say it, without its section."""
    return f"{key.rpartition('.')[2]}={ {'true': 'True', 'false': 'False'}.get(value, value) }"


def _fingerprint(config: Mapping[str, Any]) -> str:
    """Six digits that two configs share only if the method's settings are equal."""
    settings = {section: {**(config.get(section) or {}), "kwargs": None} for section in SECTIONS}
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:6]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if value == "none" else value
