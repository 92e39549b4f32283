import pytest

from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.ui.control import arguments_of, config_of, settings_of
from optimist.ui.folders import RunsFolder
from tests.report.fake_runs import write_run
from tests.ui.conftest import serving

PRESET = get_preset("deepsea/opr")


def test_the_form_has_the_presets_keywords_and_settings_with_their_sentences():
    groups = {name: list(found) for name, found in settings_of(PRESET, {})}
    assert groups["preset"][0].name == "size"
    assert "opr.percentile" in {setting.name for setting in groups["opr"]}
    assert all(setting.meaning for found in groups.values() for setting in found)


def test_the_form_and_the_command_line_name_the_same_run():
    from optimist.cli.train import read_command

    given = {"size": "5", "total_steps": "2048", "opr.percentile": "90", "seed": ""}
    arguments = arguments_of(PRESET, given)
    assert arguments == ["train", "deepsea/opr", "--size", "5", "--total-steps", "2048", "--opr.percentile", "90"]
    _, config = read_command(PRESET, arguments[2:])
    assert config == config_of(PRESET, given)
    assert config.opr.percentile == 90


@pytest.mark.parametrize("given", [{"size": "many"}, {"opr.percentile": "101"}, {"total_steps": "0"}, {"seed": "-1"}])
def test_a_setting_that_does_not_fit_is_refused(given):
    with pytest.raises(ConfigError):
        config_of(PRESET, given)


def test_a_run_that_fails_shows_its_reason_in_the_table(tmp_path):
    path = write_run(tmp_path / "a", "deepsea/opr", finished=False)
    (path / "error.txt").write_text("disk full at step 24,576\n")
    (run,) = RunsFolder(tmp_path).scan()
    assert (run.status, run.note) == ("failed", "disk full at step 24,576")


def test_a_finished_run_is_not_resumed(tmp_path):
    write_run(tmp_path / "a", "deepsea/opr")
    with serving(tmp_path, control=True) as site:
        headers = {"X_Token": site.guard.form_token, "Origin": site.address}
        text = site.request("POST", "/runs/resume", "run=a", **headers).text
    assert "only stopped and failed runs can be resumed" in text
