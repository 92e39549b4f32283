"""`optimist train PRESET --help`: one page; the settings of a group, one setting, or all of them."""

import pytest

from optimist.cli.flags import flag_names
from optimist.cli.help import OFTEN_CHANGED, SHOWN
from optimist.cli.main import main
from optimist.presets import all_presets, get_preset


@pytest.fixture
def help_of(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        assert main(["train", *arguments]) == 0
        return capsys.readouterr().out

    return run


def often_changed(page):
    lines = page.partition("settings most often changed")[2].partition("\n\n")[0].splitlines()[1:]
    return [line.split()[0] for line in lines]


@pytest.mark.parametrize("name", [preset.name for preset in all_presets()])
def test_the_first_page_has_at_most_80_lines_of_80_columns_and_ten_settings(name, help_of):
    page = help_of(name, "--help")
    assert len(page.splitlines()) <= 80
    assert max(map(len, page.splitlines())) <= 80
    assert page.count("usage:") == 1
    flags = often_changed(page)
    assert len(flags) == SHOWN
    assert set(flags) <= set(flag_names(get_preset(name)()))


def test_the_first_page_shows_the_preset_s_values_and_only_settings_it_uses(help_of):
    page = help_of("keydoor/opr", "--height", "9", "--help")
    assert "--height INT" in page
    assert any(line.split()[:2] == ["--total-steps", "200_000"] for line in page.splitlines())
    assert "--opr.percentile" in often_changed(page)
    assert not [flag for flag in often_changed(help_of("keydoor/ppo", "-h")) if "opr." in flag]
    assert "  sil         16  Self-imitation learning; off\n" in page


def test_every_line_of_the_first_page_is_about_a_setting_that_exists():
    flags = {flag for preset in all_presets() for flag in flag_names(preset())}
    assert {f"--{name.replace('_', '-')}" for name in OFTEN_CHANGED} <= flags


@pytest.mark.parametrize(
    "arguments", [["--help", "opr"], ["-h", "opr"], ["--help=opr"], ["--help", "opr", "--size", "5"]]
)
def test_a_group_shows_its_settings_alone_with_defaults_ranges_and_meanings(arguments, help_of):
    lines = help_of("deepsea/opr", *arguments).splitlines()
    flags = {line.split()[0].strip(",") for line in lines if line.startswith("  --")}
    assert flags == {
        flag for flag in flag_names(get_preset("deepsea/opr")()) if flag.startswith("--opr.") and ".no-" not in flag
    }
    at = lines.index("  --opr.percentile FLOAT  (default: 75.0; between 0 and 100)")
    assert lines[at + 1].startswith("      P. An episode is admitted to M when its return passes")
    assert "  --opr.enabled, --opr.no-enabled  (default: True)" in lines
    assert "  --opr.retention {fifo,ranked}  (default: ranked)" in lines
    assert max(map(len, lines)) <= 80


def test_keywords_of_the_environment_are_in_its_group(help_of):
    lines = help_of("deepsea/opr", "--size", "9", "--help", "env").splitlines()
    at = lines.index("  --env.kwargs.size INT  (default: 9)")
    assert lines[at + 1].startswith("      N. Rows and columns of the grid")


@pytest.mark.parametrize("name", ["opr.percentile", "--opr.percentile"])
def test_one_setting_is_explained_by_its_name(name, help_of):
    assert help_of("deepsea/opr", f"--help={name}").splitlines()[2:] == [
        "  --opr.percentile FLOAT  (default: 75.0; between 0 and 100)",
        "      P. An episode is admitted to M when its return passes this percentile of",
        "      the window.",
    ]


@pytest.mark.parametrize("name", ["deepsea/opr", "atari/fast", "cage2/best", "deepsea/rainbow-opr", "gym/acper"])
def test_all_shows_every_flag_and_one_usage(name, help_of):
    page = help_of(name, "--help", "all")
    words = set(page.replace(",", " ").split())
    assert set(flag_names(get_preset(name)())) - {"--preset"} <= words
    assert page.count("usage:") == 1


def test_an_unknown_group_gets_a_suggestion(capsys):
    assert main(["train", "deepsea/opr", "--help", "netwrk"]) == 2
    assert capsys.readouterr().err == "optimist: error: no group of settings 'netwrk'; did you mean 'network'?\n"
