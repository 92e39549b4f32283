import re
from pathlib import Path

from optimist.tracking.metrics import METRICS, Metric, metrics_page, undocumented, without_time

ROOT = Path(__file__).parents[2]


def test_the_page_in_docs_is_what_the_table_gives():
    assert (ROOT / "docs" / "metrics.md").read_text() == metrics_page(), (
        "write it again: python -m optimist.tracking.metrics > docs/metrics.md"
    )


def test_the_page_names_every_metric():
    page = metrics_page()
    assert all(f"`{name}`" in page for name in METRICS)


def test_the_table_and_the_code_name_the_same_metrics():
    stations = "|".join({name.partition("/")[0] for name in METRICS})
    literal = re.compile(rf'"((?:{stations})/[a-z_]+)"')
    package = ROOT / "src" / "optimist"
    sources = [path for path in package.rglob("*.py") if "tracking" not in path.parts]
    found = {name for path in sources for name in literal.findall(path.read_text())}
    in_summary_only = {"time/seconds", "time/since_step"}
    assert found - in_summary_only == set(METRICS)


def test_names_are_station_and_name():
    assert all(name.count("/") == 1 or name.endswith("/<group>") for name in METRICS)


def test_undocumented_names_are_found_and_groups_belong_to_their_family(monkeypatch):
    monkeypatch.setitem(METRICS, "opr/threshold/<group>", Metric("reward", "τ of one group"))
    names = ["step", "opr/threshold", "opr/threshold/Meander", "opr/treshold", "loss/bc"]
    assert undocumented(names) == ["opr/treshold"]


def test_the_wall_clock_is_left_out_of_comparisons():
    assert without_time({"step": 1, "time/elapsed": 2.0, "loss/total": 0.5}) == {"step": 1, "loss/total": 0.5}
