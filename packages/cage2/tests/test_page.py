"""`cage2 replay`: one self-contained page, with the data of the game."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cage2.cli import main
from cage2.game import Game, play_game
from cage2.page import FILES, data_of, page_of, read_file
from cage2.rules.scenario import DECOYS, HOSTS

CHROMIUM = Path("/usr/bin/chromium")


def data_in(page: str) -> dict:
    return json.loads(
        re.findall(r'<script type="application/json" id="replay-data">(.*?)</script>', page, re.DOTALL)[0]
    )


def test_page_is_one_file_with_the_game_as_data() -> None:
    game = play_game("react", red="Meander", seed=2, horizon=50)
    page = page_of([game])
    assert data_in(page) == json.loads(json.dumps(data_of([game])))
    assert not re.search(r"""(?:src|href|@import|url\()\s*=?\s*["']?https?:""", page)
    assert page.count("<script>") == page.count("<style>") == page.count('<svg class="map"') == 1
    assert len(FILES) == 3


def test_data_are_the_words_and_the_state_of_each_step() -> None:
    game = play_game("best", red="B_line", seed=4, green="GreenAgent")
    data = data_of([game])["games"][0]
    assert len(data["steps"]) == 101
    for step, shown in zip(game.steps, data["steps"], strict=True):
        assert (shown["sum"], shown["reward"]) == (step.total, step.reward)
        assert [max(level - 1, 0) for level in shown["held"]] == list(step.access)
        assert shown["ot"] == step.ot_running
    texts = " ".join(
        f"{shown[who]['words']} {shown[who]['note']}" for shown in data["steps"] for who in ("blue", "red", "green")
    )
    for words in (
        "Puts an Apache decoy on",
        "Hits blue’s Femitter decoy.",
        "Scans the ports of",
        "Exploits User2 (FTP).",
        "Restores",
    ):
        assert words in texts, words
    assert all(
        len(names) <= 16 and {*names} <= {d.name for d in DECOYS}
        for shown in data["steps"]
        for names in shown["decoys"]
    )


def test_a_name_cannot_end_the_script(tmp_path: Path) -> None:
    game = play_game("sleep", horizon=3)
    page = page_of([type(game)(**{**vars(game), "agent": "</script><b>"})])
    assert data_in(page)["games"][0]["agent"] == "</script><b>"
    assert "<b>" not in page.replace('"<b>"', "")


def test_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "game.html"
    assert main(["replay", "react", "--with", "sleep", "--horizon", "20", "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert [game["agent"] for game in data_in(out.read_text())["games"]] == ["react", "sleep"]
    for path, message in (
        (tmp_path / "game.txt", "--out needs a *.html file"),
        (tmp_path / "no/a.html", "cannot write"),
    ):
        assert main(["replay", "sleep", "--horizon", "2", "--out", str(path)]) == 2
        assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="this test needs playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"this test needs {CHROMIUM}: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--headless"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened, errors = browser.new_page(viewport={"width": 1280, "height": 900}), []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    opened.close()
    assert errors == []


@pytest.fixture(scope="module")
def games() -> list[Game]:
    return [play_game(agent, red="B_line", seed=4, horizon=40) for agent in ("best", "react")]


OUTSIDE = """() => [...document.querySelectorAll(".replay > * .map:not(.sign), .chart > svg")].flatMap(box => {
  const edge = box.getBoundingClientRect();
  return [...box.querySelectorAll("text")].filter(text => {
    const at = text.getBoundingClientRect();
    return at.width && (at.left < edge.left - 1 || at.right > edge.right + 1 || at.bottom > edge.bottom + 1);
  }).map(text => text.textContent);
})"""


def test_keys_step_through_the_game(page: Any, games: list[Game], tmp_path: Path) -> None:
    one = games[0]
    (tmp_path / "one.html").write_text(page_of([one]))
    page.goto(f"file://{tmp_path}/one.html#step=18")
    assert page.text_content("output") == "step 18 of 40"
    for key, step in (("ArrowRight", 19), ("ArrowLeft", 18), ("End", 40), ("Home", 0)):
        page.keyboard.press(key)
        assert page.text_content("output") == f"step {step} of 40"
    page.keyboard.press("Shift+ArrowRight")
    first = next(s.number for s in one.steps[1:] if s.access != one.steps[s.number - 1].access)
    assert page.text_content("output") == f"step {first} of 40"
    assert page.url.endswith(f"#step={first}")
    held = sum(level > 0 for level in one.steps[first].access)
    assert page.locator(".host.a-user, .host.a-priv").count() == held
    assert page.locator(".host .name").all_text_contents() == list(HOSTS)
    assert "best against B_line" in page.inner_text("main")
    page.click("[data-show=saw]")
    assert page.locator(".gate").is_hidden()
    assert page.url.endswith(f"#step={first}&show=saw")
    page.click("[data-go=play]")
    page.wait_for_function(f"document.querySelector('output').textContent === 'step {first + 1} of 40'")


def test_two_agents_are_shown_next_to_each_other(page: Any, games: list[Game], tmp_path: Path) -> None:
    (tmp_path / "two.html").write_text(page_of(games))
    page.goto(f"file://{tmp_path}/two.html")
    page.click("text=First difference: 1")
    assert page.text_content("output") == "step 1 of 40"
    words = [game["steps"][1]["blue"]["words"] for game in data_of(games)["games"]]
    assert [page.locator(f".maps > div:nth-child({i}) .actions p").first.text_content() for i in (1, 2)] == words
    page.keyboard.press("End")
    for number, game in enumerate(games):
        page.click(f".whose button:nth-child({number + 1})")
        shown = data_of([game])["games"][0]["steps"][-1]
        truth = page.locator("tbody td:last-child").all_inner_texts()
        assert sum(text.endswith("privileged") for text in truth) == shown["held"].count(3)


@pytest.mark.parametrize("width", [1440, 1280, 390])
def test_no_text_is_cut_off(page: Any, games: list[Game], tmp_path: Path, width: int) -> None:
    for name, shown in (("one", games[:1]), ("two", games)):
        (tmp_path / f"{name}.html").write_text(page_of(shown))
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"file://{tmp_path}/{name}.html")
        for _ in range(12):
            assert page.evaluate(OUTSIDE) == []
            page.keyboard.press("ArrowRight")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_another_page_can_show_a_replay_and_remove_it(page: Any, games: list[Game], tmp_path: Path) -> None:
    svg, style, script = map(read_file, FILES)
    parts = json.dumps([data_of(games[:1]), svg]).replace("<", "\\u003c")
    (tmp_path / "host.html").write_text(
        f"<!doctype html><style>:root {{ --blue: rgb(1, 2, 3) }}</style><style>{style}</style><h1>mine</h1>"
        f"<div id=here></div><script>{script}</script><script>const [data, map] = {parts}, steps = []; "
        "const handle = cage2Replay(document.getElementById('here'), data, map, "
        "{step: 5, onChange: step => steps.push(step)})</script>"
    )
    page.goto(f"file://{tmp_path}/host.html")
    assert page.text_content("output") == "step 5 of 40"
    page.evaluate("handle.go(7)")
    assert page.evaluate("steps") == [5, 7]
    assert page.evaluate("getComputedStyle(document.querySelector('.actions .blue')).borderLeftColor") == "rgb(1, 2, 3)"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).marginTop") != "0px"
    page.evaluate("handle.remove()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[steps.length, document.getElementById('here').childElementCount]") == [2, 0]
