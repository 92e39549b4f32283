"""Choose where pip gets PyTorch from: print the options of `pip install` that give a wheel without CUDA.

python tools/torch_index.py URL [CONSTRAINTS]

On Linux the default wheel of PyTorch needs 5 GB of CUDA libraries. If pip would take that one, and the index at URL
can be reached, the options add that index, whose wheels (2.13.0+cpu) pip prefers to the default ones of the same
version. No options are printed where torch is installed, where pip finds a CPU wheel without them, for an empty URL, or
where the index cannot be reached. One line on stderr says which.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import threading
import urllib.request

from pip._vendor.packaging.requirements import InvalidRequirement, Requirement

SECONDS = 5
"""Longest wait for an answer of the index."""
CUDA = ("nvidia-", "cuda-", "triton", "pytorch-triton")
"""Names of packages that only a CUDA build of torch requires start so."""


def default_wheel(constraints: str) -> dict | None:
    """The metadata of the torch that pip would install, or None where it finds none."""
    command = ["install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed", "--constraint", constraints]
    result = subprocess.run(
        [sys.executable, "-m", "pip", *command, "--report", "-", "torch"], capture_output=True, text=True
    )
    return json.loads(result.stdout)["install"][0]["metadata"] if result.returncode == 0 else None


def needs_cuda(metadata: dict) -> bool:
    """Whether the wheel requires CUDA libraries on this system."""
    return any(_is_cuda(text) for text in metadata.get("requires_dist", ()))


def _is_cuda(text: str) -> bool:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return False
    applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    return applies and requirement.name.startswith(CUDA)


def answers(url: str) -> bool:
    """Whether the index has a page of torch, asked for at most `SECONDS` seconds."""
    found = threading.Event()

    def ask() -> None:  # in a thread, because looking up a name has no time limit
        page = f"{url.rstrip('/')}/torch/"
        with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(page, timeout=SECONDS) as response:
            if response.status == 200:
                found.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    return found.is_set()


def choose(url: str, constraints: str) -> tuple[list[str], str]:
    """The options for pip, and a sentence that gives the reason."""
    if importlib.util.find_spec("torch") is not None:
        return [], "is installed"
    if not url:
        return [], "pip's default wheel, as TORCH_INDEX is empty"
    metadata = default_wheel(constraints)
    if metadata is None:
        return [], "pip finds no wheel; its error follows"
    if not needs_cuda(metadata):
        return [], f"{metadata['version']}, a CPU wheel"
    if not answers(url):
        return [], f"{metadata['version']} with 5 GB of CUDA libraries, because {url} cannot be reached"
    return ["--extra-index-url", url], f"a CPU wheel from {url}; for CUDA: make TORCH_INDEX="


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("expected the URL of an index: python tools/torch_index.py URL [CONSTRAINTS]")
    options, reason = choose(sys.argv[1], *(sys.argv[2:] or ["constraints.txt"]))
    print(f"torch: {reason}", file=sys.stderr)
    print(*options)
