"""Files that may come from a stranger: kinds of file, size, and strict JSON."""

import os
import socket

import pytest

from optimist import reading
from optimist.reading import parse_json, printable, read_bytes, read_json, read_lines, require_folder, require_plain


def make_link(path):
    target = path.with_name("target")
    target.write_text("{}")
    path.symlink_to(target)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


KINDS = {"link": make_link, "folder": os.mkdir, "FIFO": os.mkfifo, "socket": make_socket}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    path = tmp_path / "config.toml"
    KINDS[kind](path.relative_to(tmp_path) if kind == "socket" else path)
    with pytest.raises(OSError) as refused:
        read_bytes(path)
    assert refused.value.strerror == f"it is a {kind}; expected a regular file"


def test_a_device_is_refused():
    with pytest.raises(OSError, match="it is a device"):
        read_bytes(reading.Path("/dev/zero"))


def test_a_link_to_a_folder_is_no_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    require_folder(tmp_path / "real")
    with pytest.raises(OSError, match="it is a link; expected a folder"):
        require_folder(tmp_path / "link")


def test_a_file_above_the_limit_is_not_read(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(OSError, match="1,000,000,000,000 bytes; expected at most 4,194,304"):
        read_bytes(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' appears twice"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 70 + "]" * 70, "nested too deeply; expected at most 64 levels"),
        ("[" + "0," * 400_001 + "0]", "about 400,002 values; expected at most 400,000"),
        ("1" * 5_000, "digits"),
        (r'{"name": "\u001b[2J"}', "control characters"),
        (r'{"\u009b2J": 1}', "control characters"),
        ('["\u202etxt"]', "control characters"),
        ('["\x7f"]', "control characters"),
    ],
)
def test_hostile_json_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


def test_ordinary_json_is_read(tmp_path):
    (tmp_path / "summary.json").write_text('{"name": "π ≥ τ\\n", "values": [1, 2.5, null, true]}')
    assert read_json(tmp_path / "summary.json") == {"name": "π ≥ τ\n", "values": [1, 2.5, None, True]}


def test_lines_are_read_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LINE", 8)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"one\n" + b"x" * 30 + b"\n12345678\nfour\nlast")
    assert list(read_lines(path)) == [b"one\n", b"", b"", b"four\n", b"last"]
    assert list(read_lines(path, complete=True)) == [b"one\n", b"", b"", b"four\n"]


def test_nesting_is_limited():
    value = []
    for _ in range(reading.DEPTH - 2):
        value = [value]
    require_plain([value])
    with pytest.raises(ValueError, match="nested too deeply"):
        require_plain([[[value]]])


def test_control_characters_become_question_marks():
    assert printable("\x1b]0;title\x07 café τ\n\tend \x85") == "?]0;title? café τ\n\tend ?"
