"""Tables have the same content in HTML, Markdown, CSV and LaTeX."""

import csv
import io
import math

from hypothesis import given
from hypothesis import strategies as st

from optimist.report.formatting import decimals, latex, number
from optimist.report.tables import Cell, Head, Table

TABLE = Table(
    "t",
    "A <title>.",
    [Head("game", numeric=False), Head("PPO", "10M & more", "ours"), Head("OPR|x", url="https://x.org/?a&b")],
    [
        [
            Cell("Pong_1"),
            Cell(value=20.123, half_width=0.5, runs=3, strong=True),
            Cell(value=14.2, marks="f", digits=1),
        ],
        [Cell("Alien"), Cell(), Cell(value=-1234567.0)],
    ],
    "50 % of it",
    ["a note"],
)


def test_digits_follow_the_interval():
    assert Cell(value=20.123, half_width=0.5).shown == "20.12 ± 0.50"
    assert Cell(value=12345.6, half_width=789.0).shown == "12,346 ± 789"
    assert Cell(value=-4.75, half_width=0.961).shown == "−4.75 ± 0.96"
    assert Cell(value=3.0, half_width=math.nan).shown == "3.00"
    assert Cell().shown == "–"
    assert number(-0.001, 2) == "0.00"


@given(st.floats(-1e7, 1e7), st.none() | st.floats(0, 1e6))
def test_decimals_are_between_0_and_3(value, half_width):
    assert 0 <= decimals(value, half_width) <= 3


def test_html_is_escaped_and_has_rows_heads_and_notes():
    page = TABLE.html()
    assert "A &lt;title&gt;." in page
    assert "<b>20.12 ± 0.50</b>" in page
    assert "<sup>f</sup>" in page
    assert 'href="https://x.org/?a&amp;b"' in page
    assert page.count("<tr>") + page.count('<tr class="groups">') == 4
    assert "<li>a note</li>" in page


def test_grouped_table_names_each_group_once_above_its_rows():
    rows = [[Cell("Pong"), Cell("a")], [Cell("Pong"), Cell("b")], [Cell("Alien"), Cell("c")]]
    table = Table("t", "T", [Head("game", numeric=False), Head("method", numeric=False)], rows, grouped=True)
    assert table.html().count("Pong") == 1
    assert table.html().count('class="over"') == 2
    assert table.markdown().count("Pong") == 2


def test_markdown_has_as_many_cells_in_every_row():
    rows = [line for line in TABLE.markdown().splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {4}
    assert "**20.12 ± 0.50** (n = 3)" in rows[2]
    assert rows[1] == "| --- | ---: | ---: |"


def test_csv_has_full_precision_and_a_column_for_each_part():
    head, first, second = csv.reader(io.StringIO(TABLE.csv()))
    ours = "PPO (10M & more)"
    assert head == ["game", ours, f"{ours}: half_width_95", f"{ours}: runs", "OPR|x", "OPR|x: marks"]
    assert first == ["Pong_1", "20.123", "0.5", "3", "14.2", "f"]
    assert second == ["Alien", "", "", "", "-1234567.0", ""]


def test_latex_is_escaped_and_balanced():
    text = TABLE.latex()
    assert r"Pong\_1 & \textbf{20.12 $\pm$ 0.50} (3) & 14.2\textsuperscript{f} \\" in text
    assert r"\multicolumn{1}{c}{} & \multicolumn{1}{c}{ours} & \multicolumn{1}{c}{} \\" in text
    assert r"\cmidrule(lr){2-2}" in text
    assert r"\par\footnotesize PPO: 10M \& more." in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.count(r"\begin{") == text.count(r"\end{")


@given(st.text(alphabet=r"ab\&%$#_{}~^ ", max_size=20))
def test_every_special_character_is_escaped_for_latex(text):
    escaped = latex(text)
    for done in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        escaped = escaped.replace(done, "")
    for character in "&%$#_{}":
        escaped = escaped.replace(f"\\{character}", "")
    assert not set(escaped) & set(r"\&%$#_{}~^")
