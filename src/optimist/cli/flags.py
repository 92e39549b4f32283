"""Every field of a RunConfig as a flag, `--opr.bc-coef 0.2`, by tyro; its errors become ours, one line each."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from optimist.config import RunConfig
from optimist.errors import ConfigError
from optimist.tracking.config_io import merge, to_dict

KEYWORDS = "--env.kwargs."


def apply_flags(config: RunConfig, arguments: list[str], prog: str) -> tuple[RunConfig, list[str]]:
    """`config` with the flags over it, and the words that are no flag of it."""
    config, arguments = _take_new_keywords(config, arguments)
    if not arguments:
        return config, []
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            changed, unknown = _tyro(config, arguments, prog)
    except SystemExit as stop:
        raise ConfigError(f"{_message(said.getvalue())} (see {prog} --help)") from stop
    if changed.preset != config.preset:
        raise ConfigError(f"--preset names what the run started from; to change it: optimist train {changed.preset}")
    return changed, unknown


def print_flags(config: RunConfig, prog: str) -> None:
    """Prints every flag with its meaning and default."""
    with contextlib.suppress(SystemExit):
        _tyro(config, ["--help"], prog)


def flag_names(config: RunConfig) -> list[str]:
    """The flags there are, `--seed`, `--algorithm.gamma`, ….; booleans also with `no-`."""
    return list(_flags(to_dict(config), "--"))


def _flags(values: Mapping[str, Any], prefix: str) -> list[str]:
    found = []
    for name, value in values.items():
        word = name.replace("_", "-")
        if isinstance(value, dict):
            found += _flags(value, f"{prefix}{word}.")
        else:
            found.append(f"{prefix}{word}")
            found += [f"{prefix}no-{word}"] if isinstance(value, bool) else []
    return found


def _tyro(config: RunConfig, arguments: list[str], prog: str) -> tuple[RunConfig, list[str]]:
    import tyro

    return tyro.cli(
        RunConfig,
        default=config,
        args=arguments,
        prog=prog,
        description="Settings:",
        return_unknown_args=True,
        config=(tyro.conf.AvoidSubcommands,),
    )


def _take_new_keywords(config: RunConfig, arguments: list[str]) -> tuple[RunConfig, list[str]]:
    """Takes out `--env.kwargs.NAME VALUE` where the config has no such keyword yet; tyro knows the others."""
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


NUMBERS = {
    r"invalid literal for int\(\) with base 10": "a whole number",
    "could not convert string to float": "a number",
}


def _literal(text: str) -> Any:
    """A value as TOML writes it, or the text itself."""
    for attempt in (text, text.lower()):  # True is Python's word for true
        with contextlib.suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {attempt}")["value"]
    return text


def _message(box: str) -> str:
    """What tyro's box says, as one line: the text under its title, up to the next rule."""
    lines = [line.strip(" │|") for line in box.strip().splitlines()[1:]]  # drawn with | and - where only ASCII goes
    text: list[str] = []
    for line in lines:
        if re.fullmatch(r"[─╰╯+-]+", line):
            if text:
                break
            continue
        text.append(line)
    message = re.sub(r"^Error parsing (?!--)\S+: ", "", " ".join(text)).rstrip(".")
    for words, wanted in NUMBERS.items():  # Python's way to say it
        message = re.sub(rf"^Error parsing (--\S+): {words}: (.*)$", rf"\1 must be {wanted}, got \2", message)
    return message
