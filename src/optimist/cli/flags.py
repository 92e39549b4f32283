"""Every field of a RunConfig as a flag, `--opr.bc-coef 0.2`, read by tyro, whose errors become one line."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from typing import Any

from optimist.cli.arguments import read_whole_number
from optimist.config import RunConfig
from optimist.config.toml import flat, merge, to_dict
from optimist.core.settings import refuse_removed
from optimist.errors import ConfigError

KEYWORDS = "--env.kwargs."


def apply_flags(config: RunConfig, arguments: list[str], prog: str) -> tuple[RunConfig, list[str]]:
    """`config` with the flags applied, and the arguments that are no flag of it."""
    config, arguments = _take_new_keywords(config, arguments)
    if not arguments:
        return config, []
    _refuse_removed(arguments)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            changed, unknown = _tyro(config, arguments, prog)
    except SystemExit as stop:
        raise ConfigError(f"{_message(printed.getvalue())} (see {prog} --help)") from stop
    if changed.preset != config.preset:
        raise ConfigError(f"--preset cannot be set; to use another preset: optimist train {changed.preset}")
    return changed, unknown


def flag_names(config: RunConfig) -> list[str]:
    """All flags, `--seed`, `--algorithm.gamma`, …; booleans also with `no-`."""
    found = []
    for name, value in flat(to_dict(config)):
        path, dot, last = name.replace("_", "-").rpartition(".")
        found += [f"--{path}{dot}{form}" for form in ([last, f"no-{last}"] if isinstance(value, bool) else [last])]
    return found


def _tyro(config: RunConfig, arguments: list[str], prog: str) -> tuple[RunConfig, list[str]]:
    import tyro
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

    whole_numbers = ConstructorRegistry()

    @whole_numbers.primitive_rule
    def _(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
        if info.type is not int:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="INT",
            instance_from_str=lambda words: read_whole_number(words[0]),
            is_instance=lambda value: type(value) is int,
            str_from_instance=lambda value: [str(value)],
        )

    return tyro.cli(
        RunConfig,
        default=config,
        args=arguments,
        prog=prog,
        return_unknown_args=True,
        config=(tyro.conf.AvoidSubcommands,),
        registry=whole_numbers,
    )


def _refuse_removed(arguments: list[str]) -> None:
    """Raise for a flag whose setting, or value, no longer exists."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            name = flag.replace("-", "_")
            for setting in (name, name.replace(".no_", ".")):
                refuse_removed(setting, value if equals else following)


def _take_new_keywords(config: RunConfig, arguments: list[str]) -> tuple[RunConfig, list[str]]:
    """Apply `--env.kwargs.NAME VALUE` where the config has no such keyword yet; tyro reads the others."""
    rest: list[str] = []
    keywords: dict[str, Any] = {}
    words = iter(arguments)
    for word in words:
        name, equals, value = word.removeprefix(KEYWORDS).partition("=")
        name = name.replace("-", "_")
        if not word.startswith(KEYWORDS) or name in config.env.kwargs or name.removeprefix("no_") in config.env.kwargs:
            rest.append(word)
            continue
        if not equals and (value := next(words, "")) == "":
            raise ConfigError(f"{word} needs a value, as in {KEYWORDS}continuous true")
        keywords[name] = _literal(value)
    return (merge(config, {"env": {"kwargs": keywords}}) if keywords else config), rest


def _literal(text: str) -> Any:
    """A value written as in TOML, or the text itself."""
    for attempt in (text, text.lower()):  # True is Python's word for true
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {attempt}")["value"]
    return text


ERRORS = {
    "must be": "must be",  # read_whole_number's
    "could not convert string to float:": "must be a number, got",
    r"Could not find valid parse for arguments: \[(.*)\]": r"cannot be \2",
    r"no type matching .* could be instantiated from \[(.*?)\]\..*": r"cannot be \2",
}
"""What Python and tyro say of a flag's value → what is printed."""


def _message(box: str) -> str:
    """The text in tyro's box as one line: from below its title to the next rule."""
    box = re.sub(r"\x1b\[[0-9;]*m", "", box)  # colours, on terminals
    lines = [line.strip(" │|") for line in box.strip().splitlines()[1:]]  # drawn with | and - on ASCII terminals
    text: list[str] = []
    for line in lines:
        if re.fullmatch(r"[─╰╯+-]+", line):
            if text:
                break
            continue
        text.append(line)
    message = re.sub(r"^Error parsing (?!--)\S+: ", "", " ".join(text)).rstrip(".")
    for words, said in ERRORS.items():
        message = re.sub(rf"^Error parsing (--\S+): {words}", rf"\1 {said}", message)
    return message
