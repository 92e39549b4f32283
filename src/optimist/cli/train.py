"""`optimist train PRESET`: the settings are the preset's, overridden by a TOML file, overridden by flags."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill

from optimist.cli.arguments import Parser, refuse_unknown
from optimist.cli.flags import apply_flags, flag_names
from optimist.cli.help import print_help
from optimist.cli.summary import print_summary
from optimist.config import RunConfig
from optimist.config.toml import merge, read_toml
from optimist.errors import ConfigError
from optimist.presets import Preset, get_preset

HELP = ("-h", "--help")
EPILOG = "`optimist presets` lists the presets; `optimist train PRESET --help` shows the flags of one."


def main(argv: Sequence[str]) -> int:
    """Train, and print the summary."""
    arguments = list(argv)
    if not arguments or arguments[0] in HELP:
        _command_parser(None).print_help()
        return 0 if arguments else 2
    if arguments[0].startswith("-"):
        raise ConfigError(f"the preset must come first: optimist train PRESET {' '.join(arguments)}")
    preset = get_preset(arguments.pop(0))
    asked = next((number for number, word in enumerate(arguments) if word.partition("=")[0] in HELP), None)
    if asked is not None:
        _print_help(preset, arguments[:asked], arguments[asked:])
        return 0
    options, config = read_command(preset, arguments)

    from optimist.training.trainer import train

    summary = train(config, options.out, progress=not options.quiet)
    if options.json or not options.quiet:
        print_summary(summary, as_json=options.json)
    return 0


def read_command(preset: Preset, arguments: list[str]) -> tuple[argparse.Namespace, RunConfig]:
    """The command's own options and the settings of the run."""
    options, config, rest = _read_before_flags(preset, arguments)
    parser = _command_parser(preset)
    config, unknown = apply_flags(config, rest, prog=parser.prog)
    refuse_unknown(unknown, [*parser.flags(), *flag_names(config)], parser.prog)
    return options, config


def _command_parser(preset: Preset | None) -> Parser:
    """The flags that are not settings: those of the command, and the preset's keywords."""
    name, columns = preset.name if preset else "PRESET", get_terminal_size(fallback=(80, 24)).columns
    parser = Parser(
        prog=f"optimist train {name}",
        usage=f"optimist train {name} [--seed N] [--any.setting VALUE] …",
        description=fill(preset.description if preset else "Train from a preset, into a run folder.", columns),
        epilog=None if preset else EPILOG,
        add_help=preset is None,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file that overrides settings of the preset")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/<preset>-<seed>-<time>)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on the last line")
    parser.add_argument("--quiet", action="store_true", help="print nothing except errors")
    if preset:
        parser.add_argument(*HELP, nargs="?", metavar="GROUP", help="this page, or the settings of a group")
    group = parser.add_argument_group("keywords of the preset")
    for name, kind, default, meaning in preset.parameters if preset else ():
        flag = f"--{name.replace('_', '-')}"
        meaning = f"{meaning} (default: {default})".replace("%", "%%")
        if kind is bool:
            group.add_argument(flag, action=argparse.BooleanOptionalAction, help=meaning)
        else:
            group.add_argument(flag, type=kind, metavar=kind.__name__.upper(), help=meaning)
    return parser


def _read_before_flags(preset: Preset, arguments: list[str]) -> tuple[argparse.Namespace, RunConfig, list[str]]:
    """The options, the preset with its keywords and the TOML file, and the arguments that may be flags of settings."""
    options, rest = _command_parser(preset).parse_known_args(arguments)
    values = {parameter.name: getattr(options, parameter.name) for parameter in preset.parameters}
    given = {name: value for name, value in values.items() if value is not None}
    config = preset(**given)
    if options.config is not None:
        document = read_toml(options.config)
        if document.get("preset", preset.name) != preset.name:
            raise ConfigError(
                f"{options.config} is a config of {document['preset']}, not of {preset.name}; run optimist train "
                f"{document['preset']} --config {options.config}, or remove its line `preset`"
            )
        config = preset.reapply(merge(config, document), **given)
    return options, config, rest


def _print_help(preset: Preset, before: list[str], asked: list[str]) -> None:
    """Print the help that `--help [TOPIC]` asks for; keywords of the preset around it change the defaults shown."""
    _, equals, topic = asked[0].partition("=")
    after = asked[1:]
    if not equals and after and not after[0].startswith("-"):
        topic = after.pop(0)
    _, config, _ = _read_before_flags(preset, [*before, *after])
    print_help(preset, config, topic, command_help=_command_parser(preset).format_help())
