"""`optimist bench atari` on the real emulator, and the speed measurements behind it."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import pytest

from optimist.cli import bench_atari
from optimist.cli.main import main
from optimist.config import DQNConfig, EnvConfig, PPOConfig, RunConfig
from optimist.envs.atari import bench
from optimist.envs.atari.console_emulators import choose_emulator
from optimist.envs.atari.subprocess_emulators import SUPPORTED
from optimist.presets import get_preset
from optimist.training import speed
from optimist.training.speed import sustained_speed
from optimist.training.trainer import Trainer


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(bench, "SIZES", (2,))
    monkeypatch.setattr(bench, "WARM_UP_STEPS", 24)
    monkeypatch.setattr(speed, "WARM_UP_STEPS", 64)


def test_emulators_alone(capsys):
    assert main(["bench", "atari", "--game", "Pong", "--seconds", "0.1", "--presets", "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["game"] == "Pong"
    assert "2 envs, ale-py, one thread" in result["emulator"]
    assert ("2 envs, ale-py, processes" in result["emulator"]) == SUPPORTED
    assert ("2 envs, a2600" in result["emulator"]) == (choose_emulator("auto", "Pong") == "a2600")
    assert all(speed > 0 for speed in result["emulator"].values())
    assert result["training"] == {}


def test_progress_reports_each_measurement(capsys, monkeypatch):
    measured = []

    def emulator_speed(game, setup, seconds):
        measured.append(capsys.readouterr().err)
        return 4772.4

    monkeypatch.setattr(bench, "emulator_speed", emulator_speed)
    assert main(["bench", "atari", "--game", "Pong", "--seconds", "0.1", "--presets", "--json"]) == 0
    reports = [*measured, capsys.readouterr().err]
    assert reports[0].startswith(f"{len(measured)} measurements of 0.1 s each")
    assert reports[0].endswith("\nmeasuring Pong, emulator alone, 2 envs, ale-py, one thread ... ")
    assert all(report.startswith("4,772 steps/s\n") for report in reports[1:])
    assert reports[-1] == "4,772 steps/s\n"


def test_training_speed_is_reported_with_its_share_of_the_emulator(monkeypatch, capsys):
    small = get_preset("atari/smoke")(game="Pong")
    small = replace(
        small,
        env=replace(small.env, num_envs=2),
        algorithm=replace(small.algorithm, rollout_steps=16, minibatch_size=32),
    )
    monkeypatch.setattr("optimist.presets.get_preset", lambda name: lambda game: small)
    result = bench_atari.measure("Pong", "cpu", 0.1, ["atari/smoke"])
    figures = result["training"]["atari/smoke"]
    alone = {name: speed for name, speed in result["emulator"].items() if "EnvPool" not in name}
    assert figures["share_of_emulator_at_this_size"] == figures["steps_per_second"] / max(alone.values())
    assert 0 < figures["share_of_emulator_at_its_best"] <= figures["share_of_emulator_at_this_size"]
    bench_atari.print_figures(result)
    printed = capsys.readouterr()
    assert "Training on CPU" in printed.out
    assert f"training atari/smoke ... {figures['steps_per_second']:,.0f} steps/s" in printed.err


@pytest.mark.parametrize("memory", [{}, {"gpu_bytes": 120.5 * 2**30}])
def test_tables_fit_80_columns_without_truncation(memory, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    shares = {f"share_of_emulator_{how}": 1.0 for how in ("ale", "at_this_size", "at_its_best")}
    figures = {"num_envs": 128, "steps_per_second": 123456.7, "start_up_seconds": 22.2, **shares, **memory}
    training = {"atari/fast-rainbow": figures, "atari/ppo": figures}
    result = {"game": "Pong", "device": "CPU", "cores": 2, "emulator": {"8 envs, ale-py, processes": 900.0}}
    bench_atari.print_figures(result | {"training": training, "opr_over_ppo": {}})
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert all(name in out for name in (*training, "8 envs, ale-py, processes", "123,457", "same", "start"))
    assert ("GiB" in out) == bool(memory)


def test_shares_refer_to_the_fastest_emulator_of_their_kind(monkeypatch):
    def speed_of(game, setup, seconds):
        speed = {"ale": 100.0, "a2600": 250.0}[setup.emulator] / (2 if setup.worker_type == "none" else 1)
        return speed * (2 if setup.num_envs == 64 else 1)

    monkeypatch.setattr(bench, "SIZES", (8, 64))
    monkeypatch.setattr(bench, "SUPPORTED", True)
    monkeypatch.setattr(bench, "choose_emulator", lambda name, game: "a2600")
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    monkeypatch.setattr(bench, "emulator_speed", speed_of)
    monkeypatch.setattr(speed, "sustained_speed", lambda config, seconds: {"steps_per_second": 50.0})
    figures = bench_atari.measure("Pong", "cpu", 0.1, ["atari/ppo"])["training"]["atari/ppo"]
    assert figures["share_of_emulator_ale"] == 0.5
    assert figures["share_of_emulator_at_this_size"] == 0.2
    assert figures["share_of_emulator_at_its_best"] == 0.1


@pytest.mark.parametrize("installed", [True, False])
def test_envpool_is_measured_if_it_is_installed(monkeypatch, installed):
    speeds = {
        "8 envs, ale-py, one thread": 80.0,
        "8 envs, ale-py, processes": 125.0,
        "64 envs, ale-py, processes": 130.0,
    }
    if installed:
        speeds |= {"8 envs, EnvPool": 150.0, "64 envs, EnvPool": 200.0}
    monkeypatch.setattr(bench, "SIZES", (8, 64))
    monkeypatch.setattr(bench, "SUPPORTED", True)
    monkeypatch.setattr(bench, "choose_emulator", lambda name, game: "ale")
    monkeypatch.setattr(bench, "find_spec", lambda name: installed)
    monkeypatch.setattr(bench, "emulator_speed", lambda game, setup, seconds: speeds[setup.name])
    monkeypatch.setattr(speed, "sustained_speed", lambda config, seconds: {"steps_per_second": 50.0})
    result = bench_atari.measure("Pong", "cpu", 0.1, ["atari/ppo"])
    assert result["emulator"] == speeds
    figures = result["training"]["atari/ppo"]
    assert figures["share_of_emulator_ale"] == figures["share_of_emulator_at_this_size"] == 0.4
    assert figures["share_of_emulator_at_its_best"] == 50 / (200 if installed else 130)


@pytest.mark.parametrize("num_envs", [2, 20])
def test_speed_of_envpool_is_measured(monkeypatch, num_envs):
    pytest.importorskip("envpool", reason="EnvPool is not installed")
    monkeypatch.setattr(bench, "WARM_UP_STEPS", bench.ACTION_ROWS)
    assert bench.emulator_speed("Pong", bench.EmulatorSetup(num_envs, emulator="EnvPool"), 0.01) > 10


def test_no_training_table_without_presets(capsys):
    result = {"game": "Pong", "device": "CPU", "cores": 2, "emulator": {"8 envs": 900.0}, "training": {}}
    bench_atari.print_figures(result | {"opr_over_ppo": {}})
    out = capsys.readouterr().out
    assert "900" in out
    assert "Training" not in out


def test_sustained_speed_reports_its_parts():
    config = replace(get_preset("deepsea/opr")(size=4), device="cpu")
    figures = sustained_speed(config, 0.2)
    assert figures["steps_per_second"] > 0
    assert figures["start_up_seconds"] > 0
    assert figures["memory_episodes"] > 0
    assert "gpu_bytes" not in figures


@pytest.mark.parametrize(("first_admission", "least"), [(1000, 1000), (10**9, 4 * 4_096)])
def test_speed_with_opr_is_measured_after_the_first_admission(monkeypatch, first_admission, least):
    steps = []
    one_update = Trainer.one_update

    def report_empty_memory(self):
        line = one_update(self)
        steps.append(self.step)
        return line | {"opr/memory_episodes": float(self.step >= first_admission)}

    monkeypatch.setattr(Trainer, "one_update", report_empty_memory)
    config = get_preset("deepsea/opr")(size=4)
    config = replace(config, env=replace(config.env, num_envs=4))
    sustained_speed(config, 1e-5)
    (measured_from,) = steps[-2:-1]  # one is measured
    assert least <= measured_from < least + config.batch_size


def test_learning_rate_schedule_stays_at_its_start(monkeypatch):
    rates = []
    one_update = Trainer.one_update

    def record_rate(self):
        rates.append(self.algorithm.optimizer.param_groups[0]["lr"])
        return one_update(self)

    monkeypatch.setattr(Trainer, "one_update", record_rate)
    learner = PPOConfig(rollout_steps=8, minibatch_size=8, learning_rate=1e-3, learning_rate_schedule="linear")
    sustained_speed(RunConfig(total_steps=32, env=EnvConfig(num_envs=2), algorithm=learner), 0.01)
    assert len(rates) * 16 > 32
    assert min(rates) == pytest.approx(1e-3)


def test_speed_of_a_value_based_learner_is_measured_while_it_learns(monkeypatch):
    updates = []
    one_update = Trainer.one_update
    monkeypatch.setattr(Trainer, "one_update", lambda self: updates.append(one_update(self)) or updates[-1])
    learner = DQNConfig(rollout_steps=8, minibatch_size=8, learning_starts=600)
    config = RunConfig(env=EnvConfig(num_envs=2), algorithm=learner)
    sustained_speed(config, 0.01)
    learned = ["loss/td" in metrics for metrics in updates]
    # The warm-up alone would be 64 steps of 2 environments, 8 updates; the 38th ends with step 608.
    assert learned.index(True) == 37
    assert all(learned[37:])
    assert len(learned) > 38


def test_memory_of_an_earlier_run_is_released():
    class Learner:
        pass

    old = Learner()
    old.graphs, reference = old, weakref.ref(old)  # a cycle, as of a learner and its graphs
    gc.disable()
    try:
        del old
        assert reference() is not None
        sustained_speed(RunConfig(env=EnvConfig(num_envs=2), algorithm=PPOConfig(rollout_steps=8)), 0.01)
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seconds", "0"], "--seconds must be above 0"),
        (["--presets", "deepsea/opr"], "--presets must be presets of Atari, got deepsea/opr"),
        (["--presets", "atari/pppo"], "did you mean"),
        (["--game", "Pongg"], "did you mean"),
        (["--device", "cudaa"], "device must be cpu, cuda or cuda:N, got 'cudaa'"),
        (["--device", "cuda:99"], "device 'cuda:99' is not available: torch sees"),
    ],
)
def test_wrong_arguments_are_reported_before_anything_is_measured(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(bench_atari, "measure", lambda *_: pytest.fail("measure was called"))
    assert main(["bench", "atari", *arguments]) == 2
    assert message in capsys.readouterr().err
