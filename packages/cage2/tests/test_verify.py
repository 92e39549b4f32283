"""Recorded episodes of the original replay without a difference, and every difference is reported."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cage2.cli import main
from cage2.errors import TraceError
from cage2.traces import RECORDED, STEP_FIELDS, parse_episode
from cage2.verify import FIELDS, compare, verify_files

Recorded = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def episode(recorded: Recorded) -> dict[str, Any]:
    """A recorded episode with something of everything: decoys, detections, escalations, a green agent."""
    return recorded["final-green-decoy_heavy-Meander"][0]


def write(path: Path, *episodes: Any) -> Path:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(episode) + "\n" for episode in episodes)
    return path


def test_all_recorded_steps_replay_without_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["episodes"], result["steps"], result["disagreements"]) == (1_386, 79_800, 0), result["first"]


def test_record_covers_rules_tables_greens_and_reds(recorded: Recorded) -> None:
    assert len(recorded) == 66
    kinds = {(e["rules"], e.get("table", "official")) for episodes in recorded.values() for e in episodes}
    assert kinds == {(r, t) for r in ("final", "competition") for t in ("official", "cardiff")}
    names = " ".join(recorded)
    assert all(part in names for part in ("-green-", "-sleep-", "B_line", "Meander", "-Sleep", "cardiff-"))
    assert RECORDED.stat().st_size < 600_000


def flip(text: str, position: int) -> str:
    return text[:position] + str((int(text[position]) + 1) % 2) + text[position + 1 :]


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "observation bits": lambda step: step.update(obs=flip(step["obs"], 51)),
    "reward": lambda step: step.update(rew=step["rew"] - 0.1),
    "blue action": lambda step: step["b"].__setitem__(0, "Monitor"),
    "blue success": lambda step: step.update(bs=None),
    "red action": lambda step: step["r"].__setitem__(0, "Impact"),
    "red success": lambda step: step["r"].__setitem__(3, 0),
    "red access": lambda step: step.update(lvl=flip(step["lvl"], 0)),
    "user sessions": lambda step: step.update(nu=flip(step["nu"], 0)),
    "privileged sessions": lambda step: step.update(np=flip(step["np"], 0)),
    "flagged sessions": lambda step: step.update(nr=flip(step["nr"], 0)),
    "file bit": lambda step: step.update(mal=flip(step["mal"], 0)),
    "decoy list": lambda step: step["dec"].setdefault("Defender", []).append("Vsftpd"),
    "OTService": lambda step: step.update(ot=1 - step["ot"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_of_one_field_is_reported_for_that_field(name: str, episode: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(episode))
    CHANGES[name](changed["steps"][-1])
    found = {field: int(wrong.sum()) for field, wrong in compare(parse_episode(changed)).items()}
    assert found == {**dict.fromkeys(FIELDS, 0), name: 1}


def test_change_of_an_exploit_or_of_a_return_is_reported(episode: dict[str, Any]) -> None:
    changed = json.loads(json.dumps(episode))
    changed["return"] += 1
    changed["obs0"] = flip(changed["obs0"], 0)
    step = next(step for step in changed["steps"] if step["r"][2] == "HarakaRCE")
    step["r"][2] = "EternalBlue"
    found = compare(parse_episode(changed))
    for name in ("return", "first observation", "red exploit"):
        assert found[name].any(), name


def test_return_that_is_nan_is_reported(episode: dict[str, Any]) -> None:
    assert compare(parse_episode({**episode, "return": float("nan")}))["return"].all()


def test_scan_of_a_sleeping_green_agent_is_refused(recorded: Recorded) -> None:
    record = recorded["competition-green-random_cardiff-Meander-cardifftable"][0]
    with pytest.raises(TraceError, match="green sleeps in this episode, but its action is GreenPortScan"):
        parse_episode({**record, "green": "Sleep"})


def test_replay_under_other_rules_or_table_disagrees(recorded: Recorded) -> None:
    for name, field, other in (
        ("competition-sleep-arr_heavy-B_line", "rules", "final"),
        ("competition-green-random_cardiff-Meander-cardifftable", "table", "official"),
    ):
        traces = [parse_episode({**episode, field: other}) for episode in recorded[name]]
        assert any(wrong.any() for trace in traces for wrong in compare(trace).values()), name


def test_command_prints_counts_and_exits_with_zero_or_one(
    tmp_path: Path, episode: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    good = write(tmp_path / "good.jsonl.gz", episode, episode)
    assert main(["verify", str(good)]) == 0
    text = capsys.readouterr().out
    assert "2 episodes" in text
    assert f"{2 * len(episode['steps'])} steps" in text.replace("\n", " ")
    wrong = json.loads(json.dumps(episode))
    wrong["steps"][3]["ot"] = 0
    bad = write(tmp_path / "bad.jsonl.gz", episode, wrong)
    assert main(["verify", str(good), str(bad), "--json"]) == 1
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (result["files"], result["episodes"], result["disagreements"]) == (2, 4, 1)
    assert result["per_field"]["OTService"] == 1
    assert result["first"] == "bad.jsonl.gz, episode 2, step 3: OTService"


@pytest.mark.parametrize("field", STEP_FIELDS)
def test_step_without_a_field_is_refused(field: str, episode: dict[str, Any], tmp_path: Path) -> None:
    changed = json.loads(json.dumps(episode))
    del changed["steps"][4][field]
    with pytest.raises(TraceError, match=f"line 1: step 4 has no '{field}'"):
        verify_files([write(tmp_path / "x.jsonl.gz", changed)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.pop("rules"), "the episode has no 'rules'"),
        (lambda e: e.update(rules="debugged"), "no rule set 'debugged'"),
        (lambda e: e.update(red="Keyboard"), "red is 'Keyboard'; expected"),
        (lambda e: e.update(steps=[]), "'steps' is empty"),
        (lambda e: e["steps"][0].update(obs="01"), "malformed"),
        (lambda e: e["steps"][0]["b"].__setitem__(2, 145), "blue action 145 outside 0..144"),
        (lambda e: e["steps"][0]["r"].__setitem__(1, "Enterprise9"), "malformed"),
        (lambda e: e["steps"][0]["r"].__setitem__(0, "Dance"), "unknown red action 'Dance'"),
        (lambda e: e["steps"][0]["r"].__setitem__(3, "x"), "expected 0 or 1, got 'x'"),
        (lambda e: e["steps"][0].update(g=["Dance", None]), "Dance"),
        (
            lambda e: e.update(green="GreenAgent") or e["steps"][0].update(g=["GreenPortScan", None]),
            "neither Sleep nor",
        ),
        (lambda e: e["steps"][0].update(bs=[1]), "malformed"),
        (lambda e: e["steps"][0].update(ot=200), "expected 0 or 1, got 200"),
        (lambda e: e["steps"][0].update(ot=float("nan")), "expected 0 or 1, got nan"),
        (lambda e: e["steps"][0].update(det=200), "expected 0 or 1, got 200"),
        (lambda e: e["steps"][0].update(dec=None), "malformed"),
        (lambda e: e["steps"][0].update(mal="9" * 13), "expected digits from 0 to 1, got '9999999999999'"),
        (lambda e: e["steps"][0].update(lvl="/" * 13), "expected digits from 0 to 2"),
        (lambda e: e.update(steps=e["steps"][:10]), "the episode has 10 steps; expected its horizon"),
    ],
)
def test_malformed_episode_is_refused_in_one_line(
    change: Callable[[dict[str, Any]], Any], message: str, episode: dict[str, Any], tmp_path: Path
) -> None:
    changed = json.loads(json.dumps(episode))
    change(changed)
    with pytest.raises(TraceError, match=message) as error:
        verify_files([write(tmp_path / "x.jsonl.gz", changed)])
    assert "\n" not in str(error.value)


def test_damaged_files_are_refused_in_one_line(
    tmp_path: Path, episode: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write(tmp_path / "whole.jsonl.gz", *[episode] * 5).read_bytes()
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(whole[: len(whole) // 2])
    flipped = tmp_path / "flipped.jsonl.gz"
    flipped.write_bytes(whole[:200] + bytes(byte ^ 255 for byte in whole[200:260]) + whole[260:])
    text = tmp_path / "text.jsonl.gz"
    text.write_text("no gzip at all")
    not_json = tmp_path / "words.jsonl.gz"
    with gzip.open(not_json, "wt") as file:
        file.write("not json\n")
    empty = tmp_path / "empty.jsonl.gz"
    with gzip.open(empty, "wt"):
        pass
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (torn, flipped, text, not_json, empty, folder, tmp_path / "absent.jsonl.gz"):
        assert main(["verify", str(path)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len([line for line in lines if "compiling" not in line]) == 1
        assert path.name in lines[-1]


def test_hostile_files_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bomb = tmp_path / "bomb.jsonl.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(64):
            file.write(bytes(2**20))
    deep = tmp_path / "deep.jsonl.gz"
    with gzip.open(deep, "wt") as file:
        file.write("[" * 100_000 + "\n")
    fifo = tmp_path / "fifo.jsonl.gz"
    os.mkfifo(fifo)
    for path in (bomb, deep, fifo, Path("/dev/zero")):
        assert main(["verify", str(path)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len([line for line in lines if "compiling" not in line]) == 1
        assert path.name in lines[-1]


def test_replay_keeps_the_recorded_length(episode: dict[str, Any]) -> None:
    trace = parse_episode(episode)
    assert len(trace) == len(episode["steps"])
    assert np.isclose(trace.rewards.sum(), trace.total)
