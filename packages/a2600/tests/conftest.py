"""What the tests need: the compiled core, and ale-py for its ROMs and as the reference."""

from __future__ import annotations

import pytest
from a2600.core import load_core
from a2600.errors import CoreMissing


def pytest_report_header() -> list[str]:
    """State loudly what is missing."""
    lines = []
    try:
        load_core()
    except CoreMissing as error:
        lines.append(f"a2600: NOT TESTED: {error}")
    try:
        import ale_py  # noqa: F401
    except ImportError:
        lines.append("a2600: NOT TESTED against ale-py: it is not installed (pip install ale-py)")
    return lines


@pytest.fixture(scope="session", autouse=True)
def core() -> None:
    """Skip where the core is not compiled or ale-py, which has the ROMs, is missing; the header says so."""
    try:
        load_core()
    except CoreMissing as error:
        pytest.skip(str(error))
    pytest.importorskip("ale_py", reason="ale-py has the ROMs and is the reference")
