"""One seed for a run; every random part of it draws from a stream of its own."""

from __future__ import annotations

import hashlib
from typing import Literal

Stream = Literal["network", "acting", "shuffle", "opr", "sil", "envs", "evaluation", "final"]


def derive_seed(seed: int, stream: Stream, index: int = 0) -> int:
    """A seed in [0, 2³¹) for one random part of a run, independent of the others."""
    digest = hashlib.sha256(f"{seed}/{stream}/{index}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1
