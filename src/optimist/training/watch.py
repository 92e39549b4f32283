"""One episode of a run's policy, or of its good-episode memory, as pictures and text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.config import EnvConfig, RunConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.envs.make import make_envs
from optimist.envs.tabular.grid import TabularVectorEnv
from optimist.envs.tabular.picture import picture_of, text_of
from optimist.envs.wrappers import AnyVectorEnv
from optimist.errors import ConfigError
from optimist.rollout.stepper import VectorStepper
from optimist.tracking.checkpoint import restoring
from optimist.tracking.progress import counting
from optimist.tracking.run_dir import RunDir
from optimist.training.agent import newest_agent, newest_checkpoint
from optimist.training.build import make_anchor, prepare_torch
from optimist.training.seeding import derive_seed

FPS = 15.0
"""Pictures a second where the environment does not state them: Atari's 60 frames at 4 a step."""


@dataclass
class Film:
    """One episode: a line of text for each step, a picture if it can be rendered, and a grid world's path."""

    title: str
    fps: float = FPS
    pictures: list[NDArray[np.uint8]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    grid: str = ""


def film_agent(
    run: Path, *, seed: int = 0, greedy: bool = False, max_steps: int = 2_000, env: str = "", progress: bool = False
) -> Film:
    """Play one episode with the run's final policy, or with its newest checkpoint while it trains."""
    agent, which = newest_agent(run, env)
    config = agent.config
    prepare_torch(config)
    envs, mode = _visible(config.env, config.seed)
    stepper = VectorStepper(envs)
    film = Film("", fps=float(envs.metadata.get("render_fps", FPS)))
    agent.generator.manual_seed(derive_seed(seed, "evaluation"))
    total, steps, ended = 0.0, 0, False
    try:
        with counting(f"playing, at most {max_steps:,} steps", max_steps, progress) as tick:
            obs, _ = stepper.reset(derive_seed(seed, "evaluation"))
            _show(film, envs, mode)
            while not ended and steps < max_steps:
                actions = np.asarray(agent.act(obs, greedy=greedy))
                transition = stepper.step(actions)
                obs, reward, ended = transition.obs, float(transition.rewards[0]), bool(transition.ended[0])
                total, steps = total + reward, steps + 1
                film.lines.append(_line(steps, actions[0], reward, total))
                if not ended:  # after an end, the observation is of the next episode
                    _show(film, envs, mode)
                tick()
            if isinstance(envs.unwrapped, TabularVectorEnv):
                _show_path(film, envs.unwrapped, ended)
    finally:
        envs.close()
    cut = "" if ended else ", stopped there"
    film.title = f"{which}, {'greedy' if greedy else 'sampled'} actions: return {total:g} in {steps:,} steps{cut}"
    return film


def film_memory(run: Path, rank: int = 1, *, max_steps: int = 2_000, env: str = "") -> Film:
    """The episode with the `rank`-th highest return in the newest checkpoint's memory, 1 for the best."""
    folder = RunDir.read(run, env)
    step, state = newest_checkpoint(folder)
    memory = load_memory(folder.config, state, run).memory
    number = len(memory.episodes)
    if not 1 <= rank <= number:
        which = f"--episode must be 1 to {number}, got {rank}" if number else "there is none to show"
        raise ConfigError(f"the memory of {run} holds {number} episodes at step {step:,}: {which}")
    stored = sorted(memory.episodes, key=lambda episode: episode.total_reward, reverse=True)[rank - 1]
    part = "the end of " if stored.clipped else ""
    title = f"{part}episode {rank} of {number} in the memory at step {step:,}: "
    cut = f", the first {max_steps:,} of them shown" if len(stored.rows) > max_steps else ""
    film = Film(f"{title}return {stored.total_reward:g}, {len(stored.rows):,} steps{cut}")
    frames = memory.pools["frames"][stored.frames[memory.frame_stack - 1 :]].numpy()
    if frames.dtype == np.uint8 and memory.frame_stack > 1:
        film.pictures = list(frames[:max_steps])
    game = None
    if frames.ndim == 1:  # observations that are numbers may be cells of a grid
        game = make_envs(replace(folder.config.env, num_envs=1), seed=folder.config.seed).unwrapped
    if isinstance(game, TabularVectorEnv):
        scenes = [game.scene(frames[: t + 1].tolist()) for t in range(min(len(frames), max_steps))]
        film.pictures, film.grid = [picture_of(scene) for scene in scenes], text_of(scenes[-1])
        film.fps = float(game.metadata["render_fps"])
    total = 0.0
    for t, row in enumerate(stored.rows[:max_steps].tolist(), 1):
        action, reward = memory.pools["actions"][row].numpy(), float(memory.pools["rewards"][row])
        total += reward
        film.lines.append(_line(t, action, reward, total))
    return film


def load_memory(config: RunConfig, state: dict[str, Any], run: Path) -> OptimisticRegularizer:
    """OPR with the memory and windows of a learner's saved state."""
    sil = config.sil
    anchor = make_anchor(replace(config, device="cpu", sil=replace(sil, enabled=False)))
    if not isinstance(anchor, OptimisticRegularizer):
        raise ConfigError(f"{run} was trained without OPR and has no memory of good episodes")
    with restoring(f"a checkpoint of {run}"):
        saved = state["anchor"]["opr"] if sil.enabled else state["anchor"]
        anchor.memory.load_state_dict(saved["memory"])
        anchor.windows.load_state_dict(saved["windows"])
        anchor.updates, anchor.finished, anchor.steps, anchor.last_phase = saved["counters"]
    return anchor


def _visible(config: EnvConfig, task_seed: int) -> tuple[AnyVectorEnv, str | None]:
    """One environment, and its render mode: pictures, text, or None."""
    config = replace(config, num_envs=1)
    envs = make_envs(config, seed=task_seed)
    modes = envs.metadata.get("render_modes") or ()
    mode = next((mode for mode in ("rgb_array", "ansi") if mode in modes), None)
    if mode is None:
        return envs, None
    envs.close()
    return make_envs(replace(config, kwargs={**config.kwargs, "render_mode": mode}), seed=task_seed), mode


def _show(film: Film, envs: AnyVectorEnv, mode: str | None) -> None:
    if mode is None:
        return
    try:
        rendered: Any = envs.render()
    except Exception as error:  # renderers raise errors of their own, most often because there is no screen
        raise ConfigError(f"cannot render {envs.spec.id if envs.spec else 'the environment'} here: {error}") from error
    if mode == "rgb_array":
        film.pictures.append(np.asarray(rendered[0], np.uint8))
    else:
        film.lines.append(str(rendered[0] if isinstance(rendered, tuple | list) else rendered))


def _show_path(film: Film, game: TabularVectorEnv, ended: bool) -> None:
    """Add the whole path of an episode of a grid world, its last step included."""
    scene = game.scene((game.finished_paths if ended else game.paths)[0])
    film.grid = text_of(scene)
    if ended:
        film.pictures.append(picture_of(scene))


def _line(step: int, action: Any, reward: float, total: float) -> str:
    words = np.array2string(np.asarray(action), precision=3)
    return f"{step:>6}  action {words:<6}  reward {reward:<10g} so far {total:g}"
