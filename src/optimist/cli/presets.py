"""`optimist presets`: every preset with its description, and the flags of its family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from shutil import get_terminal_size
from textwrap import wrap

from optimist.cli.arguments import Parser, print_result
from optimist.presets import Preset, all_presets

WIDEST = 100
"""Columns that nobody has to follow with the eye."""


def main(argv: Sequence[str]) -> int:
    """Lists the presets."""
    parser = Parser(prog="optimist presets", description="List the presets, family by family, with their flags.")
    parser.add_argument("--json", action="store_true", help="one JSON object: name → description")
    options = parser.parse_all(list(argv))
    if options.json:
        print_result({preset.name: preset.description for preset in all_presets()}, as_json=True)
        return 0
    print("\n\n".join(_family(name, list(presets)) for name, presets in groupby(all_presets(), key=_family_name)))
    print("\nIn brackets: the flags of a preset that has others than its family.")
    print("optimist train PRESET --help lists every setting of a preset.")
    return 0


def _family_name(preset: Preset) -> str:
    return preset.name.partition("/")[0]


def _family(name: str, presets: list[Preset]) -> str:
    """The flags that most presets of a family have, then a preset a paragraph."""
    usual, _ = Counter(map(_flags, presets)).most_common(1)[0]
    width = min(get_terminal_size(fallback=(WIDEST, 24)).columns, WIDEST)
    indent = 4 + max(len(preset.name) for preset in all_presets())
    lines = [f"{name}  {usual}"]
    for preset in presets:
        lines += wrap(f"  {preset.name}".ljust(indent) + preset.description, width, subsequent_indent=" " * indent)
        if _flags(preset) != usual:
            lines += wrap(f"({_flags(preset)})", width, initial_indent=" " * indent, subsequent_indent=" " * indent)
    return "\n".join(lines)


def _flags(preset: Preset) -> str:
    words = []
    for parameter in preset.parameters:
        flag = f"--{parameter.name.replace('_', '-')}"
        words.append(flag if parameter.kind is bool else f"{flag} {parameter.default}")
    return " ".join(words)
