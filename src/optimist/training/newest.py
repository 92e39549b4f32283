"""What a run has now: its last policy, or its newest checkpoint while it has not ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.door import Agent, make_agent
from optimist.errors import RunFolderError
from optimist.tracking.run_dir import RunDir


def newest_agent(run: Path) -> tuple[Agent, str]:
    """The agent a run has now, and in words which one it is."""
    folder = RunDir.read(run)
    if folder.has_final:
        weights, which = folder.read_final()[0], "final policy"
    else:
        step, state = newest_checkpoint(folder)
        weights, which = state["policy"], f"policy at step {step:,}"
    return make_agent(replace(folder.config, device="cpu"), weights, origin=f"the {which} of {run}"), which


def newest_checkpoint(folder: RunDir) -> tuple[int, dict[str, Any]]:
    """Step and learner's state of the newest checkpoint."""
    state: Any = folder.load_checkpoint()
    if state is None:
        first = min(folder.config.checkpoint_every, folder.config.total_steps)
        raise RunFolderError(f"{folder.path} has no checkpoint yet; the first comes at {first:,} steps")
    return state["update"] * folder.config.batch_size, state["algorithm"]
