"""`optimist presets`: the families of presets; with FAMILY or --search WORD, each preset with its description."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from shutil import get_terminal_size
from textwrap import wrap

from optimist.cli.arguments import Parser, print_result
from optimist.errors import UnknownName, nearest, unknown_name
from optimist.presets import Preset, all_presets

MAX_COLUMNS = 100
NEXT = """optimist presets FAMILY          each preset of a family, with its flags
optimist presets --search WORD   each preset with a word in its description
optimist train FAMILY/PRESET     train one, for example deepsea/opr"""


def main(argv: Sequence[str]) -> int:
    """List families, or presets."""
    parser = Parser(prog="optimist presets", description="List the families of presets, or the presets of one.")
    parser.add_argument("family", nargs="?", metavar="FAMILY", help="list the presets of this family")
    parser.add_argument("--search", metavar="WORD", help="list the presets with this word in name or description")
    parser.add_argument("--json", action="store_true", help="one JSON object: name → description")
    options = parser.parse_all(list(argv))
    presets = _select(options.family, options.search)
    if options.json:
        print_result({preset.name: preset.description for preset in presets}, as_json=True)
        return 0
    if options.family is None and options.search is None:
        print("\n\n".join(_overview(list(found)) for _, found in groupby(presets, key=_family)))
        print(f"\n{NEXT}")
        return 0
    print("\n\n".join(_descriptions(list(found)) for _, found in groupby(presets, key=_family)))
    print(f"\noptimist train {presets[0].name} --help   its flags and most used settings")
    return 0


def _select(family: str | None, word: str | None) -> list[Preset]:
    """The presets of a family, or of all, that have the word."""
    presets = all_presets()
    if family is not None:
        families = list(dict.fromkeys(preset.family for preset in presets))
        if family not in families:
            raise unknown_name("family of presets", family, families)
        presets = [preset for preset in presets if preset.family == family]
    if word is None:
        return presets
    found = [preset for preset in presets if word.lower() in f"{preset.name} {preset.description}".lower()]
    if not found:
        words = {part for preset in presets for part in f"{preset.name} {preset.description}".replace("/", " ").split()}
        near = nearest(word, words)
        hint = f"did you mean '{near.strip('.,;:')}'?" if near else "`optimist presets` lists the families"
        raise UnknownName(f"no preset has '{word}' in its name or description; {hint}")
    return found


def _family(preset: Preset) -> str:
    return preset.family


def _overview(presets: list[Preset]) -> str:
    """What a family is about, and the names of its presets."""
    family, about = presets[0].family, inspect.getdoc(presets[0].build) or ""
    count = f"{len(presets)} preset{'s' * (len(presets) > 1)}."
    heading = _wrapped(f"{family}  {count} {about.partition(chr(10))[0]}", 2, first=0)
    return "\n".join([*heading, *_wrapped(" ".join(preset.name.partition("/")[2] for preset in presets), 2)])


def _descriptions(presets: list[Preset]) -> str:
    """The flags that most presets of a family have, then one paragraph per preset."""
    usual, _ = Counter(map(_flags, presets)).most_common(1)[0]
    indent = 4 + max(len(preset.name) for preset in presets)
    lines = [f"{presets[0].family}  {usual}"]
    for preset in presets:
        lines += _wrapped(f"  {preset.name}".ljust(indent) + preset.description, indent, first=0)
        if _flags(preset) != usual:
            lines += _wrapped(f"(flags: {_flags(preset)})", indent)
    return "\n".join(lines)


def _wrapped(text: str, indent: int, first: int | None = None) -> list[str]:
    """The text in lines of the terminal's width; `first`: indentation of the first line."""
    width = min(get_terminal_size(fallback=(MAX_COLUMNS, 24)).columns, MAX_COLUMNS)
    start = " " * (indent if first is None else first)
    return wrap(text, width, initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False)


def _flags(preset: Preset) -> str:
    words = []
    for parameter in preset.parameters:
        flag = f"--{parameter.name.replace('_', '-')}"
        words.append(flag if parameter.kind is bool else f"{flag} {parameter.default}")
    return " ".join(words)
