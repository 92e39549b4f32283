"""A run's names from its config: family, environment, method, and its differences from the preset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from optimist.config import OPRConfig
from optimist.envs.family import family_of
from optimist.errors import OptimistError

ATARI, CAGE2, KEYDOOR = "Atari", "CAGE Challenge 2", "Key-Door-Treasure"
"""Families that a report treats in their own way."""
WORDS = {
    "ppo": "PPO", "a2c": "A2C", "acper": "ACPER", "sil": "SIL", "opr": "OPR",
    "dqn": "DQN", "rainbow": "Rainbow", "cardiff": "Cardiff", "paper": "literal", "best": "expert PPO",
}  # fmt: skip
ADDED = ("opr", "sil")
INTERFACES = {"cage2/ppo": "145 actions"}
OPR_BY_DEFAULT = ("paper", "fast", "smoke")
QUALITIES = (*OPR_BY_DEFAULT, "best")
NOT_COMPARED = ("env.kwargs", "env.id", "env.vectorization", "env.reward_delay")
"""Settings that are not part of a method."""
SECTIONS = ("env", "network", "algorithm", "opr", "sil")


@dataclass(frozen=True)
class Identity:
    """The experiment that a run belongs to."""

    family: str
    env: str
    base: str
    """The preset's method, PPO+OPR."""
    changes: tuple[str, ...]
    """Settings that differ from the preset's, `bc_coef=1.0`."""
    preset: str

    @property
    def method(self) -> str:
        """The name of its column."""
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
    """Family and label of an environment, without the interface that belongs to the method."""
    family = family_of(env_id)
    return family.name, family.label(env_id, kwargs)


def name_method(preset: str, config: Mapping[str, Any] | None = None) -> str:
    """deepsea/opr-paper → PPO+OPR, literal; without a preset the names of the algorithm and its anchors."""
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
    elif families == ["mujoco"]:  # the same tasks as gym/…, with different settings
        qualities.append("MuJoCo's settings")
    return ", ".join([*([name] if name else []), *(WORDS.get(part, part) for part in qualities)])


def changes_from_preset(preset: str, config: Mapping[str, Any]) -> list[str]:
    """`setting=value` for each setting that differs from the preset's; a fingerprint where the preset is unknown."""
    from optimist.config.toml import to_dict
    from optimist.presets import get_preset

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
        inactive = _inactive(ours) & _inactive(theirs) if section == "opr" else set()
        if section in ADDED:
            enabled = bool(ours.get("enabled"))
            if "enabled" in ours and enabled != bool(theirs.get("enabled")):
                changes.append(f"{section}.enabled={enabled}")
            ours = {key: value for key, value in ours.items() if enabled and key != "enabled"}
        changes += [
            f"{key}={value}"
            for key, value in ours.items()
            if f"{section}.{key}" not in NOT_COMPARED
            and key not in inactive
            and key in theirs
            and _plain(value) != _plain(theirs[key])
        ]
    usual, family = default["env"]["kwargs"], family_of(str(env.get("id")))
    return changes + [
        f"{key}={value}"
        for key, value in kwargs.items()
        if key not in (*family.label_kwargs, *family.performance_kwargs) and _plain(value) != _plain(usual.get(key))
    ]


def _inactive(opr: Mapping[str, Any]) -> set[str]:
    """Settings of OPR without effect, given the others; none for values that this version does not know."""
    names = {field.name for field in fields(OPRConfig)}
    try:
        return OPRConfig(**{key: _plain(value) for key, value in opr.items() if key in names}).inactive
    except OptimistError:
        return set()


def _fingerprint(config: Mapping[str, Any]) -> str:
    """Six digits that are equal only for equal settings of the method."""
    settings = {section: {**(config.get(section) or {}), "kwargs": None} for section in SECTIONS}
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:6]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if value == "none" else value
