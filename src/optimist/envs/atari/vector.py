"""AtariVectorEnv: N games behind one interface; a lost life is told apart from the end of the game."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from optimist.envs.atari.emulator import FRAME_SKIP, emulator_seeds, make_emulators
from optimist.envs.atari.fire import FireButton
from optimist.errors import ConfigError, ShapeMismatch

Pixels = NDArray[np.uint8]
Step = tuple[Pixels, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class AtariVectorEnv(VectorEnv[Pixels, NDArray[np.int64], NDArray[Any]]):
    """N games of Atari on ALE's vector environment, reset within the step.

    Observations are uint8 [N, stack, 84, 84], oldest frame first; rewards are the game's own. `infos["life_lost"]`
    [N] marks lives lost in games that go on, `infos["lives"]` [N] counts those left. `infos["executed"]` [N] is there
    when FIRE replaced an action that was asked for.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (declared so by Gymnasium)
        "render_modes": ["rgb_array"],
        "render_fps": 60 // FRAME_SKIP,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        game: str,
        sticky: float,
        life_loss_ends: bool = True,
        fire_after_life_loss: bool = True,
        no_ops: int = 30,
        max_frames: int = 108_000,
        stack: int = 4,
        threads: int = 0,
        render_mode: str | None = None,
    ) -> None:
        """Without a default: `game`, and `sticky`, the probability that the console repeats the previous action.

        `life_loss_ends`: report lost lives as ends for the learner. `fire_after_life_loss`: press FIRE where a game
        waits for it. `no_ops`: most frames without action at the start. `max_frames`: time limit of a game.
        `threads`: of the emulator; 0 for one a core.
        """
        _check(num_envs, sticky=sticky, no_ops=no_ops, max_frames=max_frames, stack=stack, threads=threads)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be 'rgb_array' or None, got '{render_mode}'")
        self.num_envs, self.game, self.render_mode = num_envs, game, render_mode
        self.life_loss_ends = life_loss_ends
        settings: dict[str, Any] = {"sticky": float(sticky), "no_ops": no_ops, "max_frames": max_frames}
        settings |= {"stack": stack, "threads": threads}
        self._emulators = make_emulators(game, num_envs, **settings)
        self._camera = make_emulators(game, num_envs, **settings, in_color=True) if render_mode else None
        self._screens: Pixels | None = None
        for name in ("single_observation_space", "observation_space", "single_action_space", "action_space"):
            setattr(self, name, getattr(self._emulators, name))
        meanings = [action.name for action in self._emulators.ale.get_action_set()]
        fire = meanings.index("FIRE") if fire_after_life_loss and "FIRE" in meanings else None
        self.action_meanings: list[str] = meanings
        self._fire = FireButton(game, num_envs, fire)
        self._executed: tuple[NDArray[Any], NDArray[np.bool_]] | None = None
        self._lives: NDArray[np.int32] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, dict[str, Any]]:
        """Observations after starting all games anew, or those in `options["reset_mask"]`."""
        super().reset(seed=seed)
        mask = self._reset_mask(options)
        if seed is None and self._lives is None:
            seed = int(self.np_random.integers(2**31))
        options = None if options is None else {"reset_mask": mask}
        seeds = None if seed is None else emulator_seeds(seed, self.num_envs)[mask]
        obs, infos = self._emulators.reset(seed=seeds, options=options)
        if self._camera is not None:
            self._screens = self._camera.reset(seed=seeds, options=options)[0][:, 0]
        self._lives = infos["lives"]
        self._fire.watch(np.zeros(self.num_envs, np.bool_), ended=mask)
        return obs, {"lives": infos["lives"]}

    def step(self, actions: NDArray[np.int64]) -> Step:
        """Observations, raw rewards, terminated, truncated and infos."""
        self.send(actions)
        return self.receive()

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin a step: the emulator's threads play while Python goes on. `receive` has to follow."""
        if self._lives is None:
            raise ResetNeeded(f"{self.game} has not started: call reset() first")
        actions, pressed = self._fire.press(self._checked(actions))
        self._executed = None if pressed is None else (actions, pressed)
        self._emulators.send(actions)
        if self._camera is not None:
            self._screens = self._camera.step(actions)[0][:, 0]

    def receive(self) -> Step:
        """What the step begun by `send` gave."""
        obs, rewards, terminated, truncated, told = self._emulators.recv()
        ended, lives = terminated | truncated, told["lives"]
        # With no life left a game is about to end; some (Qbert) take a few more frames for it.
        life_lost = (lives < self._lives) & (lives > 0) & ~ended
        self._lives = lives
        self._fire.watch(life_lost, ended)
        infos: dict[str, Any] = {"lives": lives}
        if self.life_loss_ends:
            infos["life_lost"] = life_lost
        if self._executed is not None:
            infos["executed"], infos["_executed"] = self._executed
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = told["final_obs"], ended
        return obs, rewards.astype(np.float64), terminated, truncated, infos

    def render(self) -> tuple[Pixels, ...]:
        """The screens in colour, uint8 [210, 160, 3] each: those the current observations were made of."""
        if self._screens is None:
            raise ResetNeeded("nothing to render: make the environment with render_mode='rgb_array' and reset it")
        return tuple(self._screens)

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of the emulators and their threads."""
        self._emulators = self._camera = self._lives = None

    def _checked(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        """The actions, if there is one for each game and all exist: ALE hangs for ever over one that does not."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ShapeMismatch(f"actions is {actions.dtype}{list(actions.shape)}, expected int64[{self.num_envs}]")
        checked = actions.astype(np.int64, copy=False)
        # Seen as unsigned, a negative number is a huge one.
        if checked.view(np.uint64).max() >= len(self.action_meanings):
            raise ConfigError(
                f"actions must lie in [0, {len(self.action_meanings)}), got {actions.min()} to {actions.max()}"
            )
        return checked

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        if not options:
            return np.ones(self.num_envs, np.bool_)
        mask = np.asarray(options.get("reset_mask"))
        if set(options) != {"reset_mask"} or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ShapeMismatch(f"reset takes one option, reset_mask as bool[{self.num_envs}]; got {options}")
        if self._lives is None and not mask.all():
            raise ResetNeeded(f"{self.game} has not started: the first reset has to be of all environments")
        return mask


def _check(num_envs: int, *, sticky: float, **counts: int) -> None:
    if isinstance(sticky, bool) or not isinstance(sticky, int | float) or not 0.0 <= sticky < 1.0:
        raise ConfigError(f"sticky is a probability in [0, 1), got {sticky!r}")
    least = {"num_envs": 1, "no_ops": 0, "max_frames": 1, "stack": 1, "threads": 0}
    for name, value in {"num_envs": num_envs, **counts}.items():
        if type(value) is not int or value < least[name]:
            raise ConfigError(f"{name} must be a whole number of at least {least[name]}, got {value!r}")
