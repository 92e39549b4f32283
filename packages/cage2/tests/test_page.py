"""`cage2 replay`: one self-contained page, with the data of the game."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cage2.cli import main
from cage2.game import play_game
from cage2.page import FILES, data_of, page_of
from cage2.rules.scenario import DECOYS, HOSTS

CHROMIUM = Path("/usr/bin/chromium")


def data_in(page: str) -> dict:
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[0])


def test_page_is_one_file_with_the_game_as_data() -> None:
    game = play_game("react", red="Meander", seed=2, horizon=50)
    page = page_of([game])
    assert data_in(page) == json.loads(json.dumps(data_of([game])))
    assert not re.search(r"""(?:src|href|@import|url\()\s*=?\s*["']?https?:""", page)
    assert page.count("<script>") == page.count("<style>") == page.count("<svg ") == 1
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


def test_page_works_in_a_browser(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="this test needs playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"this test needs {CHROMIUM}: apt-get install chromium")
    one = play_game("best", red="B_line", seed=4, horizon=40)
    other = play_game("react", red="B_line", seed=4, horizon=40)
    (tmp_path / "one.html").write_text(page_of([one]))
    (tmp_path / "two.html").write_text(page_of([one, other]))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--headless"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"file://{tmp_path}/one.html#step=18")
        assert page.text_content("output") == "step 18 of 40"
        for key, step in (("ArrowRight", 19), ("ArrowLeft", 18), ("End", 40), ("Home", 0)):
            page.keyboard.press(key)
            assert page.text_content("output") == f"step {step} of 40"
        page.keyboard.press("Shift+ArrowRight")
        first = next(s.number for s in one.steps[1:] if s.access != one.steps[s.number - 1].access)
        assert page.text_content("output") == f"step {first} of 40"
        held = sum(level > 0 for level in one.steps[first].access)
        assert page.locator(".host.a-user, .host.a-priv").count() == held
        assert page.locator(".host .name").all_text_contents() == list(HOSTS)
        assert "best against B_line" in page.inner_text("main")
        page.click("[data-show=saw]")
        assert page.locator(".gate").is_hidden()
        page.goto(f"file://{tmp_path}/two.html")
        page.click("[data-go=apart]")
        assert page.text_content("output") == "step 1 of 40"
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
    assert errors == []
