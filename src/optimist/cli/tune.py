"""`optimist tune PRESET --search …`: looks for good settings, on this machine or a Ray cluster, and can be stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optimist.cli.arguments import Parser, print_result, refuse_unknown, told_how_to_go_on
from optimist.errors import ConfigError

USAGE = (
    "optimist tune PRESET --search SETTING=LOW..HIGH [--search …] [--space FILE] [--trials N] [--seeds N] [-o DIR] "
    "[--prune] [--jobs N] [--ray auto|ADDRESS] [--any.setting VALUE]"
)
EPILOG = """Where to look, by flags or in a TOML file:

  --search algorithm.learning_rate=log:1e-4..1e-2     learning_rate = {low = 1e-4, high = 1e-2, log = true}
  --search opr.percentile=50..95                      percentile = {low = 50, high = 95}
  --search network.activation=tanh,relu               activation = ["tanh", "relu"]

Running it again goes on until there are --trials trials. Exit code 1: not one trial could be completed."""


def main(argv: Sequence[str]) -> int:
    """Searches, and prints the best settings."""
    arguments = list(argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        _complete(Parser(prog="optimist tune", usage=USAGE, description="Search for good settings.", epilog=EPILOG))
        return 0 if arguments else 2
    if arguments[0].startswith("-"):
        raise ConfigError(f"the preset comes first: optimist tune PRESET {' '.join(arguments)}")
    name = arguments.pop(0)
    search, options = _read(name, arguments)

    from optimist.sweep.tune import run_tune

    out = options.out or Path("tune") / name.replace("/", "-")
    say = (lambda text: None) if options.quiet else _say
    with told_how_to_go_on():
        lines = run_tune(search, out, options.trials, ray=options.ray, jobs=options.jobs, say=say)
    best = lines[0] if lines and lines[0]["value"] is not None else None
    if not options.quiet:
        print(_result(name, out, best, len(lines)))
    if options.json:
        print_result({"out": str(out), "trials": len(lines), "best": best}, as_json=True)
    return 0 if best else 1


def _add_flags(parser: Parser) -> None:
    parser.add_argument("--search", action="append", default=[], metavar="NAME=WHERE", help="a setting to search for")
    parser.add_argument("--space", type=Path, metavar="FILE", help="TOML file with settings to search for")
    parser.add_argument("--trials", type=int, default=20, metavar="N", help="trials in the folder (default: 20)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of a trial (default: 3)")
    parser.add_argument("--statistic", default="auto", metavar="NAME", help="auto, final, last-100 or best-epoch")
    parser.add_argument("--prune", action="store_true", help="give up trials below the median at ¼, ½ or ¾ of the way")
    parser.add_argument("--jobs", type=int, metavar="N", help="most runs at a time (default: as cores and GPUs allow)")
    parser.add_argument("--ray", metavar="auto|ADDRESS", help="do the runs on a Ray cluster; DIR is on a shared path")
    parser.add_argument("-o", dest="out", type=Path, metavar="DIR", help="folder (default: tune/<preset>)")


def _complete(parser: Parser) -> None:
    _add_flags(parser)
    parser.print_help()


def _read(name: str, arguments: list[str]) -> tuple[Any, Any]:
    """The search and the command's options; every setting of the preset is a flag, as in `train`."""
    from optimist.cli.flags import apply_flags, flag_names
    from optimist.cli.train import command_parser
    from optimist.presets import get_preset
    from optimist.sweep.space import space_from_file, space_from_flags
    from optimist.sweep.tune import Search
    from optimist.tracking.config_io import merge, read_toml

    preset = get_preset(name)
    parser = command_parser(preset)
    parser.prog, parser.usage = f"optimist tune {name}", USAGE.replace("PRESET", name)
    _add_flags(parser)
    if any(word in ("-h", "--help") for word in arguments):
        parser.epilog = f"{EPILOG}\n\nEvery setting of the preset is a flag too: optimist train {name} --help"
        parser.print_help()
        raise SystemExit(0)
    options, rest = parser.parse_known_args(arguments)
    config = preset(**{parameter.name: getattr(options, parameter.name) for parameter in preset.parameters})
    if options.config is not None:
        config = merge(config, read_toml(options.config))
    config, unknown = apply_flags(config, rest, prog=parser.prog)
    refuse_unknown(unknown, [*parser.flags(), *flag_names(config)], parser.prog)
    if options.trials < 1 or options.seeds < 1:
        raise ConfigError(f"--trials and --seeds must be at least 1, got {options.trials}, {options.seeds}")
    if options.space is not None and options.search:
        raise ConfigError("--space and --search are two ways to say the same; use one of them")
    space = (
        space_from_flags(options.search, config) if options.space is None else space_from_file(options.space, config)
    )
    return (
        Search(config=config, space=space, seeds=options.seeds, statistic=options.statistic, prune=options.prune),
        options,
    )


def _say(text: str) -> None:
    import sys

    print(text, file=sys.stderr, flush=True)


def _result(name: str, out: Path, best: dict[str, Any] | None, trials: int) -> str:
    if best is None:
        return f"not one of {trials} trials could be completed; see {out}/trials.jsonl"
    from optimist.sweep.trials import digits

    settings = ", ".join(f"{key} = {value}" for key, value in best["params"].items())
    return (
        f"best of {trials} trials: trial {best['trial']}, {digits(best['value'], 4)} with {settings}\n"
        f"A maximum over trials, biased upwards: run it again on new seeds, with the flags given here and "
        f"optimist train {name} --config {out}/best.toml"
    )
