"""Several runs side by side, each in a process of its own; their run folders tell how far they are."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from optimist.config import RunConfig
from optimist.signals import children_without_ctrl_c


@dataclass(frozen=True)
class Job:
    """One run of a comparison."""

    label: str
    config: RunConfig
    out: Path

    def latest(self) -> dict[str, Any] | None:
        """The newest line of the run's metrics, or None before the first."""
        try:
            with (self.out / "metrics.jsonl").open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - 8192))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return None
        whole = [line for line in lines[:-1] if line.startswith(b"{")]
        return json.loads(whole[-1]) if whole else None


def run_all(
    jobs: Sequence[Job], workers: int, tick: Callable[[], None] = lambda: None, every: float = 0.5
) -> list[dict[str, Any]]:
    """Train all jobs, `workers` at a time; their summaries in order. `tick` is called every now and then.

    After the first error, or a signal, nothing more is begun, and runs under way stop between two updates.
    """
    spawn = multiprocessing.get_context("spawn")
    others, over = multiprocessing.active_children(), spawn.Event()
    pool = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_share, initargs=(over,))
    try:
        with children_without_ctrl_c():
            futures = [pool.submit(_run, job) for job in jobs]
        waiting: set[Future[dict[str, Any]]] = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=every, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            tick()
        return [future.result() for future in futures]
    except BaseException:
        over.set()  # for those that wait in the pool
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_over: Event | None = None


def _share(over: Event) -> None:
    global _over
    _over = over


def _run(job: Job) -> dict[str, Any]:
    from optimist.training.loop import train

    if _over is not None and _over.is_set():
        raise KeyboardInterrupt
    return train(job.config, job.out, progress=False)
