"""The 49 games: cartridge, console settings, and the rules of reward, lives and end as data in `games.json`."""

from __future__ import annotations

import ast
import ctypes
import difflib
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from a2600.errors import InexactGame, RomError, UnknownGame

KINDS = {"2K": 0, "4K": 0, "F8": 1, "F6": 2, "E0": 3, "FE": 4}
"""Cartridge kinds, as numbers of the core."""
MAX_CODE, MAX_ROWS = 512, 10
RULES = [
    "END",
    "CONST",
    "RAM",
    "BEFORE",
    "SCORE0",
    "LIVES0",
    "STARTED",
    "OVER",
    "CHANGE",
    "ADD",
    "SUB",
    "MUL",
    "MOD",
    "SHR",
    "BITAND",
    "EQ",
    "NE",
    "LT",
    "LE",
    "GT",
    "GE",
    "AND",
    "OR",
    "NOT",
    "SELECT",
    "MAX",
    "MIN",
    "ABS",
    "NEG",
    "BCD",
    "LO",
    "HI",
    "D8",
    "X8",
    "BL",
    "KO",
    "POPCOUNT",
]
"""Instructions of the core's stack machine for rules, in its order."""
NAMES = {"score0": "SCORE0", "lives0": "LIVES0", "started": "STARTED", "over": "OVER", "d": "CHANGE"}
BINARY = {ast.Add: "ADD", ast.Sub: "SUB", ast.Mult: "MUL", ast.Mod: "MOD", ast.RShift: "SHR", ast.BitAnd: "BITAND"}
COMPARE = {ast.Eq: "EQ", ast.NotEq: "NE", ast.Lt: "LT", ast.LtE: "LE", ast.Gt: "GT", ast.GtE: "GE"}
ACTIONS = [
    "NOOP",
    "FIRE",
    "UP",
    "RIGHT",
    "LEFT",
    "DOWN",
    "UPRIGHT",
    "UPLEFT",
    "DOWNRIGHT",
    "DOWNLEFT",
    "UPFIRE",
    "RIGHTFIRE",
    "LEFTFIRE",
    "DOWNFIRE",
    "UPRIGHTFIRE",
    "UPLEFTFIRE",
    "DOWNRIGHTFIRE",
    "DOWNLEFTFIRE",
]
"""Names of the 18 actions, in ale-py's order."""


class Settings(ctypes.Structure):
    """The core's `Settings`."""

    _fields_ = [
        ("id", ctypes.c_uint64),
        *(
            (name, ctypes.c_int32)
            for name in ["kind", "size", "first_line", "comb", "paddle", "fire_bit", "right_port", "setup_frames"]
        ),
        ("reset", ctypes.c_int32 * 5 * MAX_ROWS),
    ]


class Rules(ctypes.Structure):
    """The core's `Rules`."""

    _fields_ = [
        ("code", ctypes.c_int32 * MAX_CODE),
        ("start", ctypes.c_int32 * 5),
        ("lives_at_reset", ctypes.c_int32),
        ("started_at_reset", ctypes.c_int32),
    ]


@dataclass(frozen=True)
class Game:
    """One game.

    `reset`: rows of (action, switches, frames, frames without them, times) that follow when the processor starts; the
    last two are 0 and 1 if left out. Switches: 1 reset, 2 select.
    """

    name: str
    kind: str
    md5: str
    size: int
    actions: list[int]
    reset: list[list[int]]
    score: str
    reward: str
    lives: str
    lives_at_reset: int
    end: str
    started: str = ""
    started_at_reset: int = 0
    first_line: int = 34
    comb: bool = True
    paddle: int = -1
    fire_bit: int = 0
    right_port: bool = False
    setup_frames: int = 0
    inexact: str = ""

    @property
    def settings(self) -> Settings:
        """The console settings for the core."""
        settings = Settings(id=int(self.md5[:16], 16), kind=KINDS[self.kind])
        for name in ("size", "first_line", "comb", "paddle", "fire_bit", "right_port", "setup_frames"):
            setattr(settings, name, int(getattr(self, name)))
        for row, values in enumerate(self.reset):
            settings.reset[row][:] = [*values, *(0, 1)[len(values) - 3 :]]
        return settings

    @property
    def rules(self) -> Rules:
        """The rules, compiled for the core."""
        rules, code = Rules(lives_at_reset=self.lives_at_reset, started_at_reset=self.started_at_reset), list[int]()
        for index, text in enumerate((self.started, self.score, self.end, self.reward, self.lives)):
            rules.start[index] = len(code) if text else -1
            code += compile_rule(text) if text else []
        rules.code[: len(code)] = code
        return rules


@cache
def all_games() -> dict[str, Game]:
    """The games by name."""
    entries = json.loads((Path(__file__).parent / "games.json").read_text("utf-8"))
    return {name: Game(name=name, **entry) for name, entry in entries.items()}


def find_game(name: str, *, allow_inexact: bool = False) -> Game:
    """The game of a name like `ms_pacman`, `MsPacman` or `a2600/MsPacman-v0`."""
    plain = _plain(name)
    by_plain = {_plain(game): game for game in all_games()}
    if plain not in by_plain:
        close = difflib.get_close_matches(plain, by_plain, 1)
        hint = f"did you mean '{by_plain[close[0]]}'?" if close else "`a2600 games` lists the games"
        raise UnknownGame(f"no game '{name}' among the {len(by_plain)} supported games; {hint}")
    game = all_games()[by_plain[plain]]
    if game.inexact and not allow_inexact:
        raise InexactGame(f"{game.name} differs from ale-py ({game.inexact}); pass allow_inexact=True to run it")
    return game


def gym_name(name: str) -> str:
    """`ms_pacman` → `MsPacman`."""
    return "".join(part.capitalize() for part in name.split("_"))


def read_rom(game: Game, folder: str | os.PathLike[str] | None = None) -> bytes:
    """The cartridge of a game from a folder, `A2600_ROMS`, or ale-py's package; its MD5 sum has to be the known one."""
    chosen = folder or os.environ.get("A2600_ROMS")
    if chosen is None:
        try:
            import ale_py.roms
        except ImportError:
            raise RomError("no ROM folder: install ale-py, or set A2600_ROMS to a folder with .bin files") from None
        chosen = Path(ale_py.roms.__file__).parent
    path = Path(chosen) / f"{game.name}.bin"
    try:
        rom = path.read_bytes()
    except OSError as error:
        raise RomError(
            f"cannot read {path} ({error.strerror}); expected the {game.size} bytes of {game.name}"
        ) from None
    if len(rom) != game.size:
        raise RomError(f"{path} has {len(rom)} bytes, expected {game.size}; use the ROM of ale-py's package")
    if (found := hashlib.md5(rom, usedforsecurity=False).hexdigest()) != game.md5:
        raise RomError(f"{path} has the MD5 sum {found}, expected {game.md5}; use the ROM of ale-py's package")
    return rom


def compile_rule(text: str) -> list[int]:
    """An expression over RAM → a program of the core's stack machine."""
    words: list[Any] = []

    def emit(*parts: ast.expr | str | int) -> None:
        for part in parts:
            if isinstance(part, ast.expr):
                expression(part)
            else:
                words.append(part)

    def expression(node: ast.expr) -> None:
        match node:
            case ast.Constant(value=int() as value):
                emit("CONST", int(value))
            case ast.Name(id=name):
                emit(NAMES[name])
            case ast.Subscript(value=ast.Name(id=array), slice=ast.Constant(value=int() as index)):
                emit("RAM" if array == "R" else "BEFORE", index)
            case ast.BinOp(left=left, op=operator, right=right):
                emit(left, right, BINARY[type(operator)])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                emit(operand, "NEG")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                emit(operand, "NOT")
            case ast.BoolOp(op=both, values=values):
                emit(values[0])
                for other in values[1:]:
                    emit(other, "AND" if isinstance(both, ast.And) else "OR")
            case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=choices)]):
                for number, choice in enumerate(choices):
                    emit(left, choice, "EQ", *["OR"] * (number > 0))
            case ast.Compare(left=left, ops=[relation], comparators=[right]):
                emit(left, right, COMPARE[type(relation)])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                emit(test, body, orelse, "SELECT")
            case ast.Call(func=ast.Name(id=name), args=args):
                emit(*args, name.upper())
            case _:
                raise ValueError(f"a rule cannot contain {ast.unparse(node)}")

    emit(ast.parse(text, mode="eval").body)
    return [RULES.index(word) if isinstance(word, str) else word for word in [*words, "END"]]


def _plain(name: str) -> str:
    return (
        name.removeprefix("a2600/")
        .removeprefix("ALE/")
        .removesuffix("-v0")
        .removesuffix("-v5")
        .replace("_", "")
        .lower()
    )
