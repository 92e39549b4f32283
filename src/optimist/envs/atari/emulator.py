"""Emulator: one game on ale-py, bit for bit as ALE's vector environment steps it; it saves and restores its state.

ALE's vector environment cannot save its state. Nor does a saved state of ALE hold the action that sticky actions
repeat, so sticky actions are drawn here, in ALE's order, and ALE itself repeats nothing.
"""

from __future__ import annotations

import io
import zlib
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.buffers import SharedBuffers
from optimist.envs.atari.games import find_rom, import_ale
from optimist.envs.atari.resize import area_weights, max_pool_and_resize
from optimist.errors import CheckpointError

DAMAGE = (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error, SystemError)
"""What reading a damaged state raises: a file of NumPy, and ALE (SystemError)."""
FRAME_SKIP = 4
"""Frames of one step: the action is repeated, and the last two frames are max-pooled."""


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

    def __init__(
        self, game: str, row: SharedBuffers, *, sticky: float, no_ops: int, max_frames: int, in_color: bool = False
    ) -> None:
        """`in_color`: also keep the picture that an observation shows, in colour; nothing is prepared then."""
        self.ale_py = import_ale()
        self.ale_py.ALEInterface.setLoggerMode(self.ale_py.LoggerMode.Error)
        self.row, self.sticky, self.no_ops, self.max_frames = row, sticky, no_ops, max_frames
        self.game, self.obs = game, row.obs[0]
        self.ale = self.ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(self.ale_py.roms.get_rom_path(find_rom(game)))
        self.loaded = self._clone_state()
        self.actions = self.ale.getMinimalActionSet()
        self.no_op = self.last_action = self.actions.index(self.ale_py.Action.NOOP)
        fire = self.ale_py.Action.FIRE
        self.fire = self.actions.index(fire) if fire in self.actions else None
        height, width = self.ale.getScreenDims()
        self.screens = np.zeros((2, height, width), np.uint8)
        self.colors = np.zeros((2, height, width, 3), np.uint8) if in_color else None
        self.weights = area_weights(height), area_weights(width)
        self.starts, self.repeats = Generator(), Generator()
        self.starts_before = self.starts.state()  # before an episode was prepared
        self.frames = 0
        self.initial_state: Any = None  # of the current episode
        self.prepared: InitialState | None = None  # of the next episode

    def reset(self, seed: int) -> None:
        """Start a new episode; a seed of at least 0 reseeds the random generators."""
        if seed >= 0:
            self.starts.seed(seed)
            self.repeats.seed(seed)
            self.ale.restoreState(self.loaded)
            self.initial_state = self.prepared = None
        self._start_episode()
        self.row.results["lives"] = self.ale.lives()

    def step(self) -> None:
        """One step with the action in the buffers; write its result there."""
        ale, action, reward = self.ale, int(self.row.actions[0]), 0
        ends = False
        for remaining in reversed(range(FRAME_SKIP)):
            reward += self._act(action)
            self.frames += 1
            if ends := ale.game_over() or self.frames >= self.max_frames:
                break  # without reading the last frame, as in ALE
            if remaining < 2:
                self._read_screen(remaining)
        self._observe()
        over = ale.game_over()
        result = self.row.results[0]
        result["reward"], result["terminated"], result["truncated"] = reward, over, ends and not over
        if ends:
            self.row.final_obs[0] = self.obs
            self._start_episode()
        result["lives"] = ale.lives()

    def pre_reset(self) -> None:
        """Prepare the initial state of the next episode if possible: this takes as long as 20 steps."""
        if self.prepared is None and not self.sticky and self.colors is None:
            state, self.starts_before = self._clone_state(), self.starts.state()
            self.prepared = self._make_initial_state()
            self.ale.restoreState(state)

    def save(self) -> bytes:
        """The whole state of the game: of the console, the generators, the stack of frames. A prepared episode is left
        out, as it will be prepared alike."""
        arrays = {
            "console": np.frombuffer(self._clone_state().serialize(), np.uint8),
            "initial": np.frombuffer(self.initial_state.serialize(), np.uint8),
            "starts": self.starts.state() if self.prepared is None else self.starts_before,
            "repeats": self.repeats.state(),
            "counters": np.array([self.frames, self.last_action]),
            "obs": self.obs,
            "screen": self.screens[0],  # the other is read only after it is overwritten
        }
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    def load(self, saved: bytes) -> None:
        """Continue from what `save` returned."""
        try:
            arrays = np.load(io.BytesIO(saved), allow_pickle=False)
            self.frames, self.last_action = arrays["counters"].tolist()
            self.initial_state, self.prepared = self._state_of(arrays["initial"]), None
            self.ale.act(self.actions[self.no_op])  # a console of Qbert that never ran continues differently
            self.ale.restoreState(self._state_of(arrays["console"]))
            self.starts.restore(arrays["starts"])
            self.repeats.restore(arrays["repeats"])
            self.obs[:], self.screens[0] = arrays["obs"], arrays["screen"]
        except DAMAGE as error:
            raise CheckpointError(f"the saved state of {self.game} is damaged; resume an older checkpoint") from error

    def _start_episode(self) -> None:
        """Load the next initial state; only the newest frame of the stack is not zero."""
        start = self.prepared or self._make_initial_state()
        self.initial_state, self.prepared, self.frames = start.state, None, 0
        self.ale.restoreState(self.initial_state)
        self.screens[:] = start.screens
        self.obs[:] = 0
        self._observe()

    def _make_initial_state(self) -> InitialState:
        """Reset the console, press FIRE if the game has it, then take a random number of no-ops."""
        if self.initial_state is not None and not self.sticky:
            self.ale.restoreState(self.initial_state)
        self._reset_console()
        frames = self.starts.below(self.no_ops + 1) - (self.fire is not None)
        if self.fire is not None:
            self._act(self.fire)
        for _ in range(frames):
            self._act(self.no_op)
            if self.ale.game_over():
                self._reset_console()
        screens = np.zeros_like(self.screens)
        self.ale.getScreenGrayscale(screens[0])
        if self.colors is not None:
            self.colors[1] = 0
            self.ale.getScreenRGB(self.colors[0])
        return InitialState(self._clone_state(), screens)

    def _reset_console(self) -> None:
        self.ale.reset_game()
        self.last_action = self.no_op

    def _act(self, action: int) -> int:
        """One frame; with sticky actions the console may repeat the previous action. Returns the reward."""
        if self.sticky:
            if self.repeats.uniform() >= self.sticky:
                self.last_action = action
            self.repeats.uniform()  # ALE draws twice a frame
            action = self.last_action
        reward: int = self.ale.act(self.actions[action])
        return reward

    def _read_screen(self, index: int) -> None:
        self.ale.getScreenGrayscale(self.screens[index])
        if self.colors is not None:
            self.ale.getScreenRGB(self.colors[index])

    def _observe(self) -> None:
        """Add the maximum of the two screens to the stack."""
        self.obs[:-1] = self.obs[1:]
        max_pool_and_resize(self.screens, *self.weights, self.obs[-1])
        if self.colors is not None:
            np.maximum(self.colors[0], self.colors[1], out=self.colors[0])

    def _clone_state(self) -> Any:
        return self.ale.cloneState(include_rng=True)  # a reset fills the console's memory from this generator

    def _state_of(self, saved: NDArray[np.uint8]) -> Any:
        state = self.ale_py.ALEState.__new__(self.ale_py.ALEState)
        state.__setstate__(saved.tobytes())
        return state


class Generator:
    """The Mersenne Twister of C++'s standard library, with its ways to draw."""

    def __init__(self) -> None:
        self.bits = np.random.MT19937()
        self.random = np.random.RandomState(self.bits)

    def seed(self, seed: int) -> None:
        """Seed as `std::mt19937` does."""
        self.random.seed(seed)

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return int(self.bits.random_raw()) / 2**32

    def below(self, bound: int) -> int:
        """A whole number in [0, bound)."""
        while True:
            product = int(self.bits.random_raw()) * bound
            if (product & 0xFFFFFFFF) >= (2**32 - bound) % bound:
                return product >> 32

    def state(self) -> NDArray[np.int64]:
        """624 words and the position among them."""
        _, words, position, *_ = self.random.get_state()
        return np.array([*words, position])

    def restore(self, state: NDArray[np.int64]) -> None:
        """Continue from what `state` returned."""
        self.random.set_state(("MT19937", state[:624].astype(np.uint32), int(state[624]), 0, 0.0))
