"""Emulator: one game stepped in the calling thread, bit for bit as ALE's vector environment steps it.

ALE's vector environment passes every step to a thread of its pool, and waiting threads busy-wait at first. In a worker
process with a few emulators this costs twice the time of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.buffers import OBS_SIZE, SharedBuffers
from optimist.envs.atari.games import find_rom, import_ale

FRAME_SKIP = 4
"""Frames of one step: the action is repeated, and the last two frames are max-pooled."""
MAX_COVERED = 4
"""Most source pixels that one resized pixel covers along an axis, for axes of up to 250 pixels."""
Function = TypeVar("Function", bound=Callable[..., Any])
AreaWeights = tuple[NDArray[np.int64], NDArray[np.float32]]


def cached_njit(function: Function) -> Function:
    """Compile at the first call, without the GIL; cache on disk where Numba finds a writable folder."""
    import numba

    try:
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # no writable cache folder: each process compiles its own
        return cast(Function, numba.njit(nogil=True)(function))


class InitialState(NamedTuple):
    """The emulator state at the start of an episode, and its screens."""

    state: Any
    screens: NDArray[np.uint8]


class Emulator:
    """One game that writes into one row of the shared buffers: raw rewards, lost lives end nothing, same-step reset.

    An episode starts from the initial state of the episode before, so the next episode can be prepared while the
    current one runs. Sticky actions are the exception: their random numbers continue from episode to episode, so
    nothing can be prepared.
    """

    def __init__(self, game: str, row: SharedBuffers, *, sticky: float, no_ops: int, max_frames: int) -> None:
        ale = import_ale()
        ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
        self.row, self.sticky, self.no_ops, self.max_frames = row, sticky, no_ops, max_frames
        self.obs: NDArray[np.uint8] = row.obs[0]
        self.rom = ale.roms.get_rom_path(find_rom(game))
        self.ale = ale.ALEInterface()
        self.ale.setFloat("repeat_action_probability", sticky)
        self.ale.loadROM(self.rom)
        self.actions = self.ale.getMinimalActionSet()
        self.no_op, self.fire = ale.Action.NOOP, ale.Action.FIRE
        self.has_fire = self.fire in self.actions
        height, width = self.ale.getScreenDims()
        self.screens = np.zeros((2, height, width), np.uint8)
        self.weights = area_weights(height), area_weights(width)
        self.rng = np.random.RandomState()
        self.frames = 0
        self.initial_state: Any = None  # of the current episode
        self.prepared: InitialState | None = None  # of the next episode

    def reset(self, seed: int) -> None:
        """Start a new episode; a seed of at least 0 reseeds the random generators."""
        if seed >= 0:
            self.rng = np.random.RandomState(seed)
            self.ale.setInt("random_seed", seed)
            self.ale.loadROM(self.rom)
            self.initial_state = self.prepared = None
        self._start_episode()
        self.row.results["lives"] = self.ale.lives()

    def step(self) -> None:
        """One step with the action in the buffers; write its result there."""
        ale, action, reward = self.ale, self.actions[int(self.row.actions[0])], 0
        ends = False
        for remaining in reversed(range(FRAME_SKIP)):
            reward += ale.act(action)
            self.frames += 1
            if ends := ale.game_over() or self.frames >= self.max_frames:
                break  # without reading the last frame, as in ALE
            if remaining < 2:
                ale.getScreenGrayscale(self.screens[remaining])
        self.obs[:-1] = self.obs[1:]
        max_pool_and_resize(self.screens, *self.weights, self.obs[-1])
        over = ale.game_over()
        result = self.row.results[0]
        result["reward"], result["terminated"], result["truncated"] = reward, over, ends and not over
        if ends:
            self.row.final_obs[0] = self.obs
            self._start_episode()
        result["lives"] = ale.lives()

    def pre_reset(self) -> None:
        """Prepare the initial state of the next episode if possible: this takes as long as 20 steps."""
        if self.prepared is None and not self.sticky:
            state = self._clone_state()
            self.prepared = self._make_initial_state()
            self.ale.restoreState(state)

    def _start_episode(self) -> None:
        """Load the next initial state; only the newest frame of the stack is not zero."""
        start = self.prepared or self._make_initial_state()
        self.initial_state, self.prepared, self.frames = start.state, None, 0
        self.ale.restoreState(self.initial_state)
        self.screens[:] = start.screens
        self.obs[:-1] = 0
        max_pool_and_resize(self.screens, *self.weights, self.obs[-1])

    def _make_initial_state(self) -> InitialState:
        """Reset the console, press FIRE if the game has it, then take a random number of no-ops."""
        ale = self.ale
        if self.initial_state is not None and not self.sticky:
            ale.restoreState(self.initial_state)
        ale.reset_game()
        frames = self._random_below(self.no_ops + 1) - self.has_fire
        if self.has_fire:
            ale.act(self.fire)
        for _ in range(frames):
            ale.act(self.no_op)
            if ale.game_over():
                ale.reset_game()
        screens = np.zeros_like(self.screens)
        ale.getScreenGrayscale(screens[0])
        return InitialState(self._clone_state(), screens)

    def _clone_state(self) -> Any:
        return self.ale.cloneState(include_rng=True)  # a reset fills the console's memory from this generator

    def _random_below(self, bound: int) -> int:
        """A number in [0, bound), drawn as C++'s standard library draws it from a Mersenne Twister."""
        while True:
            product = int(self.rng.randint(0, 2**32, dtype=np.uint32)) * bound
            if (product & 0xFFFFFFFF) >= (2**32 - bound) % bound:
                return product >> 32


@cache
def area_weights(length: int) -> AreaWeights:
    """For each of 84 resized pixels: its first source pixel [84], and the weights [84, 4] of the pixels it covers."""
    scale = length / OBS_SIZE
    first_pixels, weights = np.zeros(OBS_SIZE, np.int64), np.zeros((OBS_SIZE, MAX_COVERED), np.float32)
    for pixel in range(OBS_SIZE):
        left, right = pixel * scale, min((pixel + 1) * scale, float(length))
        first, last = int(np.ceil(left)), min(int(np.floor(right)), length - 1)
        width = min(scale, length - left)
        first_pixels[pixel] = first
        covered = []
        if first - left > 1e-3:
            first_pixels[pixel] = first - 1
            covered.append((first - left) / width)
        covered += [1.0 / width] * (last - first)
        if right - last > 1e-3:
            covered.append(min(right - last, 1.0, width) / width)
        weights[pixel, : len(covered)] = covered
    return first_pixels, weights


@cached_njit
def max_pool_and_resize(
    screens: NDArray[np.uint8], rows: AreaWeights, columns: AreaWeights, frame: NDArray[np.uint8]
) -> None:
    """Max-pool two screens into the first, and write its area-resized 84 × 84 version to `frame`.

    Sums and rounding have the order of OpenCV's INTER_AREA: area means halfway between two integers are frequent, and
    have to be rounded in the same direction.
    """
    height, width = screens.shape[1:]
    first_rows, row_weights = rows
    first_columns, column_weights = columns
    line = np.zeros(width + MAX_COVERED, np.float32)  # padded: weights of pixels that are not covered are 0
    lines = np.zeros((height + MAX_COVERED, OBS_SIZE), np.float32)
    for y in range(height):
        for x in range(width):
            screens[0, y, x] = max(screens[0, y, x], screens[1, y, x])
            line[x] = screens[0, y, x]
        for x in range(OBS_SIZE):
            first = first_columns[x]
            total = line[first] * column_weights[x, 0]
            total += line[first + 1] * column_weights[x, 1]
            lines[y, x] = total + line[first + 2] * column_weights[x, 2]
    for y in range(OBS_SIZE):
        first = first_rows[y]
        for x in range(OBS_SIZE):
            total = lines[first, x] * row_weights[y, 0]
            total += lines[first + 1, x] * row_weights[y, 1]
            total += lines[first + 2, x] * row_weights[y, 2]
            frame[y, x] = np.rint(total + lines[first + 3, x] * row_weights[y, 3])


def compile_resize() -> None:
    """Compile `max_pool_and_resize` before its first use."""
    screens = np.zeros((2, OBS_SIZE, OBS_SIZE), np.uint8)
    max_pool_and_resize(screens, area_weights(OBS_SIZE), area_weights(OBS_SIZE), screens[0].copy())
