"""Skip the tests, loudly, without the compiled core or without ale-py, which has the ROMs and is the reference."""

from __future__ import annotations

import importlib.util

MISSING: list[str] = []
if importlib.util.find_spec("a2600") is None:
    MISSING.append("a2600 is not installed; pip install ./packages/a2600 where a C++ compiler is installed")
else:
    from a2600.core import load_core
    from a2600.errors import CoreMissing

    try:
        load_core()
    except CoreMissing as error:
        MISSING.append(str(error))
if importlib.util.find_spec("ale_py") is None:
    MISSING.append("ale-py is not installed; pip install ale-py")

collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_terminal_summary(terminalreporter) -> None:
    """State loudly what is not tested."""
    for line in MISSING:
        terminalreporter.write_line(f"*** NOT TESTED: the Atari console (packages/a2600): {line}", red=True, bold=True)
