"""Runs a kernel over ranges of games on several threads. Kernels hold no lock, and games share nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from optimist.cores import available_cores
from optimist.errors import ConfigError

GAMES_PER_THREAD = 2048
"""Fewer than this and waking a thread costs more than it brings."""


class GameThreads:
    """Splits N games over threads; what is computed does not depend on how many there are."""

    def __init__(self, num_games: int, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, got {threads}")
        self.threads = threads or max(1, min(available_cores(), num_games // GAMES_PER_THREAD))
        bounds = [num_games * i // self.threads for i in range(self.threads + 1)]
        self.ranges = list(pairwise(bounds))
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}  # a copy has threads of its own

    def run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """The sum of kernel(start, stop, *arguments) over all ranges."""
        here, *elsewhere = self.ranges
        if not elsewhere:
            return kernel(*here, *arguments)
        if self._pool is None or self._process != os.getpid():  # threads do not survive a fork
            self._pool = ThreadPoolExecutor(len(elsewhere), thread_name_prefix="cage2")
            self._process = os.getpid()
        futures = [self._pool.submit(kernel, *part, *arguments) for part in elsewhere]
        return kernel(*here, *arguments) + sum(future.result() for future in futures)

    def close(self) -> None:
        """Lets the threads go."""
        if self._pool is not None and self._process == os.getpid():
            self._pool.shutdown(wait=False)
        self._pool = None
