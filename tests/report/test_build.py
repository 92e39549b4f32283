"""The whole report: every section, table and figure, from complete and damaged runs, as text and in a browser."""

import csv
import html
import json
import math
import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from optimist.cli.main import main
from optimist.errors import RunFolderError
from optimist.report.atari import aggregate_table, paper_tables
from optimist.report.atari_charts import Normalized
from optimist.report.build import MANY_METHODS, build_report
from optimist.report.charts import Key, require_matplotlib
from optimist.report.comparison import goals_chart, scores_table
from optimist.report.rows import collect
from optimist.report.study import Study
from tests.report.fake_runs import write_run

CHROMIUM = Path("/usr/bin/chromium")
SECTIONS = ("overview", "atari", "cage2", "deepsea", "runs-all", "missing", "reading")


def opr(**changes):
    from dataclasses import replace

    from optimist.presets import get_preset

    return {"opr": replace(get_preset("deepsea/opr")().opr, **changes)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three families, two seeds each, an ablation, and runs in every bad state."""
    root = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        for preset, score in (("deepsea/ppo", 0.4), ("deepsea/opr", 0.9)):
            write_run(root / f"{preset}-{seed}", preset, seed=seed, score=score, steps=5000)
        write_run(root / f"ablation-{seed}", "deepsea/opr", seed=seed, score=0.7, steps=5000, changes=opr(bc_coef=1.0))
        for preset in ("cage2/cardiff", "cage2/cardiff-opr"):
            write_run(root / f"{preset}-{seed}", preset, seed=seed, score=-5.0 - seed)
        for preset, score in (("atari/ppo", 5.0), ("atari/opr", 9.0)):
            for game in ("Pong", "Breakout", "Qbert", "Alien", "Seaquest"):
                write_run(root / f"{preset}-{game}-{seed}", preset, seed=seed, score=score + seed, game=game)
    write_run(root / "long", "atari/opr", score=12.0, game="Pong", long=True)
    write_run(root / "half", "deepsea/ppo", seed=7, finished=False, steps=5000)
    broken = write_run(root / "broken", "deepsea/ppo", seed=8)
    (broken / "config.toml").write_text("seed = ")
    empty = write_run(root / "empty <b>", "deepsea/ppo", seed=9, steps=5000)
    (empty / "metrics.jsonl").write_text("")
    return root


@pytest.fixture(scope="module")
def report(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "report"
    return build_report([folder], out, title="A <title>")


def test_page_has_every_section_and_no_external_resource(report):
    page = report.read_text()
    assert page.startswith("<!doctype html>")
    for section in SECTIONS:
        assert f'<section id="{section}">' in page
        assert f'href="#{section}"' in page
    assert "A &lt;title&gt;" in page
    assert "<script" not in page
    assert not re.search(r'(src|srcset|action)=|@import|url\((?!#)|<link(?! rel="icon" href="data:,")', page)
    assert re.search(r"nan|None", re.sub(r"<[^>]+>|last-100|none", "", page)) is None
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(set(ids)) == len(ids)


def test_missing_data_is_listed(report):
    missing = report.read_text().split('<section id="missing">')[1].split("</section>")[0]
    assert "config.toml cannot be read" in missing
    assert "not finished (2,500 of 5,000 steps)" in missing
    assert "empty &lt;b&gt;</code></a>: metrics.jsonl is empty; no curves" in missing


def test_counts_on_the_page_match_its_lists(tmp_path):
    for seed, steps in ((0, 2000), (0, 1000), (1, 2000)):
        write_run(tmp_path / f"{seed}-{3000 - steps}", "deepsea/ppo", seed=seed, steps=steps)
    for name in ("cut", "cut-again"):  # seed 0 has a finished run
        write_run(tmp_path / "runs" / name, "deepsea/ppo", finished=False, steps=2000)
    page = build_report([tmp_path], tmp_path / "out").read_text()
    assert "<dd>2</dd><dt>unfinished</dt>" in page
    missing = page.split('<section id="missing">')[1].split("</section>")[0]
    assert missing.count("not finished (1,000 of 2,000 steps)") == 2
    assert "Unfinished runs: 2" in missing
    assert "Repeated runs: 2" in missing
    assert "unfinished runs: 2, repeated runs: 2." in page
    assert page.index("PPO (1k steps)") < page.index("PPO (2k steps)")  # in any order of folders
    assert "PPO (2)</td>" in page.split('<section id="overview">')[1].split("</section>")[0]


def test_tables_and_figures_are_written_in_every_format(report):
    tables = {path.name for path in (report.parent / "tables").iterdir()}
    names = {
        "table-1-49-games-10M", "table-1-published-10M", "table-2-14-games-50M", "table-2-published-50M",
        "aggregates-10M", "scores-atari-last-100",
        "scores-atari-final", "scores-atari-best-epoch", "scores-cage2-last-100", "scores-deepsea-last-100",
        "goals-deepsea", "runs",
    }  # fmt: skip
    assert tables >= {f"{name}{suffix}" for name in names for suffix in (".md", ".csv", ".tex")}
    figures = {path.name for path in (report.parent / "figures").iterdir()}
    names = {
        "highest-10M", "highest-50M", "aggregates-10M", "profiles-10M", "improvement-10M", "efficiency-10M",
        "learning-atari", "learning-cage2", "learning-deepsea", "entropy-atari", "entropy-cage2", "entropy-deepsea",
        "memory-atari", "memory-cage2", "memory-deepsea", "seeds-atari", "seeds-cage2", "goals-deepsea",
        "ablations-deepsea",
    }  # fmt: skip
    assert figures >= {f"{name}{suffix}" for name in names for suffix in (".svg", ".png", ".pdf")}
    page = report.read_text()
    assert all(f'id="{name}"' in page for name in names)


def test_table_1_has_our_means_and_published_scores_with_their_doubts(report):
    rows = (report.parent / "tables" / "table-1-49-games-10M.md").read_text().splitlines()
    head = next(row for row in rows if row.startswith("| game"))
    assert "PPO (10M steps, last-100, sticky 0)" in head
    assert "PPO (CleanRL) (10M steps, 3 runs, last-100, sticky 0)" in head
    (breakout,) = [row for row in rows if row.startswith("| Breakout")]
    assert "5.5 ± 6.4 (n = 2)" in breakout
    assert "**9.5 ± 6.4** (n = 2)" in breakout
    assert "430.1" in breakout
    assert "119.9<sup>a</sup>" in breakout
    assert "111.7<sup>f</sup>" in breakout
    games = [row.split(" | ")[0].lstrip("| ") for row in rows if row.startswith("| ")][2:]
    assert games == ["Alien", "Breakout", "Pong", "Qbert", "Seaquest"]
    rest = (report.parent / "tables" / "table-1-published-10M.md").read_text().splitlines()
    assert len([row for row in rest if row.startswith("| ")]) == 44 + 2
    (pong,) = [
        row
        for row in (report.parent / "tables" / "table-2-14-games-50M.md").read_text().splitlines()
        if row.startswith("| Pong")
    ]
    assert "12.0 (n = 1)" in pong


def test_goals_are_counted_and_ablations_listed(report):
    goals = (report.parent / "tables" / "goals-deepsea.md").read_text()
    assert "| DeepSea-12 | PPO+OPR | 2 of 2 | 2 of 2 | 1.00 | 0.34 to 1.00 |" in goals
    scores = (report.parent / "tables" / "scores-deepsea-last-100.csv").read_text()
    assert "PPO+OPR · bc_coef=1.0" in scores


def test_csv_holds_one_number_a_field_and_one_row_a_run(report, folder):
    def read(name):
        return list(csv.DictReader((report.parent / "tables" / f"{name}.csv").open(encoding="utf-8")))

    (goals,) = [row for row in read("goals-deepsea") if row["method"] == "PPO+OPR"]
    assert (goals["goal seen (runs)"], goals["goal seen (runs): of"]) == ("2", "2")
    low, high = goals["95 % interval (Wilson)"], goals["95 % interval (Wilson): high"]
    assert 0.34 < float(low) < 0.35
    assert float(high) == 1.0
    for row in read("scores-deepsea-last-100"):
        numbers = {name: value for name, value in row.items() if name not in ("environment", "method")}
        assert all(value == "" or math.isfinite(float(value)) for value in numbers.values()), numbers
    runs, _ = collect([folder])
    rows = read("runs")
    assert [row["run"] for row in rows] == [run.name for run in runs]
    words = ("run", "family", "environment", "method", "preset", "changes")
    for row in rows:
        assert all(value == "" or math.isfinite(float(value)) for name, value in row.items() if name not in words), row
    assert {row["solved"] for row in rows if row["family"] == "DeepSea" and row["finished"] == "1"} >= {"0", "1"}


def test_figures_and_tables_link_to_their_files(report):
    files = re.findall(r'href="((?:figures|tables)/[^"]+)"', report.read_text())
    assert len(files) > 30
    assert [name for name in files if not (report.parent / name).exists()] == []


def test_run_names_link_to_their_details_and_those_to_their_files(report, folder):
    page = report.read_text()
    table = page.split('id="runs-table"')[1].split("</table>")[0]
    names = re.findall(r'<th scope="row"><a href="#(run-\d+)">([^<]+)</a></th>', table)
    assert len(names) == table.count('scope="row"') > 20
    assert all(f'<div id="{place}">' in page for place, _ in names)
    place = {name: place for place, name in names}[f"{folder.name}/deepsea/opr-1"]
    details = page.split(f'<div id="{place}">')[1].split("</p>")[0]
    files = {
        name: (report.parent / unquote(href)).resolve() for href, name in re.findall(r'href="(.+?)">(.+?)<', details)
    }
    run = folder / "deepsea" / "opr-1"
    assert files == {"folder": run} | {name: run / name for name in ("config.toml", "metrics.jsonl", "summary.json")}


def test_rows_of_results_files_and_problems_link_to_their_files(tmp_path):
    row = {"run": "a", "preset": "deepsea/ppo", "flags": {}, "settings": {}, "seed": 0, "steps": 5, "value": 0.5,
           "statistic": "", "metrics": {}, "state": "finished"}  # fmt: skip
    path = tmp_path / "my runs" / "runs.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(row) + "\ndamaged\n")
    page = build_report([path.parent], tmp_path / "out").read_text()
    assert '<th scope="row"><a href="../my%20runs/runs.jsonl">my runs/runs.jsonl:1</a></th>' in page
    assert '<a href="../my%20runs/runs.jsonl"><code>my runs/runs.jsonl</code></a>: 1 of 2 rows left out' in page


def test_overview_counts_methods_where_their_names_fill_a_screen(tmp_path):
    for count in range(MANY_METHODS + 1):
        write_run(tmp_path / str(count), "deepsea/opr", steps=5000, changes=opr(bc_coef=1.0 + count))
    page = build_report([tmp_path], tmp_path / "out").read_text()
    overview = page.split('<section id="overview">')[1].split("</section>")[0]
    assert f">{MANY_METHODS + 1} methods, 1 seed each</span>" in overview
    assert "PPO+OPR · bc_coef=3.0 (1)" in (tmp_path / "out" / "tables" / "overview.csv").read_text()
    assert '<a href="#deepsea">DeepSea</a>' in overview


def test_labels_leave_out_what_all_share_and_keep_it_in_a_tooltip(tmp_path):
    for seed in (0, 1):
        for name, changes in (("a", opr(bc_coef=1.0)), ("b", opr(bc_coef=1.0, percentile=80.0))):
            write_run(tmp_path / f"{name}{seed}", "deepsea/opr", seed=seed, steps=5000, changes=changes)
    page = build_report([tmp_path], tmp_path / "out").read_text()
    table = page.split('id="goals-deepsea-table"')[1].split("</table>")[0]
    assert '<span title="PPO+OPR · bc_coef=1.0">PPO+OPR</span>' in table
    assert '<span title="PPO+OPR · bc_coef=1.0 · percentile=80.0">PPO+OPR · percentile=80.0</span>' in table
    assert "<title>PPO+OPR · bc_coef=1.0 · percentile=80.0</title>" in page.split('id="goals-deepsea"')[1]
    assert "PPO+OPR · bc_coef=1.0 · percentile=80.0" in (tmp_path / "out" / "tables" / "goals-deepsea.csv").read_text()


def test_goals_are_drawn_as_one_mark_a_seed(tmp_path):
    for seed, score in enumerate((0.9, 0.9, 0.1)):
        write_run(tmp_path / str(seed), "deepsea/opr", seed=seed, score=score, steps=5000)
    (panel,) = goals_chart(Study(*collect([tmp_path])).family("DeepSea")).panels
    axis = require_matplotlib().figure().subplots()
    panel.draw(axis)
    filled, crossed, dots = axis.lines
    assert [len(line.get_xdata()) for line in (filled, crossed, dots)] == [2, 1, 0]
    assert axis.texts[0].get_text().replace("\n", " ") == "PPO+OPR: kept 2 of 3 (0.21 to 0.94), seen 3 of 3"


def test_aggregates_of_single_runs_have_no_interval():
    columns = [Normalized(name, np.full((runs, 2), 0.5) + np.eye(2)[:runs], True, Key(name, "k"))
               for name, runs in (("one", 1), ("two", 2))]  # fmt: skip
    one, two = aggregate_table(columns, ["Pong", "Breakout"], "x").rows
    assert one[2].text == "1.000"
    assert two[2].text == "1.000 (0.500 to 1.500)"


def test_paper_table_can_show_another_statistic(folder):
    runs, problems = collect([folder / "atari"])
    short, _ = paper_tables(Study(runs, problems, "best-epoch").family("Atari"))
    table = short.measured_table()
    (pong,) = [row for row in table.rows if row[0].text == "Pong"]
    assert pong[1].shown == "6.1 ± 7.0"
    assert pong[1].runs == 2
    assert table.heads[1].fine == "10M steps, best-epoch, sticky 0"


def test_one_game_comes_first_and_other_published_scores_are_collapsed(tmp_path):
    write_run(tmp_path / "run", "atari/smoke", game="Pong", score=-20.0)
    page = build_report([tmp_path / "run"], tmp_path / "out").read_text()
    open_part, collapsed = page.split('<section id="atari">')[1].split(
        "<details><summary>Table 1: published scores of 48"
    )
    assert "<td>−20.0" in open_part
    assert "Alien" not in open_part
    assert "Alien" in collapsed
    assert "Not in aggregates, profiles and counts of highest scores: PPO+OPR, smoke (1 game)." in open_part
    assert not list((tmp_path / "out").glob("*/aggregates*")) + list((tmp_path / "out").glob("*/profiles*"))
    assert 'id="highest-10M"' in collapsed


def test_method_with_few_games_does_not_remove_the_aggregates_of_others(folder, tmp_path):
    write_run(tmp_path / "runs" / "a2c", "atari/a2c", game="Pong", score=-20.0)
    page = build_report([folder / "atari", tmp_path / "runs"], tmp_path / "out").read_text()
    assert "highest scores: A2C (1 game)." in page
    rows = (tmp_path / "out" / "tables" / "aggregates-10M.md").read_text()
    assert "A2C" not in rows
    assert "on the 5 games" in rows


def test_runs_without_the_statistic_are_listed(folder):
    runs, problems = collect([folder / "cage2"])
    Study(runs, problems, "final-greedy").check()
    assert "has no statistic final-greedy (it has last-100, final, best-epoch)" in problems[0].what


def test_published_tables_need_no_runs(tmp_path):
    (tmp_path / "nothing").mkdir()
    page = build_report([tmp_path / "nothing"], tmp_path / "out", published=True)
    shown = page.read_text()
    assert "<details open><summary>Table 1: published scores of 49 games not run here, 10M steps." in shown
    assert "Not in aggregates" not in shown
    with pytest.raises(RunFolderError, match="no run below"):
        build_report([tmp_path / "nothing"], tmp_path / "other")


@pytest.mark.parametrize(
    "more", [[], ["--title", "A <b> & 'c'", "--statistic", "final", "--unlike", "mix", "--published"]]
)
def test_footer_has_the_command_of_the_page(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "my runs", "deepsea/ppo")
    command = ["report", "my runs", "-o", "my report", *more]
    assert main(command) == 0
    page = (tmp_path / "my report" / "report.html").read_text()
    shown = html.unescape(page.rpartition("<code>")[2].partition("</code>")[0])
    assert shlex.split(shown) == ["optimist", *command]


def test_folder_with_other_files_is_rejected(folder, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RunFolderError, match="not empty and holds no report"):
        build_report([folder / "cage2"], tmp_path)


def test_command_separates_mixes_or_refuses_different_budgets(folder, tmp_path, capsys):
    write_run(tmp_path / "short", "cage2/cardiff", seed=5, steps=60_000)
    command = ["report", str(folder / "cage2"), str(tmp_path / "short"), "-o", str(tmp_path / "out")]
    assert main([*command, "--unlike", "refuse"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "the column Cardiff, B_line, final rules, 30 steps, would mix budgets in steps" in error
    assert not (tmp_path / "out").exists()
    assert main(command) == 0
    assert "Cardiff (60k steps)" in (tmp_path / "out" / "report.html").read_text()
    assert main([*command, "--unlike", "mix"]) == 0  # overwrites the report
    assert "Cardiff *" in (tmp_path / "out" / "report.html").read_text()


def test_difference_is_from_a_base_with_the_same_budget_and_sticky_actions(tmp_path):
    for sticky, preset, score in ((0.0, "ppo", 1.0), (0.25, "ppo", 2.0), (0.25, "opr", 5.0)):
        write_run(tmp_path / f"{preset}-{sticky}", f"atari/{preset}", score=score, game="Pong", sticky=sticky)
    table = scores_table(Study(*collect([tmp_path]), "last-100").family("Atari"), "last-100")
    assert [(row[1].shown, row[5].shown) for row in table.rows] == [
        ("PPO (sticky 0)", "base"),
        ("PPO (sticky 0.25)", "base"),
        ("PPO+OPR", "3.00"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "required: DIR"), (["nowhere"], "no folder nowhere"), ([".", "--statistic", "best"], "invalid choice")],
)
def test_wrong_arguments_give_a_one_line_error(arguments, words, capsys):
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="this test needs playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"this test needs {CHROMIUM}: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--headless"])
        yield browser
        browser.close()


OUTSIDE = """() => [...document.querySelectorAll('main svg')].flatMap(svg => {
  const edge = svg.getBoundingClientRect();
  return edge.width === 0 ? [] : [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < edge.left - .5 || box.right > edge.right + .5 || box.top < edge.top - .5
      || box.bottom > edge.bottom + .5;
  }).map(text => svg.getAttribute('aria-label') + ': ' + text.textContent);
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_of_a_picture_is_clipped_and_figures_fill_the_page(report, browser, width):
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    shown = "[...document.querySelectorAll('main svg')].filter(svg => svg.getBoundingClientRect().width > 0).length"
    assert page.evaluate(shown) > 50
    assert page.evaluate(OUTSIDE) == []
    room = page.evaluate("document.querySelector('#atari h2').getBoundingClientRect().width")
    for chart in ("profiles-10M", "learning-cage2", "goals-deepsea"):
        box = f"[...document.querySelectorAll('#{chart} svg')].map(s => s.getBoundingClientRect()).filter(b => b.width)"
        boxes = page.evaluate(f"{box}.map(b => [b.left, b.right])")
        assert max(right for _, right in boxes) - min(left for left, _ in boxes) >= 0.97 * room, chart
    page.close()


def test_link_to_a_run_opens_its_details(report, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 844})
    page.goto(report.as_uri())
    page.evaluate("document.querySelector('#runs-table').closest('details').open = true")
    link = page.locator("#runs-table tbody th a").nth(5)
    details = page.locator(link.get_attribute("href"))
    assert not details.is_visible()
    link.click()
    details.wait_for(state="visible")
    page.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_page_in_a_browser_fits_and_has_no_request_or_error(report, browser, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    requests, messages = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    assert messages == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for section in SECTIONS:
        assert page.locator(f"section#{section} h2").is_visible()
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (brightness(ink) < brightness(paper)) == (scheme == "light")
    tick = page.locator("#learning-cage2 .panel svg text").first
    assert brightness(tick.evaluate("element => getComputedStyle(element).fill")) == brightness(ink)
    context.close()


def brightness(color):
    return sum(map(int, re.findall(r"\d+", color)[:3]))
