"""`optimist bench atari` on the real emulator, briefly."""

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
from optimist.envs.atari.apart import CAN_SHARE
from optimist.presets import get_preset
from optimist.training import speed
from optimist.training.loop import Trainer
from optimist.training.speed import sustained_speed


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(bench_atari, "SIZES", (2,))
    monkeypatch.setattr(bench, "WARM_UP_STEPS", 24)
    monkeypatch.setattr(speed, "WARM_UP_STEPS", 64)


def test_the_emulator_alone(capsys):
    assert main(["bench", "atari", "--game", "Pong", "--seconds", "0.1", "--presets", "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["game"] == "Pong"
    assert {"2 games, 1 lane, threads", "2 games, threads"} <= set(result["emulator"])
    assert ("2 games, processes" in result["emulator"]) == CAN_SHARE
    assert all(speed > 0 for speed in result["emulator"].values())
    assert result["training"] == {}


def test_each_figure_is_told_as_it_is_measured_and_how_many_there_will_be(capsys, monkeypatch):
    measured = []

    def emulator_speed(game, division, seconds):
        measured.append(capsys.readouterr().err)
        return 4772.4

    monkeypatch.setattr(bench, "emulator_speed", emulator_speed)
    assert main(["bench", "atari", "--game", "Pong", "--seconds", "0.1", "--presets", "--json"]) == 0
    begun, said = "measuring Pong, emulator alone, 2 games, 1 lane, threads ... ", [*measured, capsys.readouterr().err]
    assert said[0].startswith(f"{len(measured)} figures of 0.1 s each")
    assert said[0].endswith(f"\n{begun}")
    assert all(later.startswith("4,772 steps/s\n") for later in said[1:])
    assert said[-1] == "4,772 steps/s\n"


def test_a_preset_stands_beside_the_emulator(monkeypatch, capsys):
    small = get_preset("atari/smoke")(game="Pong")
    small = replace(
        small,
        env=replace(small.env, num_envs=2),
        algorithm=replace(small.algorithm, rollout_steps=16, minibatch_size=32),
    )
    monkeypatch.setattr("optimist.presets.get_preset", lambda name: lambda game: small)
    result = bench_atari.measure("Pong", "cpu", 0.1, ["atari/smoke"])
    figures = result["training"]["atari/smoke"]
    alone = {name: speed for name, speed in result["emulator"].items() if "envpool" not in name}
    assert figures["share_of_emulator_at_this_size"] == figures["steps_per_second"] / max(alone.values())
    assert 0 < figures["share_of_emulator_at_its_best"] <= figures["share_of_emulator_at_this_size"]
    bench_atari.print_figures(result)
    said = capsys.readouterr()
    assert "Training on CPU" in said.out
    assert f"training atari/smoke ... {figures['steps_per_second']:,.0f} steps/s" in said.err


@pytest.mark.parametrize("memory", [{}, {"gpu_bytes": 120.5 * 2**30}])
def test_the_tables_fit_80_columns_and_shorten_nothing(memory, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    shares = {f"share_of_emulator_{how}": 1.0 for how in ("at_this_size", "in_threads", "at_its_best")}
    figures = {"games": 128, "steps_per_second": 123456.7, "start_up_seconds": 22.2, **shares, **memory}
    training = {"atari/fast-rainbow": figures, "atari/ppo": figures}
    result = {"game": "Pong", "device": "CPU", "cores": 2, "emulator": {"8 games, processes": 900.0}}
    bench_atari.print_figures(result | {"training": training, "opr_over_ppo": {}})
    out = capsys.readouterr().out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert all(name in out for name in (*training, "8 games, processes", "123,457", "same", "start"))
    assert ("GiB" in out) == bool(memory)


def test_shares_are_of_the_emulators_that_they_name(monkeypatch):
    def speed_of(game, division, seconds):
        return {"threads": 100.0, "processes": 250.0}[division.workers] * (2 if division.games == 64 else 1)

    monkeypatch.setattr(bench_atari, "SIZES", (8, 64))
    monkeypatch.setattr(bench_atari, "_divisions", divisions_without_envpool(bench_atari._divisions))
    monkeypatch.setattr(bench, "emulator_speed", speed_of)
    monkeypatch.setattr(speed, "sustained_speed", lambda config, seconds: {"steps_per_second": 50.0})
    figures = bench_atari.measure("Pong", "cpu", 0.1, ["atari/ppo"])["training"]["atari/ppo"]
    assert figures["share_of_emulator_in_threads"] == 0.5
    assert figures["share_of_emulator_at_this_size"] == (0.2 if CAN_SHARE else 0.5)
    assert figures["share_of_emulator_at_its_best"] == (0.1 if CAN_SHARE else 0.25)


def divisions_without_envpool(divisions):
    return lambda: [division for division in divisions() if division.backend == "ale"]


def test_without_presets_no_table_of_training_is_printed(capsys):
    result = {"game": "Pong", "device": "CPU", "cores": 2, "emulator": {"8 games": 900.0}, "training": {}}
    bench_atari.print_figures(result | {"opr_over_ppo": {}})
    out = capsys.readouterr().out
    assert "900" in out
    assert "Training" not in out


def test_a_sustained_speed_tells_its_parts():
    config = replace(get_preset("deepsea/opr")(size=4), device="cpu")
    figures = sustained_speed(config, 0.2)
    assert figures["steps_per_second"] > 0
    assert figures["start_up_seconds"] > 0
    assert figures["memory_episodes"] > 0
    assert "gpu_bytes" not in figures


@pytest.mark.parametrize(("remembers_at", "least"), [(1000, 1000), (10**9, 4 * 4_096)])
def test_a_speed_with_opr_is_that_with_something_remembered(monkeypatch, remembers_at, least):
    steps = []
    one_update = Trainer.one_update

    def forgetful(self):
        line = one_update(self)
        steps.append(self.step)
        return line | {"opr/memory_episodes": float(self.step >= remembers_at)}

    monkeypatch.setattr(Trainer, "one_update", forgetful)
    config = get_preset("deepsea/opr")(size=4)
    config = replace(config, env=replace(config.env, num_envs=4))
    sustained_speed(config, 1e-5)
    (measured_from,) = steps[-2:-1]  # one is measured
    assert least <= measured_from < least + config.batch_size


def test_a_speed_measured_past_the_budget_does_not_climb_the_loss(monkeypatch):
    rates = []
    one_update = Trainer.one_update

    def noted(self):
        rates.append(self.algorithm.optimizer.param_groups[0]["lr"])
        return one_update(self)

    monkeypatch.setattr(Trainer, "one_update", noted)
    learner = PPOConfig(rollout_steps=8, minibatch_size=8, learning_rate=1e-3, learning_rate_schedule="linear")
    sustained_speed(RunConfig(total_steps=32, env=EnvConfig(num_envs=2), algorithm=learner), 0.01)
    assert len(rates) * 16 > 32
    assert min(rates) == pytest.approx(1e-3)


def test_the_speed_of_a_value_based_learner_is_that_of_learning(monkeypatch):
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


def test_nothing_of_the_run_before_is_counted_as_memory_of_the_next():
    class Learner:
        pass

    old = Learner()
    old.graphs, gone = old, weakref.ref(old)  # as a learner and its graphs hold each other
    gc.disable()
    try:
        del old
        assert gone() is not None
        sustained_speed(RunConfig(env=EnvConfig(num_envs=2), algorithm=PPOConfig(rollout_steps=8)), 0.01)
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seconds", "0"], "--seconds must be above 0"),
        (["--presets", "deepsea/opr"], "deepsea/opr is none"),
        (["--presets", "atari/pppo"], "did you mean"),
        (["--game", "Pongg"], "did you mean"),
        (["--device", "cudaa"], "device must be cpu, cuda or cuda:N, got 'cudaa'"),
        (["--device", "cuda:99"], "device 'cuda:99' was asked for, but torch sees"),
    ],
)
def test_wrong_words_are_named_before_anything_is_measured(arguments, told, monkeypatch, capsys):
    monkeypatch.setattr(bench_atari, "measure", lambda *_: pytest.fail("it was measured"))
    assert main(["bench", "atari", *arguments]) == 2
    assert told in capsys.readouterr().err
