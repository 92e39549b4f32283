"""Report words that the project does not use, with what to say instead; `words.toml` lists them.

python tools/check_words.py [PATH ...]    with paths: each use below them; without: a count for each folder
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FOLDERS = ["src", "packages", "tests", "docs", "examples", "benchmarks", "experiments"]
SEARCHED = [*FOLDERS, ":(glob)*.md", "pyproject.toml", "Makefile", ":!tests/docs/test_words.py", ":!*/vendor/*"]
SUFFIXES = {".py", ".md", ".toml", ".html", ".css", ".js", ".cpp", ".h", ""}
MAX_ALLOWED = 40


class Use(NamedTuple):
    """One use of a word: its file, its line (0: the file's name), and what to say instead."""

    path: str
    line: int
    word: str
    say: str


def split_names(text: str) -> str:
    """Put a space between the words of each name; line breaks stay where they are."""
    return re.sub(r"(?<=\w)_+(?=\w)|(?<=[a-z])(?=[A-Z])", " ", text)


def whole_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern: lower case matches any case, a space any white space."""
    flags = 0 if re.search("[A-Z]", pattern) else re.IGNORECASE
    return re.compile(r"(?<![^\W_])(?:" + pattern.replace(" ", r"[\s#]+") + r")(?![^\W_])", flags)


def uses(path: str, text: str, words: list[dict[str, Any]]) -> list[Use]:
    """Find the listed words in a file's name and text."""
    found = []
    for entry in words:
        true_use = re.compile("|".join(entry.get("true_use", ["(?!)"])), re.IGNORECASE)
        for first_line, part in ((0, path), (1, text)):
            part = split_names(true_use.sub("", part))
            for pattern in entry["not"]:
                for match in whole_words(pattern).finditer(part):
                    line = first_line + part.count("\n", 0, match.start())
                    found.append(Use(path, line, " ".join(match[0].split()).lower(), entry["say"]))
    return found


def main(paths: list[str]) -> int:
    """Print what is found; the exit code is 1 if that is anything."""
    rules = tomllib.loads((HERE / "words.toml").read_text("utf-8"))
    allowed = [(entry["file"], entry["word"]) for entry in rules["allowed"] if entry["reason"]]
    if len(allowed) > MAX_ALLOWED:
        sys.exit(f"words.toml allows {len(allowed)} uses; expected at most {MAX_ALLOWED}; rewrite the others")
    list_files = ["git", "-C", str(HERE.parent), "ls-files", "-co", "--exclude-standard", *SEARCHED]
    files = sorted({*subprocess.run(list_files, check=True, capture_output=True, text=True).stdout.splitlines()})
    files = [file for file in files if Path(file).suffix in SUFFIXES and (HERE.parent / file).is_file()]
    found = [use for file in files for use in uses(file, (HERE.parent / file).read_text("utf-8"), rules["words"])]
    found = [use for use in found if not any(use.path.startswith(file) and use.word == word for file, word in allowed)]
    if paths:
        found = [use for use in found if use.path.startswith(tuple(paths))]
        print(*(f"{use.path}:{use.line}: {use.word!r}; say: {use.say}\n" for use in found), sep="", end="")
    else:
        folders = Counter(re.sub(r"^((src/optimist|tests|packages)/)?([^/]+).*", r"\1\3", use.path) for use in found)
        print(*(f"{count:5} {folder}\n" for folder, count in sorted(folders.items())), sep="", end="")
        print(f"{len(found)} uses of listed words; `python tools/check_words.py PATH ...` shows them")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
