"""Seeds for the random parts of a run, all derived from its one seed."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, stream: str, index: int = 0) -> int:
    """A seed in [0, 2³¹) for one random part of a run, independent of the others; an anchor's stream is its name."""
    digest = hashlib.sha256(f"{seed}/{stream}/{index}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1
