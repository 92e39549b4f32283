"""The training loop: collect → update → log → save."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from optimist.config import RunConfig
from optimist.config.toml import to_toml
from optimist.cuda.device import as_device_errors, initializing_gpu
from optimist.envs.make import make_envs, resolved
from optimist.envs.wrappers import can_save_state, restore_state, saved_state
from optimist.errors import ConfigError, NonFiniteLoss, WorkerDied
from optimist.signals import Interrupt, Stopped, interrupts
from optimist.tracking.progress import Progress
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import Writers
from optimist.training.build import make_algorithm, make_anchor, make_collector, make_policy, prepare_torch
from optimist.training.describe import describe_method, describe_run, notes_before_start
from optimist.training.evaluate import play, summarize_policy
from optimist.training.evaluations import Evaluations
from optimist.training.scores import Scores
from optimist.training.seeding import derive_seed

METRICS = {
    "time/steps_per_second": ("steps/s", "environment steps over wall-clock time, last 20 updates"),
    "time/collect": ("s", "environments and policy in this update; with `policy_lag`, the wait for them"),
    "time/update": ("s", "memory to gradient steps in this update"),
}
"""Metric → unit and meaning."""


def train(config: RunConfig, out: Path | None = None, *, progress: bool = True) -> dict[str, Any]:
    """Train one run into a new folder and return its summary."""
    config = replace(config, env=resolved(config.env))
    with RunDir.create(out, config) as run, with_resume_hint(run):
        return Trainer(config, run).run(progress=progress)


@contextmanager
def with_resume_hint(run: RunDir) -> Iterator[None]:
    """Re-raise GPU and worker failures with the command that resumes the run."""
    try:
        with as_device_errors(run.resume_hint):
            yield
    except WorkerDied as error:
        raise WorkerDied(f"{error}; {run.resume_hint()}") from error


class Trainer:
    """One run: environments, policy, learner, and what is recorded of them.

    Environments that cannot save their state restart with a new seed at every checkpoint, whether or not the run is
    ever interrupted, so that a resumed run equals an uninterrupted one.
    """

    def __init__(self, config: RunConfig, run: RunDir) -> None:
        prepare_torch(config)
        self.config, self.run_dir = config, run
        self.batch_size, self.total_updates = config.batch_size, config.total_updates
        forks = config.env.vectorization == "async"  # workers are forked before the CUDA context exists
        with nullcontext() if forks else initializing_gpu(torch.device(config.device)):
            self.envs = make_envs(config.env, seed=config.seed)
        self.saves_envs = can_save_state(self.envs)
        try:
            self.policy = make_policy(config, self.envs)
        except ConfigError:  # no network for these spaces: stop the environments' processes
            self.envs.close()
            raise
        self.algorithm = make_algorithm(config, self.policy, make_anchor(config))
        self.collector = make_collector(config, self.envs, self.policy, self.algorithm.anchor)
        self.scores, self.evaluations = Scores(), Evaluations(config, self.policy)
        self.evaluated: list[dict[str, float]] = []  # results that arrived with the last update
        self.update = 0
        self.stopping = False  # a signal was received: start no rollout ahead
        self.resumed_at: int | None = None
        self.notes: list[str] = []  # printed before the first step
        self.changes: list[str] = []  # of config.toml, by resumed runs
        self.collector.restart(derive_seed(config.seed, "envs"))

    @property
    def step(self) -> int:
        """Environment steps done."""
        return self.update * self.batch_size

    def run(self, *, progress: bool = True) -> dict[str, Any]:
        """Train to the end of the budget; write and return the summary."""
        config, started, first = self.config, time.perf_counter(), self.step
        notes = [*self.notes, *notes_before_start(config, self.envs, self.saves_envs)]
        with (
            closing(self),
            Writers(self.run_dir.metrics, config, self.resumed_at) as writers,
            Progress(
                describe_run(config),
                self.total_updates * self.batch_size,
                progress,
                start=first,
                notes=notes + writers.notes,
            ) as display,
            interrupts() as interrupt,
        ):
            self.evaluations.start()
            try:
                while self.update < self.total_updates:
                    self._log(self.one_update(), writers, display)
                    if self.update < self.total_updates:
                        if self._is_due(config.checkpoint_every, self.update):
                            self._restart_and_save()
                        if interrupt.signal is not None:
                            self._stop(interrupt.signal)
                summary = self._finish(interrupt, display)
            except Stopped as stopped:
                self._report_stop(stopped, display)
            except (EOFError, ConnectionError):  # workers exited: did the same signal reach them?
                time.sleep(0.2)
                if interrupt.signal is None:
                    raise
                self._report_stop(Stopped(interrupt.signal), display)
        summary["time/seconds"] = time.perf_counter() - started
        summary["time/steps_per_second"] = (self.step - first) / summary["time/seconds"]
        if first:
            summary["time/since_step"] = first  # earlier seconds are not known to this process
        self.run_dir.write_summary(summary)
        return summary

    def one_update(self) -> dict[str, float]:
        """Collect → update; return the metrics."""
        started = time.perf_counter()
        rollout = self.collector.collect(progress=self.update / self.total_updates)
        if not self._pauses_after_this():
            self.collector.on_update_start()
        collected = time.perf_counter()
        metrics = self.algorithm.update(rollout)
        self.policy.observe(rollout.obs.flatten(0, 1))
        updated = time.perf_counter()
        self.update += 1
        self.scores.add(self.collector.finished)
        metrics |= self.scores.metrics() | self._evaluate_if_due()
        return metrics | {"time/collect": collected - started, "time/update": updated - collected}

    def close(self) -> None:
        """Close evaluations, collector and environments."""
        with closing(self.evaluations):
            try:
                self.collector.close()
            finally:
                self._close_envs()

    def state_dict(self) -> dict[str, Any]:
        """Everything the rest of the run depends on."""
        return {
            "config": to_toml(self.config),
            "changes": self.changes,
            "update": self.update,
            "algorithm": self.algorithm.state_dict(),
            "collector": self.collector.state_dict(),
            "scores": self.scores.state_dict(),
            "evaluation": self.evaluations.state_dict(),
            "envs": saved_state(self.envs) if self.saves_envs and self.algorithm.keeps_unfinished else None,
        }

    def load_state_dict(self, state: dict[str, Any], *, weights_only: bool = False) -> None:
        """Load the result of `state_dict`; `weights_only`: policy and scores, all that final episodes need."""
        self.update, self.changes = state["update"], list(state["changes"])
        self.scores.load_state_dict(state["scores"])
        if weights_only:
            self.policy.load_state_dict(state["algorithm"]["policy"])
            return
        self.algorithm.load_state_dict(state["algorithm"])
        self.collector.load_state_dict(state["collector"])
        self.evaluations.load_state_dict(state["evaluation"])
        if state["envs"] is None:
            self._restart_envs()
        else:
            restore_state(self.envs, state["envs"])

    def _log(self, metrics: dict[str, float], writers: Writers, display: Progress) -> None:
        for earlier in self.evaluated[:-1]:  # two results arrived at once
            writers.write(self.step, earlier)
        if self.update % self.config.log_every == 0 or self.update == self.total_updates or self.evaluated:
            writers.write(self.step, metrics | {"time/steps_per_second": display.steps_per_second})
        display.update(self.step, metrics)

    def _evaluate_if_due(self) -> dict[str, float]:
        every, updates_left = self.config.evaluate_every, self.total_updates - self.update
        due = every > 0 and self._is_due(every, self.update)
        pending = every > 0 and updates_left <= 1
        self.evaluated = self.evaluations.after(self.step, due, updates_left) if due or pending else []
        for found in self.evaluated:
            self.scores.add_evaluation(found["evaluation/mean_return"], int(found["evaluation/step"]))
        return self.evaluated[-1] if self.evaluated else {}

    def _is_due(self, every: int, update: int) -> bool:
        """Whether this update reaches or passes a multiple of `every` steps."""
        return update * self.batch_size // every > (update - 1) * self.batch_size // every

    def _pauses_after_this(self) -> bool:
        """Whether no rollout is collected during this update: it is the last, or a checkpoint or stop follows."""
        after = self.update + 1
        return self.stopping or after == self.total_updates or self._is_due(self.config.checkpoint_every, after)

    def _restart_and_save(self) -> None:
        """Save a checkpoint; environments that cannot save their state restart, as they will when it is loaded."""
        if not self.saves_envs:
            self._restart_envs()
        self._save()

    def _restart_envs(self) -> None:
        """Start new episodes everywhere and drop the unfinished ones."""
        self.collector.restart(derive_seed(self.config.seed, "envs", self.step))
        self.algorithm.forget_unfinished()

    def _save(self) -> None:
        """Save a checkpoint, unless its weights are not finite: the loss before the last step may have been."""
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.policy.parameters()):
            raise NonFiniteLoss(
                f"the policy's weights became nan or infinite by update {self.update}; lower the learning rate, "
                "or check the rewards"
            )
        self.run_dir.save_checkpoint(self.step, self.state_dict())

    def _stop(self, number: int) -> None:
        """Stop after a signal: save where that changes nothing or the config allows it, else keep the checkpoint."""
        self.stopping = True
        if self.config.save_when_stopped and self.collector.collecting:
            return  # a rollout collected ahead is learned from first
        if self.config.save_when_stopped or (self.saves_envs and not self.collector.collecting):
            self._restart_and_save()
        saved = self.run_dir.last_saved == self.step
        raise Stopped(number, "" if saved else " (--save-when-stopped would have saved here)")

    def _report_stop(self, stopped: Stopped, display: Progress) -> NoReturn:
        display.message(f"stopped at step {self.step:,}; {self.run_dir.resume_hint()}{stopped.hint}")
        raise KeyboardInterrupt if stopped.number == signal.SIGINT else SystemExit(128 + stopped.number)

    def _finish(self, interrupt: Interrupt, display: Progress) -> dict[str, Any]:
        """Save the last policy, play the final episodes and return the summary."""
        config = self.config
        if self.run_dir.last_saved != self.step:  # else the run was resumed at its end
            self._save()
        self.run_dir.write_final(self.policy.state_dict(), {"preset": config.preset, "steps": str(self.step)})
        about = {
            "preset": config.preset,
            "env": config.env.id,
            "env_kwargs": config.env.kwargs,
            **({"reward_delay": config.env.reward_delay} if config.env.reward_delay > 1 else {}),
            "algorithm": describe_method(config),
            "seed": config.seed,
            "steps": self.step,
            "updates": self.update,
            "run": str(self.run_dir.path),
            **({"changes": self.changes} if self.changes else {}),
        }
        if config.final_episodes:
            display.message(f"final evaluation: {config.final_episodes} fresh episodes")
        return about | self.scores.summary() | self._final_evaluation(interrupt)

    def _final_evaluation(self, interrupt: Interrupt) -> dict[str, Any]:
        """Play fresh episodes with the last policy, as many as the config asks for."""
        config = self.config
        if not config.final_episodes:
            return {}
        seed = derive_seed(config.seed, "final")
        with interrupt.at_once():  # nothing is lost: the checkpoint is saved, and a resumed run plays them again
            played = play(
                self.policy, config.env, config.final_episodes, greedy=False, seed=seed, task_seed=config.seed
            )
        return {"final_evaluation": summarize_policy(played, config.env, greedy=False)}

    def _close_envs(self) -> None:
        try:
            self.envs.close()
        except (EOFError, ConnectionError):  # their processes have exited already, after a signal
            self.envs.unwrapped.closed = True
