"""The penalty of one step: privileged red access per host, a stopped OTService, and the price of a Restore."""

from __future__ import annotations

from typing import Any

from optimist.envs.cage2.chance import size
from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.network import WORTH_A_TENTH, WORTH_ONE


@rule
def penalty_in_tenths(game: Any, restoring: bool) -> int:
    """−10 r as an integer: r = −Σ values of hosts red owns − 10 if OTService is down − 1 for a Restore.

    User-level sessions cost nothing, User0 is worth nothing, and a stopped service is charged at every step until
    Op_Server0 is restored.
    """
    tenths = 10 * size(game.owned & WORTH_ONE) + size(game.owned & WORTH_A_TENTH)
    if not game.ot_running:
        tenths += 100
    if restoring:
        tenths += 10
    return tenths
