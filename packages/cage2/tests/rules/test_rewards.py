"""The reward by hand."""

from __future__ import annotations

import pytest
from scripted_game import ScriptedGame

from cage2.rules.scenario import (
    DEFENDER,
    ENTERPRISE0,
    ENTERPRISE1,
    OP_HOST0,
    OP_SERVER0,
    RESTORE,
    USER0,
    USER1,
    USER2,
)


@pytest.mark.parametrize(
    ("owned", "reward"),
    [
        ([], 0.0),
        ([USER0], 0.0),
        ([USER1], -0.1),
        ([DEFENDER], -0.1),
        ([OP_HOST0], -0.1),
        ([ENTERPRISE0], -1.0),
        ([OP_SERVER0], -1.0),
        ([USER1, USER2, ENTERPRISE1, OP_SERVER0], -2.2),
    ],
)
def test_privileged_access_costs_the_value_of_the_host(owned: list[int], reward: float) -> None:
    game = ScriptedGame()
    for host in owned:
        game.hold(host, privileged=1)
    assert game.step().reward == reward


def test_user_access_is_free() -> None:
    assert ScriptedGame().hold(ENTERPRISE0, plain=3, flagged=2).step().reward == 0.0


def test_restore_always_costs_one() -> None:
    assert ScriptedGame().do(RESTORE, USER1).reward == -1.0
    assert ScriptedGame().hold(ENTERPRISE0, privileged=1).do(RESTORE, ENTERPRISE0).reward == -1.0
    assert ScriptedGame().hold(ENTERPRISE0, privileged=1).do(RESTORE, USER1).reward == -2.0


def test_stopped_service_costs_ten() -> None:
    game = ScriptedGame()
    game.ot_running = False
    assert game.step().reward == -10.0
