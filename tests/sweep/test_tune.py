"""A search on real runs: done, gone on with, stopped and refused."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace

import pytest

from optimist.cli.main import main
from optimist.errors import MissingExtra, RunFolderError
from optimist.presets import get_preset
from optimist.sweep.space import space_from_flags
from optimist.sweep.study import JOURNAL
from optimist.sweep.trials import mean_in_words
from optimist.sweep.tune import Search, run_tune
from optimist.tracking.config_io import merge

pytest.importorskip("optuna")

SPACE = ["algorithm.learning_rate=log:1e-4..1e-2", "network.activation=tanh,relu"]
COMMAND = ["tune", "deepsea/opr", "--size", "4", "--env.num-envs", "4", "--total-steps", "1024", "--no-tensorboard"]
COMMAND += ["--checkpoint-every", "256", "--seeds", "1", *(word for flag in SPACE for word in ("--search", flag))]


def search(**changes):
    config = get_preset("deepsea/opr")(size=4)
    small = {"total_steps": 1_024, "checkpoint_every": 256, "tensorboard": False, "env": {"num_envs": 4}}
    config = merge(config, small)
    return Search(**({"config": config, "space": space_from_flags(SPACE, config), "seeds": 1} | changes))


def journal(folder):
    return (folder / JOURNAL).read_text()


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("searched")
    run_tune(search(), folder, 2, jobs=1)
    return folder


def test_the_best_trial_stands_first_and_its_settings_can_be_trained_with(searched, capsys):
    lines = [json.loads(line) for line in (searched / "trials.jsonl").read_text().splitlines()]
    values = [line["value"] for line in lines]
    assert len(values) == 2
    assert values == sorted(values, reverse=True)
    best = tomllib.loads((searched / "best.toml").read_text())
    assert best["algorithm"]["learning_rate"] == lines[0]["params"]["algorithm.learning_rate"]
    command = ["train", "deepsea/opr", *COMMAND[2:11], "--config", str(searched / "best.toml"), "--json", "--quiet"]
    assert main([*command, "--out", str(searched.parent / "again")]) == 0
    assert json.loads(capsys.readouterr().out)["last_100_return"] == values[0]


def test_trials_differ_and_lie_in_the_space(searched):
    params = [json.loads(line)["params"] for line in (searched / "trials.jsonl").read_text().splitlines()]
    rates = {one["algorithm.learning_rate"] for one in params}
    assert len(rates) == 2
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert {one["network.activation"] for one in params} <= {"tanh", "relu"}


def test_the_same_search_finds_the_same(searched, tmp_path):
    run_tune(search(), tmp_path, 2, jobs=1)
    assert (tmp_path / "table.md").read_text() == (searched / "table.md").read_text()


def test_again_does_nothing_and_more_trials_go_on(searched):
    before = journal(searched)
    assert len(run_tune(search(), searched, 2)) == 2
    assert journal(searched) == before
    lines = run_tune(search(), searched, 3, jobs=1)
    assert sorted(line["trial"] for line in lines) == [0, 1, 2]
    assert len({line["params"]["algorithm.learning_rate"] for line in lines}) == 3


def test_another_search_in_the_folder_is_refused(searched):
    with pytest.raises(RunFolderError, match=r"holds another search \(another seeds\); choose another folder with -o"):
        run_tune(search(seeds=2), searched, 3)
    with pytest.raises(RunFolderError, match=r"another search \(another config\)"):
        run_tune(search(config=replace(search().config, total_steps=2_048)), searched, 3)


def test_a_damaged_journal_is_one_line(searched, tmp_path):
    (tmp_path / "tune.json").write_text((searched / "tune.json").read_text())
    (tmp_path / JOURNAL).write_text("{half\n" + journal(searched))
    with pytest.raises(RunFolderError, match=r"study\.journal is damaged"):
        run_tune(search(), tmp_path, 3, jobs=1)


@pytest.mark.slow
def test_a_killed_search_goes_on_with_the_trial_it_was_at(tmp_path):
    command = [sys.executable, "-m", "optimist", *COMMAND, "--total-steps", "6144", "--trials", "2", "--jobs", "1"]
    command += ["-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("out/runs/trial-0000/*/checkpoints/step-*")):
            assert driver.poll() is None, driver.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(driver.pid, signal.SIGKILL)
    with (tmp_path / "out" / JOURNAL).open("a") as file:
        file.write('{"half a li')
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    trials = [json.loads(line) for line in (tmp_path / "out" / "trials.jsonl").read_text().splitlines()]
    assert [(trial["state"], trial["error"]) for trial in trials] == [("complete", None)] * 2
    events = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    starts = [event["step"] for event in events if event["event"] == "start" and "trial-0000" in event["run"]]
    assert len(starts) == 2
    assert starts[1] > 0


def test_a_trial_that_diverges_is_told_of_and_the_search_goes_on(tmp_path, monkeypatch):
    import optimist.sweep.tune as tune

    real = tune.Search.runs

    def spoiled(self, number, params):
        runs = real(self, number, params)
        return [replace(run, config=replace(run.config, device="cuda")) for run in runs] if number == 0 else runs

    monkeypatch.setattr(tune.Search, "runs", spoiled)
    said = []
    lines = run_tune(search(), tmp_path, 2, jobs=1, say=said.append)
    assert [line["state"] for line in lines] == ["complete", "fail"]
    assert "torch sees no CUDA device" in lines[-1]["error"]
    assert any(text.startswith("trial 0 failed: ") for text in said)


def test_without_optuna_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"optimist tune needs optuna: pip install 'optimist\[tune\]'"):
        run_tune(search(), tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()


def test_a_trial_below_the_median_is_given_up_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr("optuna.trial.Trial.should_prune", lambda self: self.number == 1)
    config = replace(search().config, total_steps=6_144)
    lines = run_tune(search(config=config, prune=True), tmp_path, 2, jobs=1)
    given_up = next(line for line in lines if line["trial"] == 1)
    assert (given_up["state"], given_up["value"]) == ("pruned", None)
    assert not (tmp_path / "runs" / "trial-0001" / "seed-0" / "summary.json").exists()
    assert (tmp_path / "runs" / "trial-0000" / "seed-0" / "summary.json").exists()


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([-0.0012, -0.0021], "-0.001650 ± 0.0057"),
        ([-0.011, 0.01, -0.0011], "-0.0007000 ± 0.026"),
        ([-0.0, -0.0], "0 ± 0"),
        ([12345.6], "12,346"),
        ([0.99], "0.9900"),
    ],
)
def test_means_that_decide_have_enough_digits_and_no_negative_zero(values, shown):
    assert mean_in_words(values) == shown
