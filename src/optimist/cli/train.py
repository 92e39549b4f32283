"""`optimist train PRESET`: preset, then TOML file, then flags make the RunConfig; then the loop."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, print_result, refuse_unknown
from optimist.cli.flags import apply_flags, flag_names, print_flags
from optimist.config import RunConfig
from optimist.errors import ConfigError
from optimist.presets import Preset, get_preset
from optimist.tracking.config_io import merge, read_toml

EPILOG = "`optimist presets` lists the presets; `optimist train PRESET --help` lists every setting of one."


def main(argv: Sequence[str]) -> int:
    """Trains, and prints the summary."""
    arguments = list(argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        command_parser(None).print_help()
        return 0 if arguments else 2
    if arguments[0].startswith("-"):
        raise ConfigError(f"the preset comes first: optimist train PRESET {' '.join(arguments)}")
    preset = get_preset(arguments.pop(0))
    if any(word in ("-h", "--help") for word in arguments):
        _print_help(preset, [word for word in arguments if word not in ("-h", "--help")])
        return 0
    options, config = read_command(preset, arguments)

    from optimist.training.loop import train

    summary = train(config, options.out, progress=not options.quiet)
    if options.json or not options.quiet:
        print_result(summary, as_json=options.json)
    return 0


def read_command(preset: Preset, arguments: list[str]) -> tuple[argparse.Namespace, RunConfig]:
    """The command's own options and the config: the preset's, then the TOML file over it, then the flags."""
    options, config, rest = _before_flags(preset, arguments)
    parser = command_parser(preset)
    config, unknown = apply_flags(config, rest, prog=parser.prog)
    refuse_unknown(unknown, [*parser.flags(), *flag_names(config)], parser.prog)
    return options, config


def command_parser(preset: Preset | None) -> Parser:
    """The flags that are not settings: those of the command, and the preset's parameters."""
    name = preset.name if preset else "PRESET"
    parser = Parser(
        prog=f"optimist train {name}",
        usage=f"optimist train {name} [--config FILE] [--out DIR] [--seed N] [--total-steps N] [--any.setting VALUE]",
        description=preset.description if preset else "Train from a preset, into a run folder.",
        epilog=None if preset else EPILOG,
        add_help=preset is None,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file that overrides settings of the preset")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/<preset>-<seed>-<time>)")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on the last line")
    parser.add_argument("--quiet", action="store_true", help="print nothing while all goes well")
    for parameter in preset.parameters if preset else ():
        flag = f"--{parameter.name.replace('_', '-')}"
        meaning = f"{parameter.meaning} (default: {parameter.default})".replace("%", "%%")
        if parameter.kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=parameter.default, help=meaning)
        else:
            kind, default = parameter.kind, parameter.default
            parser.add_argument(flag, type=kind, default=default, metavar=kind.__name__.upper(), help=meaning)
    return parser


def _before_flags(preset: Preset, arguments: list[str]) -> tuple[argparse.Namespace, RunConfig, list[str]]:
    options, rest = command_parser(preset).parse_known_args(arguments)
    config = preset(**{parameter.name: getattr(options, parameter.name) for parameter in preset.parameters})
    if options.config is not None:
        document = read_toml(options.config)
        if document.get("preset", preset.name) != preset.name:
            raise ConfigError(
                f"{options.config} is of {document['preset']}: optimist train {document['preset']} --config "
                f"{options.config}; or take the line `preset` out of it"
            )
        given = {p.name: getattr(options, p.name) for p in preset.parameters if is_given(p.name, arguments)}
        config = preset.decide(merge(config, document), **given)
    return options, config, rest


def is_given(parameter: str, arguments: Sequence[str]) -> bool:
    """Whether the command line names a parameter of the preset."""
    word = parameter.replace("_", "-")
    return any(argument.partition("=")[0] in (f"--{word}", f"--no-{word}") for argument in arguments)


def _print_help(preset: Preset, arguments: list[str]) -> None:
    _, config, _ = _before_flags(preset, arguments)
    command_parser(preset).print_help()
    print(flush=True)
    print_flags(config, prog=f"optimist train {preset.name}")
