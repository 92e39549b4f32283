"""The help of `optimist train PRESET`: a first page, one group of settings (`--help opr`), or all (`--help all`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from shutil import get_terminal_size
from textwrap import wrap
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from optimist.config import RunConfig
from optimist.core.settings import allowed_range, field_types, hint_parts, meanings
from optimist.errors import unknown_name
from optimist.presets import Preset

MAX_COLUMNS = 100
ALL, RUN = "all", "run"
OFTEN_CHANGED = {
    "total_steps": "environment steps of the whole run",
    "seed": "seed of everything random in the run",
    "device": "cpu, cuda or cuda:1",
    "evaluate_every": "steps between evaluations; 0: none",
    "env.num_envs": "environments stepped in parallel",
    "algorithm.learning_rate": "learning rate at the start",
    "algorithm.rollout_steps": "steps per environment and update",
    "opr.percentile": "admit returns above this percentile",
    "opr.bc_coef": "weight of cloning good episodes",
    "opr.shaping_scale": "strength of reward shaping; 0: none",
    "sil.coef": "weight of self-imitation",
    "algorithm.entropy_coef": "weight of the entropy bonus",
    "algorithm.gamma": "discount factor",
    "algorithm.minibatch_size": "rows of one gradient step",
    "algorithm.epsilon_steps": "steps with decreasing random actions",
    "checkpoint_every": "steps between checkpoints",
}
"""Setting → its line on the first page, which shows the first ten that a preset uses."""
SHOWN = 10
TYPES = {int: "INT", float: "FLOAT", str: "TEXT", dict: "TABLE", NoneType: "None"}


@dataclass(frozen=True)
class Setting:
    """One setting of a config, with what its help says."""

    name: str
    value: Any
    hint: Any
    meaning: str

    @property
    def flag(self) -> str:
        """`--opr.bc-coef FLOAT`, or `--wandb, --no-wandb`."""
        flag = as_flag(self.name)
        if isinstance(self.value, bool):
            start, dot, last = flag.rpartition(".")
            return f"{flag}, {start}{dot}{'' if dot else '--'}no-{last.removeprefix('--')}"
        parts = hint_parts(self.hint)
        choices = [str(choice) for part in parts if get_origin(part) is Literal for choice in get_args(part)]
        several = " …" if any(get_origin(part) is tuple for part in parts) else ""
        kinds = [name for kind, name in TYPES.items() if kind in (*parts, *map(get_origin, parts))]
        return f"{flag} {{{','.join(choices)}}}" if choices else f"{flag} {'|'.join(kinds)}{several}"

    @property
    def default(self) -> str:
        """The value as it is written on the command line, and the range of other values."""
        allowed = allowed_range(self.hint)
        return f"(default: {as_word(self.value)}{'; ' + allowed if allowed else ''})"


def print_help(preset: Preset, config: RunConfig, topic: str, command_help: str) -> None:
    """Print the first page; or the settings of a group, one setting, or all, if `topic` names them."""
    groups = dict(find_groups(preset, config))
    if topic in ("", ALL):
        print(command_help)
    if topic == "":
        _print_first_page(preset, config, groups)
        return
    chosen = {name: found for name, found in groups.items() if topic in (ALL, name)}
    if not chosen:  # one setting, as `opr.percentile` or `--opr.percentile`
        known = {setting.name: setting for found in groups.values() for setting in found}
        name = topic.removeprefix("--").replace("-", "_")
        if name not in known:
            raise unknown_name(
                "group of settings", topic, [ALL, *groups, *known], f"known: {', '.join([*groups, ALL])}"
            )
        chosen = {name: [known[name]]}
    blocks = [f"{name}: {_about(name, config)}\n\n{_settings(found)}" for name, found in chosen.items()]
    print("\n\n".join(block.replace(": \n\n", "\n\n", 1) for block in blocks))


def find_groups(preset: Preset, config: RunConfig) -> Iterator[tuple[str, list[Setting]]]:
    """The settings of the run itself, then of each of its parts."""
    words = {parameter.name: parameter.meaning for parameter in preset.parameters}
    cls: Any = type(config)
    hints, texts = field_types(cls), meanings(cls)
    own = [field.name for field in fields(config) if field.name != "preset"]
    parts = [
        name for name in own if is_dataclass(getattr(config, name)) or getattr(config, name) == {} or name == "anchors"
    ]
    yield RUN, [Setting(name, getattr(config, name), hints[name], texts[name]) for name in own if name not in parts]
    for part in parts:
        if found := list(_walk(part, getattr(config, part), words)):
            yield part, found


def _walk(path: str, value: Any, words: Mapping[str, str]) -> Iterator[Setting]:
    """Each setting below `path`; keywords of an environment have the type of their value."""
    if is_dataclass(value):
        cls: Any = type(value)
        hints, texts = field_types(cls), meanings(cls)
        for field in fields(value):
            name, own = f"{path}.{field.name}", getattr(value, field.name)
            if isinstance(own, Mapping):
                yield from _walk(name, own, words)
            else:
                yield Setting(name, own, hints[field.name], texts.get(field.name, ""))
    elif isinstance(value, Mapping):
        for key, own in value.items():
            if is_dataclass(own):
                yield from _walk(f"{path}.{key}", own, words)
            else:
                yield Setting(f"{path}.{key}", own, type(own), words.get(key, ""))


def _print_first_page(preset: Preset, config: RunConfig, groups: Mapping[str, list[Setting]]) -> None:
    idle = {f"{part}.{name}" for part in ("opr", "sil") for name in getattr(config, part).inactive}
    if config.opr.enabled:
        idle.discard("opr.shaping_scale")  # idle at 0, its default, and turned on by another value
    known = {setting.name: setting for found in groups.values() for setting in found if setting.name not in idle}
    often = [name for name in OFTEN_CHANGED if name in known][:SHOWN]
    rows = [(as_flag(name), as_word(known[name].value), OFTEN_CHANGED[name]) for name in often]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    print("settings most often changed, with their defaults:")
    for flag, value, meaning in rows:
        print(f"  {flag:<{widths[0]}}  {value:<{widths[1]}}  {meaning}")
    print("\ngroups of settings:")
    for name, found in groups.items():
        print(f"  {name:<10} {len(found):>3}  {_about(name, config)}")
    first = "opr" if config.opr.enabled else "algorithm"
    one = next(name for name in often if name.startswith(f"{first}."))
    print("\nmore:")
    for topic, meaning in (
        (first, "the settings of a group"),
        (as_flag(one)[2:], "one setting"),
        (ALL, "every setting"),
    ):
        print(f"  --help {topic:<24}  {meaning}")


def _about(group: str, config: RunConfig) -> str:
    """One line on a group, and whether it has any effect."""
    if group == RUN:
        return "budget, seed, device, evaluations, checkpoints, logs"
    text = meanings(RunConfig).get(group, "")
    first = wrap(text.replace(";", "."), 10_000)[0].partition(".")[0] if text else ""
    value = getattr(config, group, None)
    off = "; off" if getattr(value, "enabled", True) is False else ""
    learner = f": {config.algorithm.name}" if group == "algorithm" else ""
    return f"{first}{learner}{off}"


def _settings(settings: list[Setting]) -> str:
    """Two or more lines per setting: its flag with its default, and its meaning."""
    width = min(get_terminal_size(fallback=(80, 24)).columns, MAX_COLUMNS)
    lines: list[str] = []
    for setting in settings:
        lines += wrap(f"{setting.flag}  {setting.default}", width, initial_indent="  ", subsequent_indent=" " * 10)
        lines += wrap(setting.meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def as_flag(name: str) -> str:
    """`--opr.bc-coef` for `opr.bc_coef`."""
    return f"--{name.replace('_', '-')}"


def as_word(value: Any) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, tuple | list):
        return " ".join(map(as_word, value))
    if type(value) is int:
        return f"{value:_}"
    return "''" if value == "" else str(value)
