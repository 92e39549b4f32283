"""`optimist presets`: families on one page; the presets of a family, or with a word."""

import json

import pytest

from optimist.cli.main import main
from optimist.presets import all_presets

FAMILIES = {preset.family for preset in all_presets()}


@pytest.fixture
def lines_of(monkeypatch, capsys):
    def run(*arguments, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["presets", *arguments]) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_the_overview_fits_two_screens_and_names_every_preset(lines_of):
    lines = lines_of()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for family in FAMILIES:
        names = [preset.name.partition("/")[2] for preset in all_presets() if preset.family == family]
        (at,) = [number for number, line in enumerate(lines) if line.startswith(f"{family}  {len(names)} presets. ")]
        block = " ".join(lines[at : lines.index("", at)]).split()
        assert block[-len(names) :] == names


@pytest.mark.parametrize("columns", [80, 200])
def test_a_family_lists_its_flags_once_and_each_preset_with_its_description(columns, lines_of):
    lines = lines_of("keydoor", columns=columns)
    assert max(map(len, lines)) <= (80 if columns == 80 else 100)
    assert lines[0] == "keydoor  --height 6 --apple"
    assert "  keydoor/opr          PPO with OPR, our default, on Key-Door-Treasure." in lines
    assert {line.split()[0] for line in lines if line.startswith("  keydoor/")} == {
        preset.name for preset in all_presets() if preset.family == "keydoor"
    }
    atari = lines_of("atari", columns=columns)
    assert (
        atari[-3].strip() == "(flags: --game Pong --sticky 0.0 --emulator auto)"
    )  # of atari/smoke, without the family's --long


def test_a_word_is_searched_in_names_and_descriptions(lines_of, capsys):
    found = json.loads(lines_of("--search", "Self-Imitation", "--json")[0])
    assert {"deepsea/ppo-sil", "cage2/opr-sil", "mujoco/ppo-opr-sil"} <= found.keys()
    assert all("self-imitation" in description.lower() for description in found.values())
    assert json.loads(lines_of("gym", "--search", "RAINBOW", "--json")[0]).keys() == {"gym/rainbow", "gym/rainbow-opr"}
    assert any(line.startswith("  cage2/best ") for line in lines_of("--search", "strongest"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["depsea"], "no family of presets 'depsea'; did you mean 'deepsea'?"),
        (["x"], "no family of presets 'x'; known: atari, cage2, deepsea, gym, keydoor, mujoco, pureluck"),
        (["--search", "ranbow"], "no preset has 'ranbow' in its name or description; did you mean 'rainbow'?"),
        (["--search", "qqq"], "no preset has 'qqq' in its name or description; `optimist presets` lists the families"),
    ],
)
def test_an_unknown_family_or_word_gets_a_suggestion(arguments, line, capsys):
    assert main(["presets", *arguments]) == 2
    assert capsys.readouterr().err == f"optimist: error: {line}\n"


def test_all_presets_as_json(lines_of):
    assert json.loads(lines_of("--json")[0]).keys() == {preset.name for preset in all_presets()}
