import json
import os
import subprocess
import sys

import pytest

from optimist.cli.main import main
from optimist.cli.train import read_command
from optimist.config import A2CConfig
from optimist.core.settings import REMOVED
from optimist.errors import ConfigError
from optimist.presets import get_preset


def config_of(name, *arguments):
    return read_command(get_preset(name), list(arguments))[1]


def test_without_flags_the_settings_are_the_presets():
    assert config_of("deepsea/opr") == get_preset("deepsea/opr")()


def test_flags_reach_every_part_of_the_settings():
    config = config_of(
        "keydoor/opr", "--height", "4", "--apple", "--seed", "7", "--total-steps=4096", "--opr.bc-coef", "0.2",
        "--opr.no-enabled", "--algorithm.target-kl", "0.05", "--algorithm.max-grad-norm", "None",
        "--network.hidden", "32", "16", "--env.num-envs", "2", "--env.vectorization", "sync",
        "--algorithm.clip_eps", "0.1",
    )  # fmt: skip
    assert config.env.kwargs == {"height": 4, "apple": True}
    assert (config.seed, config.total_steps, config.opr.bc_coef, config.opr.enabled) == (7, 4096, 0.2, False)
    assert (config.algorithm.target_kl, config.algorithm.max_grad_norm, config.algorithm.clip_eps) == (0.05, None, 0.1)
    assert (config.network.hidden, config.env.num_envs, config.env.vectorization) == ((32, 16), 2, "sync")
    assert config.preset == "keydoor/opr"


@pytest.mark.parametrize("written", ["200000", "200_000", "2e5", "2E5", "200000.0"])
def test_whole_numbers_are_written_in_several_ways(written, tmp_path):
    flags = ("--total-steps", written, "--size", "1e1", "--network.hidden", "1_00", "2e2", "--opr.max-age-updates=3e1")
    config = config_of("deepsea/opr", *flags)
    assert (config.total_steps, config.env.kwargs, config.network.hidden) == (200_000, {"size": 10}, (100, 200))
    assert config.opr.max_age_updates == 30
    (tmp_path / "mine.toml").write_text(f"total_steps = {written}\n[network]\nhidden = [1e2]\n")
    config = config_of("deepsea/opr", "--config", str(tmp_path / "mine.toml"))
    assert (config.total_steps, config.network.hidden) == (200_000, (100,))
    assert type(config.total_steps) is int


def test_keywords_of_any_environment_can_be_set():
    config = config_of("gym/ppo", "--env", "LunarLander-v3", "--env.kwargs.continuous", "True",
                       "--env.kwargs.gravity=-5.5", "--env.kwargs.render-mode", "rgb_array")  # fmt: skip
    assert config.env.kwargs == {"continuous": True, "gravity": -5.5, "render_mode": "rgb_array"}
    assert config_of("deepsea/opr", "--env.kwargs.size", "5").env.kwargs == {"size": 5}


def test_a_file_overrides_the_preset_and_flags_override_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("seed = 3\ntotal_steps = 5000\n[opr]\nbc_coef = 0.5\npercentile = 90\n[env.kwargs]\nsize = 5\n")
    config = config_of("deepsea/opr", "--config", str(file), "--seed", "4")
    assert (config.seed, config.total_steps) == (4, 5000)
    assert (config.opr.bc_coef, config.opr.percentile) == (0.5, 90.0)
    assert config.env.kwargs == {"size": 5}


KEYDOOR = ("optimist/KeyDoorTreasure-v0", {"height": 4, "apple": False})


@pytest.mark.parametrize(
    ("preset", "document", "given", "expected"),
    [
        ("deepsea/opr", "[env.kwargs]\nsize = 5", ("--size", "8"), ("optimist/DeepSea-v0", {"size": 8})),
        (
            "deepsea/opr",
            "[env.kwargs]\nsize = 5",
            ("--size=10",),
            ("optimist/DeepSea-v0", {"size": 10}),
        ),  # the default, set explicitly
        ("deepsea/opr", "[env.kwargs]\nsize = 5", (), ("optimist/DeepSea-v0", {"size": 5})),
        ("gym/opr", '[env]\nid = "Acrobot-v1"', ("--env", "CartPole-v1"), ("CartPole-v1", {})),
        ("gym/opr", '[env]\nid = "Acrobot-v1"', (), ("Acrobot-v1", {})),
        ("keydoor/opr", "[env.kwargs]\napple = true", ("--no-apple", "--height", "4"), KEYDOOR),
    ],
)
def test_flags_of_the_preset_override_the_file_too(preset, document, given, expected, tmp_path):
    (tmp_path / "mine.toml").write_text(document + "\n")
    env = config_of(preset, "--config", str(tmp_path / "mine.toml"), *given).env
    assert (env.id, env.kwargs) == expected


def test_a_file_overrides_what_follows_from_a_flag_of_the_preset(tmp_path):
    (tmp_path / "mine.toml").write_text("[env]\nnum_envs = 64\n[env.kwargs]\nhorizon = 30\n")
    config = config_of("cage2/cardiff", "--config", str(tmp_path / "mine.toml"), "--horizon", "100")
    assert (config.env.num_envs, config.env.kwargs["horizon"]) == (64, 100)


def test_a_file_of_another_preset_is_refused(tmp_path):
    (tmp_path / "mine.toml").write_text('preset = "deepsea/opr"\nseed = 5\n')
    with pytest.raises(
        ConfigError,
        match=r"mine.toml is a config of deepsea/opr, not of deepsea/ppo; run optimist train deepsea/opr --config",
    ):
        config_of("deepsea/ppo", "--config", str(tmp_path / "mine.toml"))
    assert config_of("deepsea/opr", "--config", str(tmp_path / "mine.toml")).seed == 5


def test_a_file_can_name_another_algorithm(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[algorithm]\nname = "a2c"\nrollout_steps = 7\n')
    config = config_of("deepsea/ppo", "--config", str(file), "--algorithm.gamma", "0.5")
    assert config.algorithm == A2CConfig(rollout_steps=7, gamma=0.5)


SEE = "(see optimist train deepsea/opr --help)"
WHOLE = "a whole number such as 100000, 100_000 or 1e5"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("deepsea/op", "no preset 'deepsea/op'; did you mean 'deepsea/opr'?"),
        ("--seed 3 deepsea/opr", "the preset must come first: optimist train PRESET --seed 3 deepsea/opr"),
        ("deepsea/opr --long", "no flag '--long'; see optimist train deepsea/opr --help"),
        ("breakout", "no preset 'breakout'; `optimist presets` lists them"),
        ("deepsea/opr --sead 3", "no flag '--sead'; did you mean '--seed'?"),
        ("deepsea/opr --sise=3", "no flag '--sise'; did you mean '--size'?"),
        ("deepsea/opr --opr.bc-coeff 3", "no flag '--opr.bc-coeff'; did you mean '--opr.bc-coef'?"),
        ("deepsea/a2c --algorithm.gama 3", "no flag '--algorithm.gama'; did you mean '--algorithm.gamma'?"),
        ("deepsea/opr 5", "unexpected '5': a value must follow its flag, as in --seed 3"),
        ("deepsea/opr --size x", f"--size must be {WHOLE}, got 'x' {SEE}"),
        ("deepsea/opr --seed x", f"--seed must be {WHOLE}, got 'x' {SEE}"),
        ("deepsea/opr --total-steps 1.5", f"--total-steps must be {WHOLE}, got '1.5' {SEE}"),
        ("deepsea/opr --network.hidden 64 1,000", f"--network.hidden cannot be '64', '1,000' {SEE}"),
        ("deepsea/opr --opr.max-age-updates x", f"--opr.max-age-updates cannot be 'x' {SEE}"),
        ("deepsea/opr --algorithm.gamma y", f"--algorithm.gamma must be a number, got 'y' {SEE}"),
        ("deepsea/opr --seed", f"Missing value for argument '--seed'. Expected 1 values {SEE}"),
        ("deepsea/opr --total-steps 0", f"total_steps must be at least 1, got 0 {SEE}"),
        ("deepsea/opr --opr.percentile 101", f"opr.percentile must be between 0 and 100, got 101.0 {SEE}"),
        (
            "deepsea/opr --opr.retention rankd",
            "invalid choice 'rankd' for argument '--opr.retention'. "
            f"Expected one of ('fifo', 'ranked') {SEE}",
        ),
        (
            "deepsea/opr --preset gym/ppo",
            "--preset cannot be set; to use another preset: optimist train gym/ppo",
        ),
        (
            "gym/ppo --env.kwargs.continuous",
            "--env.kwargs.continuous needs a value, as in --env.kwargs.continuous true",
        ),
        ("deepsea/opr --config absent.toml", "cannot read config file absent.toml: No such file or directory"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(arguments, line, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments.split()]) == 2
    assert capsys.readouterr().err == f"optimist: error: {line}\n"
    assert not list(tmp_path.iterdir())


def test_a_file_with_an_unknown_setting_gets_a_suggestion(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text("[opr]\npercentil = 90\n")
    assert main(["train", "deepsea/opr", "--config", str(file)]) == 2
    assert capsys.readouterr().err == "optimist: error: no setting 'opr.percentil'; did you mean 'opr.percentile'?\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--opr.gone-now 3", "opr.gone_now no longer exists: set opr.bc_coef instead"),
        ("--opr.no-gone-now", "opr.gone_now no longer exists: set opr.bc_coef instead"),
        ("--opr.reference average", "opr.reference = average no longer exists: it scored worse (docs/paper.md)"),
        ("--opr.reference=average", "opr.reference = average no longer exists: it scored worse (docs/paper.md)"),
    ],
)
def test_a_removed_flag_is_answered_with_its_successor(arguments, line, capsys, monkeypatch):
    monkeypatch.setitem(REMOVED, "opr.gone_now", "set opr.bc_coef instead")
    monkeypatch.setitem(REMOVED, "opr.reference = average", "it scored worse (docs/paper.md)")
    assert main(["train", "deepsea/opr", *arguments.split()]) == 2
    assert capsys.readouterr().err == f"optimist: error: {line}\n"


def test_no_preset_prints_how_to_choose_one_and_fails(capsys):
    assert main(["train"]) == 2
    assert "`optimist presets` lists the presets" in capsys.readouterr().out


def test_quiet_and_json_select_what_is_printed(monkeypatch, capsys):
    calls = []

    def train(config, out, *, progress):
        calls.append((config.env.kwargs, out, progress))
        return {"solved": True, "last_100_return": float("nan")}

    monkeypatch.setattr("optimist.training.trainer.train", train)
    monkeypatch.setattr("optimist.cli.summary._print_words", lambda summary: print("in words"))
    assert main(["train", "deepsea/opr", "--size", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"solved": True, "last_100_return": None}
    assert main(["train", "deepsea/opr", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["train", "deepsea/opr"]) == 0
    assert capsys.readouterr().out == "in words\n"
    assert [progress for _, _, progress in calls] == [True, False, True]
    assert calls[0][0] == {"size": 3}


def test_a_wrong_value_is_one_plain_line_on_a_terminal_too():
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "optimist", "train", "deepsea/opr", "--total-steps", "1e5x"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = subprocess.run(command, env=os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"}, **streams)
    os.close(theirs)
    line = f"optimist: error: --total-steps must be {WHOLE}, got '1e5x' (see optimist train deepsea/opr --help)\r\n"
    assert (process.returncode, os.read(ours, 10_000).decode()) == (2, line)
    os.close(ours)
