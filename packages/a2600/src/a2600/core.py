"""The compiled core, loaded with ctypes."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from a2600.errors import A2600Error, CoreMissing
from a2600.games import Game, Rules, Settings, read_rom

POINTER, INT, SIZE = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t
FUNCTIONS = {
    "level": (INT, []),
    "game_new": (POINTER, [ctypes.c_char_p, ctypes.POINTER(Settings), ctypes.POINTER(Rules)]),
    "game_free": (None, [POINTER]),
    "console_size": (SIZE, []),
    "load": (None, [POINTER, POINTER]),
    "reset": (None, [POINTER, POINTER]),
    "act": (None, [POINTER, POINTER, INT, INT]),
    "ram": (POINTER, [POINTER]),
    "screen": (POINTER, [POINTER]),
    "signals": (None, [POINTER, POINTER]),
    "pool_new": (POINTER, [POINTER, POINTER, POINTER, POINTER, POINTER, INT, INT, INT]),
    "pool_free": (None, [POINTER]),
    "pool_bind": (None, [POINTER, POINTER, POINTER, POINTER]),
    "pool_send": (None, [POINTER, POINTER, INT]),
    "pool_receive": (INT, [POINTER, POINTER, INT, INT, ctypes.c_double]),
    "pool_env_size": (SIZE, [POINTER]),
    "pool_save": (None, [POINTER, INT, POINTER]),
    "pool_load": (INT, [POINTER, INT, POINTER]),
    "pool_peek": (None, [POINTER, INT, POINTER, POINTER]),
}
"""Functions of the C interface: result and arguments."""
LEVELS = {4: "v4", 3: "v3", 0: "base"}
"""Builds for processors with AVX-512, AVX2, and any."""
WIDTH, HEIGHT = 160, 210


def library_path(level: int) -> Path:
    """Where the build for this level is installed."""
    return Path(__file__).parent / f"_core_{LEVELS[level]}.so"


@cache
def load_core() -> ctypes.CDLL:
    """The fastest build that the processor runs; `A2600_CORE` names another library."""
    chosen = os.environ.get("A2600_CORE")
    base = Path(chosen).absolute() if chosen else library_path(0)
    try:
        core = _declare(ctypes.CDLL(str(base)))
    except OSError as error:
        raise CoreMissing(
            f"the compiled core {base} cannot be loaded ({error}); "
            "build it where a C++17 compiler is installed: pip install ./packages/a2600"
        ) from None
    if chosen:
        return core
    best = next(level for level in LEVELS if level <= core.a2600_level() and library_path(level).is_file())
    return core if best == 0 else _declare(ctypes.CDLL(str(library_path(best))))


def _declare(core: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(core, f"a2600_{name}")
        function.restype, function.argtypes = result, arguments
    return core


class Cartridge:
    """A game with its ROM, decoded for the core; shared by all its consoles."""

    def __init__(self, game: Game, rom_folder: str | os.PathLike[str] | None = None) -> None:
        self.game, self.core = game, load_core()
        rom = read_rom(game, rom_folder)
        self.handle = self.core.a2600_game_new(rom, ctypes.byref(game.settings), ctypes.byref(game.rules))
        if not self.handle:
            raise A2600Error(f"the core refused the settings or rules of {game.name}; reinstall a2600")

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.core.a2600_game_free(self.handle)


class Console:
    """One console that is played frame by frame: the unit that `a2600 verify` compares."""

    def __init__(self, game: Game, rom_folder: str | os.PathLike[str] | None = None) -> None:
        self.cartridge = Cartridge(game, rom_folder)
        self.core, self.game = self.cartridge.core, self.cartridge.handle
        self.memory = np.zeros(self.core.a2600_console_size() // 8 + 1, np.uint64)
        self.address = self.memory.ctypes.data
        self.core.a2600_load(self.game, self.address)
        self._signals = np.zeros(3, np.int32)

    def reset(self) -> None:
        """Press reset, as ale-py does before an episode."""
        self.core.a2600_reset(self.game, self.address)

    def act(self, action: int, *, drawn: bool = True) -> tuple[int, int, bool]:
        """Play one frame. Returns reward, lives, and whether the game is over."""
        if not 0 <= action < 18:
            raise A2600Error(f"action must be in [0, 18), got {action}")
        self.core.a2600_act(self.game, self.address, action, drawn)
        self.core.a2600_signals(self.address, self._signals.ctypes.data)
        reward, lives, over = self._signals.tolist()
        return reward, lives, bool(over)

    @property
    def ram(self) -> NDArray[np.uint8]:
        """A copy of the 128 bytes of RAM."""
        return np.frombuffer(ctypes.string_at(self.core.a2600_ram(self.address), 128), np.uint8)

    @property
    def screen(self) -> NDArray[np.uint8]:
        """A copy of the picture as colour numbers, [210, 160]."""
        pixels = ctypes.string_at(self.core.a2600_screen(self.address), WIDTH * HEIGHT)
        return np.frombuffer(pixels, np.uint8).reshape(HEIGHT, WIDTH)
