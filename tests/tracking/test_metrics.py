"""Declared metrics: docs/metrics.md and the code agree."""

import ast
import re
import runpy
from pathlib import Path

from optimist.tracking.writers import Metric, declared_metrics, known_metrics
from tests import metrics
from tests.metrics import undocumented, without_time

ROOT = Path(__file__).parents[2]
PAGE = runpy.run_path(str(ROOT / "tools" / "metrics_page.py"))["metrics_page"]()
SOURCES = [path for path in (ROOT / "src" / "optimist").rglob("*.py") if "tracking" not in path.parts]
ONLY_IN_SUMMARY = {"time/seconds", "time/since_step"}


def logged_names(source):
    """Names of metrics in the source, without its table; all of the table's where the code iterates over it."""
    declared = {name for name, _ in declared_metrics(source)}
    tables = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    for node in tables:
        if ast.unparse(node.targets[0]) == "METRICS":
            source = source.replace(ast.get_source_segment(source, node), "")
    stations = "|".join({name.partition("/")[0] for name in known_metrics()})
    found = set(re.findall(rf'"((?:{stations})/[a-z_]+)"', source))
    return found | declared if re.search(r"\b(in|zip\()\W*METRICS\b", source) else found


def test_docs_metrics_is_generated_from_the_tables():
    assert (ROOT / "docs" / "metrics.md").read_text() == PAGE, (
        "write it again: python tools/metrics_page.py > docs/metrics.md"
    )


def test_the_page_names_every_metric():
    assert len(known_metrics()) > 40
    assert all(f"`{name}`" in PAGE for name in known_metrics())


def test_every_logged_metric_is_declared():
    logged = set().union(*(logged_names(path.read_text()) for path in SOURCES))
    assert logged - ONLY_IN_SUMMARY == set(known_metrics())


def test_a_metric_is_declared_once_in_a_module_that_logs_it():
    declared = [(path, name) for path in SOURCES for name, _ in declared_metrics(path.read_text())]
    assert len({name for _, name in declared}) == len(declared)
    assert [(path, name) for path, name in declared if name not in logged_names(path.read_text())] == []


def test_names_are_station_and_name():
    assert all(name.count("/") == 1 or name.endswith("/<group>") for name in known_metrics())


def test_undocumented_names_are_found_and_metrics_of_groups_are_documented(monkeypatch):
    known = known_metrics() | {"opr/threshold/<group>": Metric("reward", "τ of one group")}
    monkeypatch.setattr(metrics, "known_metrics", lambda: known)
    names = ["step", "opr/threshold", "opr/threshold/Meander", "opr/treshold", "loss/bc"]
    assert undocumented(names) == ["opr/treshold"]


def test_without_time_removes_wall_clock_metrics():
    assert without_time({"step": 1, "time/elapsed": 2.0, "loss/total": 0.5}) == {"step": 1, "loss/total": 0.5}
