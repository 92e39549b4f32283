"""Emulators at idle priority, and the presets that use it."""

from __future__ import annotations

import pytest

import optimist.envs.atari.vector as vector
from optimist.errors import OptimistError
from optimist.presets import get_preset
from tests.envs.atari.helpers import make


def test_unknown_priority_gets_a_suggestion():
    with pytest.raises(OptimistError, match="no priority 'idel'; did you mean 'idle'"):
        make(priority="idel")


def test_note_says_that_idle_priority_is_not_supported(monkeypatch):
    monkeypatch.setattr(vector, "HAS_IDLE_PRIORITY", False)
    assert make(priority="idle").notes[1:] == ["idle priority needs Linux: the emulators run at normal priority"]
    assert make(priority="normal").notes[1:] == []


@pytest.mark.parametrize("name", ["atari/fast", "atari/fast-ppo", "atari/fast-dqn", "atari/fast-rainbow"])
def test_presets_with_many_environments_use_idle_priority(name):
    assert get_preset(name)().env.kwargs["priority"] == "idle"
    assert "priority" not in get_preset("atari/opr")().env.kwargs


def test_actor_critic_presets_store_selected_actions_and_q_learning_presets_executed_ones():
    presets = {
        name: get_preset(f"atari/{name}")().env.forced_actions
        for name in ("ppo", "opr", "paper", "fast", "a2c-sil", "dqn", "dqn-opr", "fast-rainbow")
    }
    learners = dict.fromkeys(presets, "sampled") | dict.fromkeys(("dqn", "dqn-opr", "fast-rainbow"), "executed")
    assert presets == learners
