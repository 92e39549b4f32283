"""OPR in a loop with CleanRL's order and names: what the memory holds is what the environments paid."""

from __future__ import annotations

import runpy
import sys
import warnings
from functools import partial
from itertools import chain

import pytest

import optimist
from optimist.core import OPRConfig, Steps
from tests.integrations.test_examples import ROOT

EXAMPLE = ROOT / "examples" / "cleanrl_ppo.py"


def as_recorded(autoreset, monkeypatch, task="CartPole-v1"):
    """Run the example with a memory of every episode; return (return, length) as stored, and as the recorders saw."""
    monkeypatch.setattr(optimist, "OPRConfig", partial(OPRConfig, percentile=0.0, admission="gated"), raising=False)
    arguments = ["--env-id", task, "--total-timesteps", "4096", "--autoreset", autoreset]
    monkeypatch.setattr(sys, "argv", ["cleanrl_ppo.py", *arguments])
    names = runpy.run_path(str(EXAMPLE))
    stored = [(episode.total_reward, len(episode.rows)) for episode in names["opr"].memory.episodes]
    pairs = (zip(env.return_queue, env.length_queue, strict=True) for env in names["envs"].envs)
    return sorted(stored), sorted(chain.from_iterable(pairs))


@pytest.mark.parametrize("autoreset", ["SameStep", "NextStep"])
def test_the_memory_holds_the_true_returns_and_lengths(autoreset, monkeypatch):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="ends of episodes|the step after a marked")
        stored, true = as_recorded(autoreset, monkeypatch)
    assert len(true) > 50
    assert stored == [pytest.approx(pair) for pair in true]


@pytest.mark.parametrize(
    ("autoreset", "shift", "warned"),
    [("SameStep", True, "one step late"), ("NextStep", True, None), ("NextStep", False, "reset step")],
)
def test_dones_passed_as_they_are_give_a_wrong_memory(autoreset, shift, warned, monkeypatch):
    convert = Steps.from_cleanrl

    def unconverted(*, logprobs, dones, next_done, autoreset, **columns):
        if not shift:
            columns |= {"logprobs": logprobs, "dones": dones, "next_done": next_done}
            return convert(**columns, autoreset="SameStep")
        return Steps(**columns, logp=logprobs, dones=dones)

    monkeypatch.setattr(Steps, "from_cleanrl", unconverted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stored, true = as_recorded(autoreset, monkeypatch)
    assert [length for _, length in stored] != [length for _, length in true]
    assert (warned is None) == (not any("Steps.from_cleanrl" in str(warning.message) for warning in caught))
    assert warned is None or any(warned in str(warning.message) for warning in caught)


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_the_example_trains(flags, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cleanrl_ppo.py", "--total-timesteps", "4096", *flags])
    runpy.run_path(str(EXAMPLE))
    assert capsys.readouterr().out.startswith("4,096 steps · mean return of the last 96 episodes ")
