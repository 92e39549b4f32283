"""A search for good settings: Optuna draws trials, each the mean of its runs over seeds, on the sweep's machinery."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimist.config import RunConfig
from optimist.errors import OptimistError, RunFolderError
from optimist.sweep.drive import Driver
from optimist.sweep.folder import WorkFolder
from optimist.sweep.plan import RETRIES, Run, gpu_share
from optimist.sweep.run import make_executor
from optimist.sweep.space import Space, nested
from optimist.sweep.statistic import check_statistic, score
from optimist.sweep.study import distributions, load_optuna, open_study
from optimist.sweep.trials import mean_in_words, trial_lines, words, write_trials
from optimist.tracking.config_io import merge, to_dict
from optimist.tracking.metrics_log import read_metrics

if TYPE_CHECKING:
    import optuna

PLAN = "tune.json"
RUNGS = (0.25, 0.5, 0.75)
"""Shares of the budget at which a trial may be given up."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for: settings of `config` within `space`, by the mean over `seeds` of a statistic."""

    config: RunConfig
    space: Space
    seeds: int = 3
    statistic: str = "auto"
    prune: bool = False

    def identity(self) -> dict[str, Any]:
        """What must not change while a folder's search goes on."""
        space = {name: str(dimension) for name, dimension in self.space.items()}
        config = to_dict(self.config)
        return {"config": config, "space": space, "seeds": self.seeds, "statistic": self.statistic, "prune": self.prune}

    def runs(self, number: int, params: dict[str, Any]) -> list[Run]:
        """The runs of a trial, one a seed."""
        config = merge(self.config, nested(params))
        return [
            Run(
                name=f"trial-{number:04}/seed-{seed}",
                method=config.preset,
                env=config.env.id,
                config=replace(config, seed=self.config.seed + seed),
                cpus=float(config.threads),
                gpus=gpu_share(config),
            )
            for seed in range(self.seeds)
        ]


@dataclass
class _Trial:
    """A trial under way."""

    trial: optuna.Trial
    runs: list[Run]
    pruned: bool = False


def run_tune(
    search: Search,
    out: Path,
    trials: int,
    *,
    ray: str | None = None,
    jobs: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Goes on until the folder holds `trials` trials; a line for each, best first."""
    load_optuna()
    check_statistic(search.statistic, search.config)
    folder = WorkFolder(out)
    lock = folder.claim(PLAN)
    try:
        _adopt(folder, search)
        study = open_study(folder.path, seed=search.config.seed, prune=search.prune)
        probe = search.runs(0, {})
        executor = make_executor(folder, tuple(probe), ray, jobs)
        driver = Driver(folder, executor, RETRIES)
        try:
            Tuner(search, study, driver, say).run(trials, slots=executor.slots(probe[0]))
        finally:
            driver.close()
        lines = trial_lines(study)
        write_trials(folder.path, list(search.space), search.seeds, lines)
        return lines
    finally:
        lock.release()


class Tuner:
    """The trials under way, and what Optuna is told about them."""

    def __init__(self, search: Search, study: optuna.Study, driver: Driver, say: Callable[[str], None]) -> None:
        self.search, self.study, self.driver, self.say = search, study, driver, say
        self.optuna = load_optuna()
        self.distributions = distributions(search.space)
        self.active: dict[int, _Trial] = {}

    def run(self, trials: int, slots: int) -> None:
        """Keeps as many trials going as there is room for, until there are enough; those left unfinished come first."""
        unfinished = self._unfinished()
        width = max(1, -(-slots // self.search.seeds))
        while True:
            while len(self.active) < width:
                if unfinished:
                    self._begin(unfinished.pop(0))
                elif len(self.study.trials) < trials:
                    self._begin(self.study.ask(self.distributions))
                else:
                    break
            if not self.active:
                return
            for ended in self.driver.step(0.5):
                if ended.error is not None and not (ended.again or ended.error == "cancelled"):
                    self.say(f"{ended.run.name} failed: {ended.error}")
            for number in list(self.active):
                self._look(number)

    def _unfinished(self) -> list[optuna.Trial]:
        """Trials that a stopped search left under way; one that was not even drawn completely is given up."""
        found = []
        for frozen in self.study.get_trials(states=(self.optuna.trial.TrialState.RUNNING,)):
            if set(frozen.params) == set(self.search.space):
                found.append(self.optuna.trial.Trial(self.study, frozen._trial_id))
            else:
                self.study.tell(frozen.number, state=self.optuna.trial.TrialState.FAIL)
        return found

    def _begin(self, trial: optuna.Trial) -> None:
        try:
            runs = self.search.runs(trial.number, trial.params)
        except OptimistError as error:  # two settings that contradict each other
            self._fail(trial, str(error))
            return
        self.active[trial.number] = _Trial(trial, runs)
        for run in runs:
            self.driver.submit(run)

    def _look(self, number: int) -> None:
        """Tells Optuna what has become of a trial; gives it up where that is wanted and it lags behind."""
        one = self.active[number]
        if all(run.name in self.driver.finished or run.name in self.driver.failed for run in one.runs):
            del self.active[number]
            self._tell(one)
        elif self.search.prune and not one.pruned and self._lags(one):
            one.pruned = True
            for run in one.runs:
                if run.name not in self.driver.finished:
                    self.driver.cancel(run.name)

    def _tell(self, one: _Trial) -> None:
        trial = one.trial
        if one.pruned:
            self.study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
            self.say(f"trial {trial.number}: given up; {words(trial.params)}")
            return
        errors = [self.driver.failed[run.name] for run in one.runs if run.name in self.driver.failed]
        values = [] if errors else [self._value(run) for run in one.runs]
        if errors or None in values:
            self._fail(trial, errors[0] if errors else "no episode ended")
            return
        numbers = [float(value) for value in values if value is not None]
        trial.set_user_attr("values", numbers)
        self.study.tell(trial, sum(numbers) / len(numbers))
        best = self.study.best_trial
        self.say(f"trial {trial.number}: {mean_in_words(numbers)}; {words(trial.params)}; best: trial {best.number}")

    def _fail(self, trial: optuna.Trial, error: str) -> None:
        trial.set_user_attr("error", error)
        self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        self.say(f"trial {trial.number} failed: {error}; {words(trial.params)}")

    def _value(self, run: Run) -> float | None:
        summary = self.driver.folder.summary(run.name)
        assert summary is not None, "a finished run has a summary"
        return score(summary, self.search.statistic).value

    def _lags(self, one: _Trial) -> bool:
        """Reports the mean training return at each rung all runs have passed; whether Optuna would stop there."""
        known = self.study.trials[one.trial.number].intermediate_values
        for rung, share in enumerate(RUNGS, start=1):
            if rung in known:
                continue
            values = [self._return_at(run, share * run.budget) for run in one.runs]
            if None in values:
                return False
            one.trial.report(sum(value for value in values if value is not None) / len(values), rung)
            if one.trial.should_prune():
                return True
        return False

    def _return_at(self, run: Run, step: float) -> float | None:
        """Mean return of the last training episodes at the first line of the metrics from `step` on."""
        if self.driver.folder.newest_metrics(run.name).get("step", 0) < step:
            return None
        lines = read_metrics(self.driver.folder.run_path(run.name) / "metrics.jsonl")
        return next((line.get("rollout/raw_return") for line in lines if line["step"] >= step), None)


def _adopt(folder: WorkFolder, search: Search) -> None:
    identity = json.loads(json.dumps(search.identity()))
    if (folder.path / PLAN).exists():
        before = folder.read_plan(PLAN)
        changed = [key for key in identity if before.get(key) != identity[key]]
        if changed:
            raise RunFolderError(
                f"{folder.path} holds another search (another {changed[0]}); choose another folder with -o"
            )
    folder.write_plan(PLAN, identity)
