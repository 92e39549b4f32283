"""Charts as files with labels, and as parts of a page in its colours."""

import re

import numpy as np
import pytest

from optimist.report.charts import (
    INK,
    PALETTE,
    Chart,
    Key,
    Panel,
    Rows,
    aligned,
    draw_seeds,
    include_zero,
    inline_svg,
    method_keys,
    require_matplotlib,
)
from optimist.report.formatting import short_number
from optimist.report.run_pages import spark
from optimist.report.runs import Curve

CHART = Chart(
    "name", "Title",
    [Panel(f"panel {n}", lambda axis: axis.plot([0, 0.0025], [1, 2], color=PALETTE[0])) for n in range(3)],
    "Caption <b>.", [Key("a & b", PALETTE[0])],
)  # fmt: skip


def test_files_have_all_panels_with_title_and_legend(tmp_path):
    svg, png, pdf = CHART.save(tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
    text = svg.read_text()
    for words in ("Title", "panel 0", "panel 2", "a &amp; b"):
        assert words in text


def test_files_are_reproducible(tmp_path):
    before = [path.read_bytes() for path in CHART.save(tmp_path)]
    assert [path.read_bytes() for path in CHART.save(tmp_path)] == before


def test_panels_use_the_colours_of_the_page_and_keep_their_numbers():
    page = CHART.html()
    assert page.count("<svg role=") == 3
    assert "Caption &lt;b&gt;." in page
    assert "var(--c0)" in page
    assert "var(--ink)" in page
    assert PALETTE[0] not in page
    assert INK not in page
    assert "0.0025" in page  # a tick's label is not rounded with the coordinates


def test_ids_inside_pictures_are_unique():
    ids = re.findall(r' id="([^"]+)"', CHART.html())
    assert len(set(ids)) == len(ids)
    svg = inline_svg('<?xml?><svg width="5pt" height="5pt"><g id="a"/><use xlink:href="#a"/></svg>', "n", 'x"y')
    assert svg == '<svg role="img" aria-label="x&quot;y"><g id="n-a"/><use xlink:href="#n-a"/></svg>'


def test_many_panels_are_collapsed_and_still_drawn(tmp_path):
    chart = Chart("many", "Many", [Panel(str(n), lambda axis: axis.plot([0, 1])) for n in range(14)], "")
    assert "<summary>2 more panels</summary>" in chart.html()
    assert chart.save(tmp_path)[1].stat().st_size > 1000


def test_methods_have_different_styles():
    keys = method_keys([str(n) for n in range(20)])
    assert len({(key.color, key.dash) for key in keys.values()}) == 20


def test_curves_are_aligned_on_the_steps_that_all_cover():
    short, long = Curve(np.array([2.0, 4.0]), np.array([1.0, 3.0])), Curve(np.array([1.0, 9.0]), np.array([0.0, 8.0]))
    steps, values = aligned([short, long])
    assert steps.tolist() == [2.0, 4.0]
    assert values.tolist() == [[1.0, 3.0], [1.0, 3.0]]
    disjoint = Curve(np.array([5.0]), np.array([1.0]))
    assert aligned([short, disjoint])[0].size == 0


def test_mean_ends_with_the_shortest_seed_and_a_band_needs_three():
    curves = [Curve(np.array([1.0, 2.0, last]), np.array([0.0, 1.0, 2.0])) for last in (3.0, 4.0, 5.0)]
    for count, bands in ((2, 0), (3, 1)):
        axis = require_matplotlib().figure().subplots()
        draw_seeds(axis, curves[:count], 1.0, Key("a", PALETTE[0]), 0.13)
        thin, (mean, end) = axis.lines[:count], axis.lines[count:]
        assert [line.get_xdata()[-1] for line in thin] == [3.0, 4.0, 5.0][:count]
        assert mean.get_xdata()[-1] == end.get_xdata()[0] == 3.0
        assert mean.get_linewidth() > 2 * thin[0].get_linewidth()
        (band,) = axis.collections
        assert (band.get_paths()[0].get_extents().height > mean.get_ydata().max()) == bool(bands) or count == 2


def test_constant_zero_is_drawn_at_the_bottom():
    zero = Curve(np.array([1.0, 2.0]), np.zeros(2))
    (points,) = re.findall(r'<polyline points="([^"]+)"', spark("loss", "–", [(zero, "var(--c0)", "")]))
    bottom = float(re.search(r"V([\d.]+)H", spark("loss", "–", [(zero, "var(--c0)", "")]))[1])
    assert all(bottom - float(point.split(",")[1]) <= 2 for point in points.split())
    axis = require_matplotlib().figure().subplots()
    axis.plot([0, 1], [0, 0])
    include_zero(axis)
    assert axis.get_ylim() == (0.0, 1.0)


def test_zero_has_no_sign():
    assert short_number(-0.0) == "0"


def test_long_labels_have_several_lines_and_lose_nothing():
    name = "PPO+OPR · bc_advantage_scale=4.0 · bc_advantage_unit=deviation · augment_share=0.25 · store_executed=False"
    rows = Rows([name, "PPO"])
    first, second = rows.texts
    assert first.count("\n") >= 1
    assert first.replace("\n", " ") == name
    assert second == "PPO"
    assert rows.at[0] > 0
    assert rows.at[1] == rows.at[0] + 1


def test_shortened_label_has_the_full_name_as_a_tooltip():
    def draw(axis):
        rows = Rows(["short"])
        rows.draw(axis, ["short · key=<value>"])

    page = Chart("tip", "", [Panel("", draw)]).html()
    assert page.count("<title>short · key=&lt;value&gt;</title>") == 2  # the narrow and the wide form


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [-1.0, 0.00001, 5e7]])
def test_sparks_draw_any_finite_values(values):
    curve = Curve(np.arange(1.0, len(values) + 1), np.array(values))
    picture = spark("x <y>", "reward", [(curve, "var(--c0)", "τ")])
    assert "nan" not in picture
    assert "x &lt;y&gt; (reward)" in picture
