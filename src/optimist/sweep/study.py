"""The memory of a search: an Optuna study in a journal file, which a killed search goes on with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optimist.errors import RunFolderError, missing_extra
from optimist.sweep.space import Choice, Range, Space
from optimist.tracking.atomic import disk_errors

if TYPE_CHECKING:
    import optuna

JOURNAL, NAME = "study.journal", "tune"


def load_optuna() -> Any:
    """The module, quiet; where it is not installed, the command that installs it."""
    try:
        import optuna
    except ImportError as error:
        raise missing_extra("optimist tune", "tune", "optuna") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class _NoLock:
    """Optuna's own lock file would outlive a killed search; the folder's lock does not."""

    def acquire(self) -> bool:
        """Always."""
        return True

    def release(self) -> None:
        """Nothing to do."""


def open_study(folder: Path, *, seed: int, prune: bool) -> optuna.Study:
    """The study in the folder, begun if there is none; the folder's own lock keeps other writers out."""
    module = load_optuna()
    from optuna.storages.journal import JournalFileBackend

    lock: Any = _NoLock()
    path = folder / JOURNAL
    _cut_half_line(path)
    try:
        storage = module.storages.JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
        if not storage.get_all_studies():
            module.create_study(study_name=NAME, storage=storage, direction="maximize")
        study: optuna.Study = module.load_study(
            study_name=NAME,
            storage=storage,
            pruner=module.pruners.MedianPruner() if prune else module.pruners.NopPruner(),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged ({error}); move the folder away and search again") from error
    # after a break it goes on with other draws than it began with
    study.sampler = module.samplers.TPESampler(seed=seed + len(study.trials))
    return study


def distributions(space: Space) -> dict[str, Any]:
    """The space in Optuna's words."""
    optuna = load_optuna()
    return {name: _distribution(optuna.distributions, dimension) for name, dimension in space.items()}


def _distribution(kinds: Any, dimension: Range | Choice) -> Any:
    if isinstance(dimension, Choice):
        return kinds.CategoricalDistribution(dimension.values)
    if dimension.whole:
        return kinds.IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log)
    return kinds.FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _cut_half_line(path: Path) -> None:
    """A search killed while it wrote leaves half a line; the next one must not be glued to it."""
    with disk_errors(path):
        if path.exists():
            text = path.read_bytes()
            whole = text.rfind(b"\n") + 1
            if whole != len(text):
                path.write_bytes(text[:whole])
