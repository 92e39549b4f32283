import json
from dataclasses import replace

import numpy as np
import pytest

from optimist.cli.main import main
from optimist.envs.cage2.agents import LOADERS
from optimist.envs.cage2.defender import PolicyDefender
from optimist.presets import get_preset
from optimist.training.loop import train


@pytest.fixture(scope="module")
def experts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experts")
    for red in ("B_line", "Meander"):
        config = get_preset("cage2/cardiff-opr")(red=red, rules="competition")
        env = replace(config.env, num_envs=8)
        config = replace(config, env=env, total_steps=2 * 8 * 30, tensorboard=False)
        train(config, folder / red, progress=False)
    return [str(folder / "B_line"), str(folder / "Meander")]


def make_asleep(rules):
    return PolicyDefender(lambda inputs: np.eye(1, 145, dtype=np.float32).repeat(len(inputs), 0))


def last_json(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_one_run_is_scored_under_the_rules_it_was_trained_under(experts, capsys):
    assert main(["cage2", "score", experts[0], "--episodes", "20", "--json"]) == 0
    result = last_json(capsys)
    assert list(result["rules"]) == ["competition"]
    found = result["rules"]["competition"]
    assert found["table"] == "cardiff"
    assert (
        result["total"] == found["argmax"]["total"] == pytest.approx(sum(c["mean"] for c in found["argmax"]["cells"]))
    )
    assert len(found["sampled"]["cells"]) == 9
    low, high = found["argmax"]["interval_95"]
    assert low < result["total"] < high
    assert result["episodes"] == 20


def test_experts_score_zero_against_sleep_for_they_sleep_too(experts, capsys):
    assert main(["cage2", "score", *experts, "--episodes", "20", "--rules", "both", "--json"]) == 0
    result = last_json(capsys)
    assert set(result["total"]) == {"final", "competition"}
    for found in result["rules"].values():
        for mode in ("argmax", "sampled"):
            assert [c["mean"] for c in found[mode]["cells"] if c["red"] == "Sleep"] == [0.0, 0.0, 0.0]
            assert all(c["mean"] < 0 for c in found[mode]["cells"] if c["red"] != "Sleep")


def test_the_table_stands_beside_the_leaderboard(experts, capsys):
    assert main(["cage2", "score", experts[1], "--episodes", "5", "--rules", "both"]) == 0
    out = capsys.readouterr().out
    assert "-54.57" in out
    assert "CardiffUni" in out
    assert out.count("total") >= 2
    assert out.count("would take place") == 1  # under competition only


def test_json_goes_to_a_file_or_to_the_last_line_wherever_the_flag_stands(experts, capsys, tmp_path):
    file = tmp_path / "score.json"
    assert main(["cage2", "score", experts[0], "--episodes", "5", "--json", str(file)]) == 0
    assert "total" in capsys.readouterr().out  # the table as well
    assert main(["cage2", "score", "--episodes", "5", "--json", experts[0]]) == 0
    assert last_json(capsys)["total"] == json.loads(file.read_text())["total"]


def test_a_shipped_agent_goes_by_its_name(capsys, monkeypatch):
    monkeypatch.setitem(LOADERS, "asleep", f"{__name__}:make_asleep")
    assert main(["cage2", "score", "asleep", "--episodes", "200", "--table", "official", "--json"]) == 0
    result = last_json(capsys)
    assert list(result["rules"]) == ["final"]
    assert result["total"] < -2500  # the leaderboard has −3112 for it


def test_a_single_game_has_no_interval(experts, capsys):
    assert main(["cage2", "score", experts[0], "--episodes", "1"]) == 0
    table, _, below = capsys.readouterr().out.partition("± is the 95 % interval")
    assert "±" not in table
    assert below
    assert main(["cage2", "score", experts[0], "--episodes", "1", "--json"]) == 0
    assert last_json(capsys)["rules"]["competition"]["argmax"]["interval_95"] == [None, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no run to score"),
        (["nowhere"], "no run folder or shipped agent 'nowhere'"),
        (["RUN", "--episodes", "0"], "--episodes must be at least 1"),
        (["RUN", "--rules", "finale"], "invalid choice: 'finale'"),
        (["RUN", "--table", "mine"], "invalid choice: 'mine'"),
        (["RUN", "RUN"], "trained against B_line like"),
        (["RUN", "--games", "5"], "no flag '--games'; see optimist cage2 score --help"),
        (["RUN", "--rule", "final"], "no flag '--rule'; did you mean '--rules'?"),
        (["RUN", "--json", "/nowhere/at/all.json"], "in a folder that exists, got /nowhere/at/all.json"),
        (["RUN", "--json", "out.txt"], "--json writes a *.json file in a folder that exists, got out.txt"),
    ],
)
def test_bad_input_is_one_clear_line(experts, arguments, message, capsys):
    arguments = [experts[0] if word == "RUN" else word for word in arguments]
    assert main(["cage2", "score", *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("optimist: error: ")
    assert message in error


def test_a_run_on_another_environment_is_refused(tmp_path, capsys):
    config = get_preset("deepsea/ppo")(size=4)
    train(replace(config, total_steps=1024, tensorboard=False), tmp_path / "run", progress=False)
    assert main(["cage2", "score", str(tmp_path / "run")]) == 2
    assert "which is not CAGE 2" in capsys.readouterr().err


def test_export_writes_what_was_asked_for(experts, capsys, tmp_path):
    assert main(["export", *experts, "--to", "cyborg", str(tmp_path / "agent"), "--json"]) == 0
    assert last_json(capsys)["files"] == [str(tmp_path / "agent" / "agent.py"), str(tmp_path / "agent" / "weights.npz")]
    assert main(["export", experts[0], "--to", "cyborg", str(tmp_path / "again")]) == 0
    assert "rules  competition" in capsys.readouterr().out
    assert main(["export", experts[0], "--to", "onnx", str(tmp_path / "onnx")]) == 0
    assert (tmp_path / "onnx" / "policy.onnx").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "--to", "cyborgs", "x"], "no export 'cyborgs'; did you mean 'cyborg'?"),
        (["RUN", "--to", "cyborg"], "expected 2 arguments"),
        (["RUN"], "the following arguments are required: --to"),
        (["RUN", "RUN", "--to", "onnx", "x"], "an ONNX file holds one policy, got 2 runs"),
        (["nowhere", "--to", "cyborg", "x"], "no run folder or shipped agent 'nowhere'"),
        (["nowhere", "--to", "onnx", "x"], "nowhere"),
        (["RUN", "--rules", "final", "--to", "onnx", "x"], "--rules chooses among shipped agents"),
    ],
)
def test_bad_exports_are_one_clear_line(experts, arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *(experts[0] if word == "RUN" else word for word in arguments)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("optimist: error: ")
    assert message in error
    assert not (tmp_path / "x").exists()
