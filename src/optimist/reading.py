"""Read files that may come from a stranger: regular files, no links, of bounded size, and strict JSON.

Problems of a file are an OSError whose `strerror` says what was found and what was expected; problems of its content
are a ValueError. Callers name the file.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MIB = 2**20
DOCUMENT = 4 * MIB
"""Largest config, summary, or other document that is read as a whole, in bytes."""
LINES = 1024 * MIB
"""Largest file that is read line by line, in bytes."""
LINE = 4 * MIB
"""Longest line of a file that is read line by line, in bytes."""
VALUES = 400_000
"""Most values in one JSON document: each takes about a hundred bytes in memory, even a short one."""
DEPTH = 64
"""Most levels of nesting in a document."""
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file for reading; a link, FIFO or device raises instead of being followed or waited for."""
    require_regular(path)
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # exchanged since
        file.close()
        raise _refused(path, "not a regular file")
    return file


def require_regular(path: Path) -> None:
    """Raise unless the path is a regular file."""
    kind = stat.S_IFMT(os.lstat(path).st_mode)
    if kind != stat.S_IFREG:
        raise _refused(path, f"it is {KINDS.get(kind, 'no file')}; expected a regular file")


def require_folder(path: Path) -> None:
    """Raise unless the path is a folder, and no link to one."""
    kind = stat.S_IFMT(os.lstat(path).st_mode)
    if kind != stat.S_IFDIR:
        raise _refused(path, f"it is {KINDS.get(kind, 'a file')}; expected a folder")


def read_bytes(path: Path, limit: int = DOCUMENT) -> bytes:
    """The content of a regular file of at most `limit` bytes."""
    with open_regular(path) as file:
        _check_size(path, os.fstat(file.fileno()).st_size, limit)
        content = file.read(limit + 1)
    _check_size(path, len(content), limit)
    return content


def read_text(path: Path, limit: int = DOCUMENT) -> str:
    """The content of a text file of at most `limit` bytes."""
    return read_bytes(path, limit).decode()


def read_lines(path: Path, *, complete: bool = False) -> Iterator[bytes]:
    """The lines of a file, one at a time; one longer than `LINE` comes out empty, as a damaged line.

    `complete`: leave out a last line without a line break, which is still being written.
    """
    with open_regular(path) as file:
        _check_size(path, os.fstat(file.fileno()).st_size, LINES)
        while line := file.readline(LINE):
            too_long = False
            while len(line) == LINE and not line.endswith(b"\n"):
                too_long, line = True, file.readline(LINE)
            if line.endswith(b"\n") or not complete:
                yield b"" if too_long else line


def read_json(path: Path, limit: int = DOCUMENT) -> Any:
    """The value in a JSON file of at most `limit` bytes, strictly."""
    return parse_json(read_text(path, limit))


def parse_json(text: str | bytes) -> Any:
    """The value in a JSON text; raise ValueError for NaN, duplicate keys, deep nesting and too many values.

    Control characters in keys and values raise too: they would reach a terminal.
    """
    text = text if isinstance(text, str) else text.decode()
    count = sum(text.count(mark) for mark in ",[{")
    if count > VALUES:
        raise ValueError(f"it has about {count:,} values; expected at most {VALUES:,}")
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    require_plain(value, texts=not text.isascii() or "\\u" in text or "\x7f" in text)  # json refuses other controls
    return value


def require_plain(value: Any, *, texts: bool = True) -> None:
    """Raise ValueError where a value is nested deeper than `DEPTH`, or a text in it would control a terminal."""
    level = [value]
    for _ in range(DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
                below += item if texts else ()
            elif isinstance(item, list):
                below += item
            elif texts and isinstance(item, str) and printable(item) != item:
                raise ValueError(f"it holds control characters, in {printable(item)[:80]!r}")
        if not below:
            return
        level = below
    raise ValueError(f"it is nested too deeply; expected at most {DEPTH} levels")


def printable(text: str) -> str:
    """The text with `?` for each character that controls a terminal; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(character if _is_harmless(character) else "?" for character in text)


def _is_harmless(character: str) -> bool:
    code = ord(character)
    controls = code < 0x20 or 0x7F <= code < 0xA0
    directs = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069  # order of writing
    return character in "\n\t" or not (controls or directs)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key '{name[:80]}' appears twice")
        found[name] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise _refused(path, f"it has {size:,} bytes; expected at most {limit:,}", errno.EFBIG)


def _refused(path: Path, reason: str, number: int = errno.EINVAL) -> OSError:
    return OSError(number, reason, str(path))
