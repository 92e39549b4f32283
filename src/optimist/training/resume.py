"""Resume a run at its newest checkpoint, with the changes that its config.toml has seen since."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.config import RunConfig
from optimist.config.toml import differences, from_toml
from optimist.errors import CheckpointError, ConfigError, RunFolderError, ShapeMismatch
from optimist.tracking.checkpoint import restoring
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer, with_resume_hint

LEARNING = ("algorithm.", "opr.", "sil.")
"""Settings that playing does not depend on."""


def resume(path: Path, *, env: str = "", wandb: bool = False, progress: bool = True) -> dict[str, Any]:
    """Continue a run from its newest checkpoint and return its summary; a finished run is left as it is.

    `env` as in `load`. `wandb`: send metrics to Weights & Biases; a config alone does not, it may be a stranger's.
    """
    with RunDir.open(path, env) as run, with_resume_hint(run):
        summary = run.read_summary()
        if summary is not None:
            if progress:
                print(f"optimist: this run is finished{_larger_budget(run, summary)}; its summary:", file=sys.stderr)
            return summary | {"run": str(run.path)}  # the folder may have been moved
        if run.last_saved is None and run.has_final:
            raise RunFolderError(
                f"{path} is finished and has no checkpoint to continue from; start a new run with --out DIR"
            )
        trainer = Trainer(replace(run.config, wandb=wandb), run)
        if run.config.wandb and not wandb:
            trainer.notes.append("Weights & Biases: off; config.toml asks for it, and --wandb turns it on")
        state = run.load_checkpoint()
        if state is not None:
            restore(trainer, state)
        trainer.resumed_at = trainer.step
        trainer.notes.append(f"{'no checkpoint' if state is None else 'resumed'}: from step {trainer.step:,}")
        return trainer.run(progress=progress)


def restore(trainer: Trainer, state: dict[str, Any]) -> None:
    """Load a checkpoint's state into a trainer whose config may have changed since."""
    config, origin = trainer.config, f"the checkpoint in {trainer.run_dir.path}"
    with restoring(origin):
        before = replace(from_toml(RunConfig, state["config"]), wandb=config.wandb)
        update = int(state["update"])
    _check_steps_and_seed(before, config)
    changed = differences(before, config)
    if changed:
        trainer.notes.append(f"config.toml was changed since the checkpoint: {', '.join(changed)}")
    # Only the final episodes are left, which any device can play; a changed learner is still checked as a whole.
    finished = update >= config.total_updates and not any(c.startswith(LEARNING) for c in changed)
    try:
        with restoring(origin):
            trainer.load_state_dict(state, weights_only=finished)
    except (CheckpointError, ConfigError, ShapeMismatch) as error:
        if not changed:
            raise
        raise ConfigError(
            f"cannot resume: config.toml was changed ({', '.join(changed)}), and the checkpoint does not fit it; "
            "undo the change, or train a new run"
        ) from error
    trainer.changes += [f"at step {trainer.step:,}: {change}" for change in changed]


def _check_steps_and_seed(before: RunConfig, now: RunConfig) -> None:
    """Raise where the steps done would be miscounted, or random numbers would not continue."""
    if before.batch_size != now.batch_size:
        raise ConfigError(
            f"cannot resume: config.toml was changed, an update had {before.batch_size:,} steps "
            f"(env.num_envs × algorithm.rollout_steps) and would have {now.batch_size:,}; train a new run"
        )
    if before.seed != now.seed:
        raise ConfigError(
            f"cannot resume: the run has seed {before.seed}, and config.toml says {now.seed}; undo the change, or "
            "train a new run"
        )


def _larger_budget(run: RunDir, summary: dict[str, Any]) -> str:
    if run.config.total_updates * run.config.batch_size <= summary.get("steps", 0):
        return ""
    return " (total_steps was raised since: delete summary.json to continue it)"
