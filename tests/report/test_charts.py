"""Charts become files with labels, and parts of a page that take its colours."""

import re

import numpy as np
import pytest

from optimist.report.charts import INK, PALETTE, Chart, Key, Panel, follow_page, method_keys
from optimist.report.runs import Curve
from optimist.report.sparks import spark
from optimist.report.study import aligned

CHART = Chart(
    "name", "Title",
    [Panel(f"panel {n}", lambda axis: axis.plot([0, 0.0025], [1, 2], color=PALETTE[0])) for n in range(3)],
    "Caption <b>.", [Key("a & b", PALETTE[0])],
)  # fmt: skip


def test_files_hold_all_panels_with_title_and_legend(tmp_path):
    svg, png = CHART.save(tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    for words in ("Title", "panel 0", "panel 2", "a &amp; b"):
        assert words in text


def test_files_are_the_same_every_time(tmp_path):
    first, _ = CHART.save(tmp_path)
    before = first.read_bytes()
    assert CHART.save(tmp_path)[0].read_bytes() == before


def test_panels_on_the_page_take_its_colours_and_keep_their_numbers():
    page = CHART.html()
    assert page.count("<svg role=") == 3
    assert "Caption &lt;b&gt;." in page
    assert "var(--c0)" in page
    assert "var(--ink)" in page
    assert PALETTE[0] not in page
    assert INK not in page
    assert "0.0025" in page  # a tick's label is not rounded with the coordinates


def test_names_inside_pictures_are_used_once():
    ids = re.findall(r' id="([^"]+)"', CHART.html())
    assert len(set(ids)) == len(ids)
    svg = follow_page('<?xml?><svg width="5pt" height="5pt"><g id="a"/><use xlink:href="#a"/></svg>', "n", 'x"y')
    assert svg == '<svg role="img" aria-label="x&quot;y"><g id="n-a"/><use xlink:href="#n-a"/></svg>'


def test_many_panels_are_folded_away_and_still_drawn(tmp_path):
    chart = Chart("many", "Many", [Panel(str(n), lambda axis: axis.plot([0, 1])) for n in range(14)], "")
    assert "<summary>2 more panels</summary>" in chart.html()
    assert chart.save(tmp_path)[1].stat().st_size > 1000


def test_no_two_methods_look_alike():
    keys = method_keys([str(n) for n in range(20)])
    assert len({(key.color, key.dash) for key in keys.values()}) == 20


def test_runs_are_compared_where_all_of_them_have_been():
    short, long = Curve(np.array([2.0, 4.0]), np.array([1.0, 3.0])), Curve(np.array([1.0, 9.0]), np.array([0.0, 8.0]))
    steps, values = aligned([short, long])
    assert steps.tolist() == [2.0, 4.0]
    assert values.tolist() == [[1.0, 3.0], [1.0, 3.0]]
    apart = Curve(np.array([5.0]), np.array([1.0]))
    assert aligned([short, apart])[0].size == 0


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [-1.0, 0.00001, 5e7]])
def test_sparks_can_be_drawn_of_anything_finite(values):
    curve = Curve(np.arange(1.0, len(values) + 1), np.array(values))
    picture = spark("x <y>", "reward", [(curve, "var(--c0)", "τ")])
    assert "nan" not in picture
    assert "x &lt;y&gt; (reward)" in picture
