"""The loop: collect → update → log → save, and going on where a run was cut off."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from optimist.anchors.config import SILConfig
from optimist.config import RunConfig
from optimist.core.anchor import NoAnchor
from optimist.core.config import OPRConfig
from optimist.cuda.errors import explained
from optimist.cuda.wake import waking
from optimist.envs.make import can_save_state, longest_episode, make_envs, restore_state, saved_state
from optimist.errors import ConfigError, NonFiniteLoss, ProcessEnded, RunFolderError
from optimist.networks.policy import PolicyNetwork
from optimist.networks.q_network import QNetwork
from optimist.rollout.collector import Collector
from optimist.rollout.lagged import LaggedCollector
from optimist.rollout.lanes import LaneCollector
from optimist.tracking.config_io import differences, from_toml, to_toml
from optimist.tracking.progress import Progress
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import Writers
from optimist.training.build import make_algorithm, make_anchor, make_policy, opr_bytes, prepare_torch, uses_graphs
from optimist.training.evaluate import play, summarize_policy
from optimist.training.evaluations import Evaluations
from optimist.training.interrupts import Interrupt, Stopped, interrupts
from optimist.training.scores import Scores
from optimist.training.seeding import derive_seed

LEARNING = ("algorithm.", "opr.", "sil.")
"""Settings that have no part in playing."""


@contextmanager
def told_how_to_go_on(run: RunDir) -> Iterator[None]:
    """What a run cannot help, a GPU or a process that is gone, is told with how to go on with it."""
    try:
        with explained(run.how_to_go_on):
            yield
    except ProcessEnded as error:
        raise ProcessEnded(f"{error}; {run.how_to_go_on()}") from error


def train(config: RunConfig, out: Path | None = None, *, progress: bool = True) -> dict[str, Any]:
    """Train one run into a new folder; its summary."""
    with RunDir.create(out, config) as run, told_how_to_go_on(run):
        return Trainer(config, run).run(progress=progress)


def resume(path: Path, *, progress: bool = True) -> dict[str, Any]:
    """Go on with a run where its newest checkpoint left it; its summary. A finished run is left alone."""
    with RunDir.open(path) as run, told_how_to_go_on(run):
        summary = run.read_summary()
        if summary is not None:
            if progress:
                more = run.config.total_updates * run.config.batch_size > summary.get("steps", 0)
                rest = " (total_steps was raised since: without summary.json it would go on)" if more else ""
                print(f"optimist: this run is finished{rest}; its summary:", file=sys.stderr)
            return summary | {"run": str(run.path)}  # it may have been moved
        if run.last_saved is None and run.has_final:
            raise RunFolderError(
                f"{path} has come to its end and its checkpoints are gone: it would begin anew, over what is there; "
                "train a new run"
            )
        trainer = Trainer(run.config, run)
        state = run.load_checkpoint()
        if state is not None:
            trainer.load_state_dict(state)
        trainer.resumed_at = trainer.step
        trainer.notes.append(f"{'no checkpoint' if state is None else 'goes on'}: from step {trainer.step:,}")
        return trainer.run(progress=progress)


class Trainer:
    """One run: the environments, the learner, and what is written down about them.

    Environments that can save their state do so. Others restart with a new seed at every checkpoint, whether or not
    the run is ever interrupted, so that a resumed run is the same run.
    """

    def __init__(self, config: RunConfig, run: RunDir) -> None:
        prepare_torch(config)
        self.config, self.run_dir = config, run
        forks = config.env.vectorization == "async"  # processes that must not be born with half of a CUDA context
        with nullcontext() if forks else waking(torch.device(config.device)):
            self.envs = make_envs(config.env, seed=config.seed)
        self.saves_envs = can_save_state(self.envs)
        self.policy = make_policy(config, self.envs)
        self.algorithm = make_algorithm(config, self.policy, make_anchor(config))
        self.collector = self._make_collector()
        self.scores = Scores()
        self.evaluations = Evaluations(config, self.policy)
        self.evaluated: list[dict[str, float]] = []  # what became known of evaluations with the last update
        self.update = 0
        self.leaving = False  # a signal came: begin nothing more
        self.resumed_at: int | None = None
        self.notes: list[str] = []  # what should be known before the first step
        self.changes: list[str] = []  # of config.toml, on the way
        self.collector.restart(derive_seed(config.seed, "envs"))

    @property
    def step(self) -> int:
        """Environment steps done."""
        return self.update * self.config.batch_size

    def run(self, *, progress: bool = True) -> dict[str, Any]:
        """Train to the end of the budget and write the summary."""
        config, started, first = self.config, time.perf_counter(), self.step
        with (
            closing(self),
            Writers(self.run_dir, config, self.resumed_at) as writers,
            Progress(config, progress, start=self.step, notes=self._notes() + writers.notes) as display,
            interrupts() as interrupted,
        ):
            self.evaluations.prepare()
            while self.update < config.total_updates:
                try:
                    metrics = self.one_update()
                except (EOFError, ConnectionError):  # the environments' processes ended: by a signal that is for all?
                    time.sleep(0.2)
                    if interrupted.signal is None:
                        raise
                    self._leave(interrupted.signal, display, saving=False)
                for earlier in self.evaluated[:-1]:  # two became known at once
                    writers.write(self.step, earlier)
                if self.update % config.log_every == 0 or self.update == config.total_updates or self.evaluated:
                    metrics["time/steps_per_second"] = display.steps_per_second
                    writers.write(self.step, metrics)
                display.update(self.step, metrics)
                if self.update == config.total_updates:
                    break  # the end saves in any case, and needs no new episodes
                self._save_if_due()
                self.leaving = interrupted.signal is not None
                if interrupted.signal is not None and not (config.save_when_stopped and self.collector.underway):
                    self._leave(interrupted.signal, display)
            if config.final_episodes:
                display.message(f"final evaluation: {config.final_episodes} fresh episodes")
            try:
                summary = self._finish(interrupted)
            except Stopped as stopped:
                self._leave(stopped.number, display, saving=False)
        summary["time/seconds"] = time.perf_counter() - started
        summary["time/steps_per_second"] = (self.step - first) / summary["time/seconds"]
        if first:
            summary["time/since_step"] = first  # the seconds before that went with the process that had them
        self.run_dir.write_summary(summary)
        return summary

    def close(self) -> None:
        """Let go of environments and evaluations, once nothing uses them."""
        with closing(self.evaluations):
            try:
                self.collector.close()
            finally:
                self._close_envs()

    def _close_envs(self) -> None:
        try:
            self.envs.close()
        except (EOFError, ConnectionError):  # their processes have ended already, by a signal
            self.envs.unwrapped.closed = True

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
            "envs": saved_state(self.envs) if self.saves_envs else None,
        }

    def load_state_dict(self, state: Any) -> None:
        """Take over the state of `state_dict`; environments without state restart as they did when it was saved.

        Of a run that is trained to its end, weights and scores are all that is needed.
        """
        changed = self._compare_config(from_toml(RunConfig, state["config"]) if "config" in state else self.config)
        self.update = state["update"]
        self.changes = [*state.get("changes", []), *(f"at step {self.step:,}: {change}" for change in changed)]
        # Only the final games are left, and any device can play them; but whether a changed learner fits shows in all.
        over = self.update >= self.config.total_updates and not any(c.startswith(LEARNING) for c in changed)
        try:
            if over:
                self.policy.load_state_dict(state["algorithm"]["policy"])
            else:
                self.algorithm.load_state_dict(state["algorithm"])
                self.collector.load_state_dict(state["collector"])
        except (RuntimeError, KeyError, ValueError, IndexError) as error:
            if not changed:
                raise
            raise ConfigError(
                f"cannot go on: config.toml was changed ({', '.join(changed)}), and what was learnt does not fit it; "
                "undo that, or train a new run"
            ) from error
        self.scores.load_state_dict(state["scores"])
        if over:
            return
        self.evaluations.load_state_dict(state["evaluation"])
        if self.saves_envs:
            restore_state(self.envs, state["envs"])
        else:
            self._restart_envs()

    def _compare_config(self, before: RunConfig) -> list[str]:
        """What was changed in config.toml since the checkpoint; raises where steps done would be miscounted."""
        if before.batch_size != self.config.batch_size:
            raise ConfigError(
                f"cannot go on: config.toml was changed, an update had {before.batch_size:,} steps "
                f"(env.num_envs × algorithm.rollout_steps) and would have {self.config.batch_size:,}; train a new run"
            )
        if before.seed != self.config.seed:
            raise ConfigError(
                f"cannot go on: the run has seed {before.seed}, and config.toml says {self.config.seed}; undo that, or "
                "train a new run"
            )
        changed = differences(before, self.config)
        if changed:
            self.notes.append(f"config.toml was changed since the checkpoint: {', '.join(changed)}")
        return changed

    def _make_collector(self) -> Collector | LaggedCollector:
        if self.config.policy_lag:
            return LaggedCollector(self._collector_for, self.policy, self.config.threads)
        return self._collector_for(self.policy)

    def _collector_for(self, policy: PolicyNetwork) -> Collector:
        """Games on a board are decided for as they come, unless something has to see every step of all of them."""
        config, anchor = self.config, self.algorithm.anchor
        generator = torch.Generator(config.device).manual_seed(derive_seed(config.seed, "acting"))
        basis = (self.envs, config.env, policy, config.algorithm.rollout_steps, generator, config.device)
        evaluated = not isinstance(policy, QNetwork) or not isinstance(anchor, NoAnchor)
        if hasattr(self.envs, "board") and not config.env.group_key:
            return LaneCollector(*basis, evaluated=evaluated, graphs=uses_graphs(config, anchor))
        return Collector(*basis, evaluated=evaluated)

    def _notes(self) -> list[str]:
        """What should be known before the first step."""
        notes: list[str] = [*self.notes, *getattr(self.envs.unwrapped, "notes", ())]
        if self.config.total_steps < self.config.batch_size:
            notes.append(f"an update takes {self.config.batch_size:,} steps; one is made, whatever total_steps says")
        if not self.saves_envs:
            notes += _cut_off(self.config, longest_episode(self.envs))
        for name, settings, default in (("OPR", self.config.opr, OPRConfig()), ("SIL", self.config.sil, SILConfig())):
            if not settings.enabled and settings != replace(default, enabled=False):
                notes.append(f"{name} is off: its settings have no effect (--{name.lower()}.enabled)")
        if self.config.opr.enabled:
            most = opr_bytes(self.config, self.envs) / 2**20
            notes.append(f"OPR: memory and unfinished episodes need at most {most:,.1f} MiB")
            notes += _idle_shaping(self.config.opr)
        return notes

    def one_update(self) -> dict[str, float]:
        """Collect → update; what there is to log."""
        begin = time.perf_counter()
        rollout = self.collector.collect(progress=self.update / self.config.total_updates)
        if not self._pauses_after_this():
            self.collector.begin()
        collected = time.perf_counter()
        metrics = self.algorithm.update(rollout)
        self.policy.observe(rollout.obs.flatten(0, 1))
        updated = time.perf_counter()
        self.update += 1
        self.scores.add(self.collector.finished)
        metrics |= self.scores.metrics() | self._evaluation()
        metrics |= {"time/collect": collected - begin, "time/update": updated - collected}
        return metrics

    def _evaluation(self) -> dict[str, float]:
        self.evaluated = self.evaluations.after(self.step)
        for found in self.evaluated:
            self.scores.add_evaluation(found["evaluation/mean_return"], int(found["evaluation/step"]))
        return self.evaluated[-1] if self.evaluated else {}

    def _save_if_due(self) -> None:
        if self._saves_at(self.step):
            self._restart_and_save()

    def _restart_and_save(self) -> None:
        """A checkpoint; environments that cannot save their state restart, as they will when it is loaded."""
        if not self.saves_envs:
            self._restart_envs()
        self._save()

    def _restart_envs(self) -> None:
        """New episodes everywhere; those in play are forgotten, also those of a run's end that is trained further."""
        self.collector.restart(derive_seed(self.config.seed, "envs", self.step))
        self.algorithm.forget_unfinished()

    def _saves_at(self, step: int) -> bool:
        every = self.config.checkpoint_every
        return step // every != (step - self.config.batch_size) // every

    def _pauses_after_this(self) -> bool:
        """Whether this update is the last, or the last before a checkpoint: no rollout is under way then."""
        after = self.update + 1
        return self.leaving or after == self.config.total_updates or self._saves_at(after * self.config.batch_size)

    def _save(self) -> None:
        """A checkpoint, unless it would be of no use: a loss may still be finite when the weights no longer are."""
        if not all(bool(torch.isfinite(parameter).all()) for parameter in self.policy.parameters()):
            raise NonFiniteLoss(
                f"the policy's weights became nan or infinite by update {self.update}; lower the learning rate, "
                "or look at the rewards"
            )
        self.run_dir.save_checkpoint(self.step, self.state_dict())

    def _leave(self, number: int, display: Progress, *, saving: bool = True) -> NoReturn:
        """Stop between two updates: save where that changes nothing, or may; else keep the last checkpoint."""
        if saving and (self.config.save_when_stopped or (self.saves_envs and not self.collector.underway)):
            self._restart_and_save()
        lost = saving and self.run_dir.last_saved != self.step
        hint = " (--save-when-stopped would have saved here)" if lost else ""
        display.message(f"stopped at step {self.step:,}; {self.run_dir.how_to_go_on()}{hint}")
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def _finish(self, interrupted: Interrupt) -> dict[str, Any]:
        """The last policy and the summary."""
        config = self.config
        if self.run_dir.last_saved != self.step:  # else a resumed run was at its end already
            self._save()
        self.run_dir.write_final(self.policy.state_dict(), {"preset": config.preset, "steps": str(self.step)})
        about = {
            "preset": config.preset,
            "env": config.env.id,
            "env_kwargs": config.env.kwargs,
            **({"reward_delay": config.env.reward_delay} if config.env.reward_delay > 1 else {}),
            "algorithm": config.algorithm.name + "+opr" * config.opr.enabled + "+sil" * config.sil.enabled,
            "seed": config.seed,
            "steps": self.step,
            "updates": self.update,
            "run": str(self.run_dir.path),
            **({"changes": self.changes} if self.changes else {}),
        }
        return about | self.scores.summary() | self._final_evaluation(interrupted)

    def _final_evaluation(self, interrupted: Interrupt) -> dict[str, Any]:
        """Fresh episodes of the last policy, as many as the config asks for."""
        config = self.config
        if not config.final_episodes:
            return {}
        seed = derive_seed(config.seed, "final")
        with interrupted.at_once():  # nothing is lost: the checkpoint is written, and a resumed run plays it again
            played = play(
                self.policy, config.env, config.final_episodes, greedy=False, seed=seed, task_seed=config.seed
            )
        return {"final_evaluation": summarize_policy(played, config.env, greedy=False)}


def _cut_off(config: RunConfig, longest: int) -> list[str]:
    """A word to those whose checkpoints leave environments that restart there too little time for an episode."""
    between, whole = (steps // config.env.num_envs for steps in (config.checkpoint_every, config.total_steps))
    if between >= min(longest, whole):
        return []
    return [
        f"environments restart at every checkpoint: each has {between:,} steps in between, an episode may last "
        f"{longest:,}, and one that is cut off counts for nothing; checkpoint_every = "
        f"{longest * config.env.num_envs:,} leaves time for any"
    ]


def _idle_shaping(opr: OPRConfig) -> list[str]:
    """A word to those who set a shaping that shapes nothing; the defaults say nothing."""
    own = replace(OPRConfig(), shaping=opr.shaping, shaping_scale=opr.shaping_scale, shaping_bound=opr.shaping_bound)
    if opr.shapes or opr.shaping_scale == 0 or own == OPRConfig():
        return []
    why = "a recorded π_good is known for replayed steps only (opr.augment_share), or set opr.reference"
    return [f"OPR: no reward is shaped: {why}"]
