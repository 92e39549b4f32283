"""Short runs of all families and methods end as they did when golden.json was recorded."""

import json

import pytest

from tests.golden.runs import GOLDEN, RUNS, Run, machine, play

RECORDED = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_run_ends_as_recorded(run: Run, tmp_path, capsys):
    recorded, found = RECORDED["runs"][run.name], play(run, tmp_path / "run")
    exact = machine() == recorded["machine"]
    checked = "bit for bit" if exact else "weights and first update to 1e-4" if run.steady else "first update to 1e-4"
    with capsys.disabled():
        print(f" [golden {run.name}: {checked}]", end="")
    assert found["metrics"].keys() == recorded["metrics"].keys()
    if exact:
        changed = {name for name in recorded["metrics"] if found["metrics"][name] != recorded["metrics"][name]}
        assert not changed, f"metrics changed: {sorted(changed)}"
        assert found["weights"] == recorded["weights"]
        return
    for name, number in recorded["first"].items():
        expected = None if number is None else pytest.approx(number, rel=1e-4, abs=1e-5)
        assert found["first"][name] == expected, name
    assert found["numbers"].keys() == recorded["numbers"].keys()
    for name, numbers in recorded["numbers"].items() if run.steady else ():
        scale = 1e-4 * max(map(abs, numbers))
        assert found["numbers"][name] == pytest.approx(numbers, rel=1e-4, abs=scale), name


def test_every_run_is_recorded():
    assert [run.name for run in RUNS] == list(RECORDED["runs"])
