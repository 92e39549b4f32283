"""The runs of a benchmark, several at a time, each a line of runs.jsonl; an interrupted one goes on where it was."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Job = tuple[Any, ...]


class Runs:
    """The rows of a file, one a run. A job is what tells one apart: its entries named by `key`, in order."""

    def __init__(self, file: Path, key: tuple[str, ...], *, sort_names: bool = True) -> None:
        """Takes the rows that stand in the file; `sort_names`: of the entries of a row, when it is written."""
        self.file, self.key, self.sort_names = file, key, sort_names
        self.rows: list[Row] = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def job_of(self, row: Row) -> Job:
        """The job whose row this is."""
        return tuple(row[name] for name in self.key)

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs that no row stands for."""
        done = {self.job_of(row) for row in self.rows}
        return [job for job in jobs if job not in done]

    def add(self, run: Callable[..., Row], jobs: list[Job], workers: int) -> None:
        """Every job in a process, `workers` at a time; its row `run(*job)` is written as soon as it is there.

        An error ends the benchmark once the runs under way are through; the jobs behind them are not begun.
        """
        self.file.parent.mkdir(parents=True, exist_ok=True)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, spawn) as pool, self.file.open("a") as file:
            futures = [pool.submit(run, *job) for job in jobs]
            try:
                for number, future in enumerate(as_completed(futures), 1):
                    row = future.result()
                    self.rows.append(row)
                    file.write(self._line(row))
                    file.flush()
                    shown = {name: value for name, value in row.items() if not isinstance(value, list)}
                    print(f"{number}/{len(jobs)}", json.dumps(shown), file=sys.stderr)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def sort(self, order: Callable[[Row], Any]) -> list[Row]:
        """The rows in this order, here and in the file."""
        self.rows.sort(key=order)
        self.file.write_text("".join(map(self._line, self.rows)))
        return self.rows

    def _line(self, row: Row) -> str:
        return json.dumps(row, sort_keys=self.sort_names) + "\n"
