"""`optimist presets`: every preset with one line and its parameters."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.cli.arguments import Parser, print_result
from optimist.presets import Preset, all_presets


def main(argv: Sequence[str]) -> int:
    """Lists the presets."""
    parser = Parser(prog="optimist presets", description="List the presets: name, flags of its own, one line.")
    parser.add_argument("--json", action="store_true", help="one JSON object: name → description")
    options = parser.parse_all(list(argv))
    if options.json:
        print_result({preset.name: preset.description for preset in all_presets()}, as_json=True)
        return 0
    family = ""
    for preset in all_presets():
        if family and not preset.name.startswith(family):
            print()
        family = preset.name.partition("/")[0] + "/"
        print(f"{preset.name:<18} {_flags(preset):<28} {preset.description}")
    print("\noptimist train PRESET --help lists every setting of a preset.")
    return 0


def _flags(preset: Preset) -> str:
    words = []
    for parameter in preset.parameters:
        flag = f"--{parameter.name.replace('_', '-')}"
        words.append(flag if parameter.kind is bool else f"{flag} {parameter.default}")
    return " ".join(words)
