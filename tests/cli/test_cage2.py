"""`optimist score`, `bench cage2` and `export` on small runs of the Cardiff interface, and on shipped agents."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from cage2.agents.defender import PolicyDefender
from cage2.agents.shipped import SHIPPED_AGENTS
from optimist.cli import bench
from optimist.cli.main import main
from optimist.presets import get_preset
from optimist.training.trainer import train


@pytest.fixture(scope="module")
def specialists(tmp_path_factory):
    folder = tmp_path_factory.mktemp("specialists")
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


def test_run_is_scored_under_the_rules_of_its_training(specialists, capsys):
    assert main(["score", specialists[0], "--episodes", "20", "--sampled", "--json"]) == 0
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


def test_specialists_score_zero_against_sleep(specialists, capsys):
    assert main(["score", *specialists, "--episodes", "20", "--rules", "both", "--sampled", "--json"]) == 0
    result = last_json(capsys)
    assert set(result["total"]) == {"final", "competition"}
    for found in result["rules"].values():
        for mode in ("argmax", "sampled"):
            assert [c["mean"] for c in found[mode]["cells"] if c["red"] == "Sleep"] == [0.0, 0.0, 0.0]
            assert all(c["mean"] < 0 for c in found[mode]["cells"] if c["red"] != "Sleep")


def test_table_shows_the_leaderboard(specialists, capsys):
    assert main(["score", specialists[1], "--episodes", "5", "--rules", "both"]) == 0
    out = capsys.readouterr().out
    assert "-54.57" in out
    assert "CardiffUni" in out
    assert out.count("total") >= 2
    assert out.count("would take place") == 1  # under competition only


def test_json_is_written_to_a_file_or_the_last_line_in_any_flag_position(specialists, capsys, tmp_path):
    file = tmp_path / "score.json"
    assert main(["score", specialists[0], "--episodes", "5", "--json", str(file)]) == 0
    assert "total" in capsys.readouterr().out  # the table as well
    assert main(["score", "--episodes", "5", "--json", specialists[0]]) == 0
    assert last_json(capsys)["total"] == json.loads(file.read_text())["total"]


def test_shipped_agent_is_scored_by_name(capsys, monkeypatch):
    monkeypatch.setitem(SHIPPED_AGENTS, "asleep", make_asleep)
    assert main(["score", "asleep", "--episodes", "200", "--table", "official", "--json"]) == 0
    result = last_json(capsys)
    assert list(result["rules"]) == ["competition"]
    assert result["total"] < -2500  # the leaderboard has −3112 for it


def test_single_episode_has_no_interval(specialists, capsys):
    assert main(["score", specialists[0], "--episodes", "1"]) == 0
    table, _, below = capsys.readouterr().out.partition("± is the 95 % interval")
    assert "±" not in table
    assert below
    assert main(["score", specialists[0], "--episodes", "1", "--json"]) == 0
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
        (["RUN", "--games", "5"], "no flag '--games'; see optimist score --help"),
        (["RUN", "--rule", "final"], "no flag '--rule'; did you mean '--rules'?"),
        (["RUN", "--json", "/nowhere/at/all.json"], "in an existing folder, got /nowhere/at/all.json"),
        (["RUN", "--json", "out.txt"], "--json needs a *.json file in an existing folder, got out.txt"),
    ],
)
def test_bad_input_is_one_clear_line(specialists, arguments, message, capsys):
    arguments = [specialists[0] if word == "RUN" else word for word in arguments]
    assert main(["score", *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("optimist: error: ")
    assert message in error


def test_run_on_another_environment_is_refused(tmp_path, capsys):
    config = get_preset("deepsea/ppo")(size=4)
    train(replace(config, total_steps=1024, tensorboard=False), tmp_path / "run", progress=False)
    assert main(["score", str(tmp_path / "run")]) == 2
    assert "expected CAGE 2" in capsys.readouterr().err


def test_export_writes_the_requested_files(specialists, capsys, tmp_path):
    assert main(["export", *specialists, "--to", "cyborg", str(tmp_path / "agent"), "--json"]) == 0
    assert last_json(capsys)["files"] == [str(tmp_path / "agent" / "agent.py"), str(tmp_path / "agent" / "weights.npz")]
    assert main(["export", specialists[0], "--to", "cyborg", str(tmp_path / "again")]) == 0
    assert "rules  competition" in capsys.readouterr().out
    assert main(["export", specialists[0], "--to", "onnx", str(tmp_path / "onnx")]) == 0
    assert (tmp_path / "onnx" / "policy.onnx").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "--to", "cyborgs", "x"], "no export 'cyborgs'; did you mean 'cyborg'?"),
        (["RUN", "--to", "cyborg"], "expected 2 arguments"),
        (["RUN"], "the following arguments are required: --to"),
        (["RUN", "RUN", "--to", "onnx", "x"], "an ONNX file has one policy, got 2 runs"),
        (["nowhere", "--to", "cyborg", "x"], "no run folder or shipped agent 'nowhere'"),
        (["nowhere", "--to", "onnx", "x"], "nowhere"),
        (["RUN", "--rules", "final", "--to", "onnx", "x"], "--rules is for shipped agents"),
    ],
)
def test_bad_export_arguments_are_refused_in_one_line(specialists, arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *(specialists[0] if word == "RUN" else word for word in arguments)]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("optimist: error: ")
    assert message in error
    assert not (tmp_path / "x").exists()


def test_bench_measures_training(capsys, monkeypatch):
    monkeypatch.setattr(bench, "TRAINED", ("cage2/cardiff-opr",))
    monkeypatch.setattr("cage2.speed.available_cores", lambda: 1)
    assert bench.main(["cage2", "--games", "200", "--seconds", "0.02", "--updates", "1", "--json"]) == 0
    (figures,) = json.loads(capsys.readouterr().out.splitlines()[-1])["training"].values()
    for threads in ("one_core", "all_cores"):
        parts = figures[threads]
        seconds = parts["collect_seconds"] + parts["update_seconds"]
        assert parts["steps_per_second"] == pytest.approx(19_980 / seconds)


def test_bench_refuses_bad_numbers(capsys):
    assert main(["bench", "cage2", "--games", "0"]) == 2
    assert "--games must be at least 1" in capsys.readouterr().err
    assert main(["bench", "cage2", "--updates", "-1"]) == 2
    assert "--updates must be at least 0" in capsys.readouterr().err


def test_the_old_command_forwards(specialists, capsys):
    assert main(["cage2", "score", specialists[0], "--episodes", "5", "--json"]) == 0
    assert list(last_json(capsys)["rules"]) == ["competition"]
    assert main(["cage2", "verify", "nowhere.jsonl.gz"]) == 2
    assert "no file nowhere.jsonl.gz" in capsys.readouterr().err


def test_missing_package_is_named_in_one_line(capsys, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "cage2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cage2", None)
    for arguments in (["cage2", "score", "best"], ["score", "best"], ["bench", "cage2"], ["train", "cage2/ppo"]):
        assert main([*arguments, *(["--total-steps", "1"] if arguments[0] == "train" else [])]) == 2
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert "needs cage2: pip install" in error
