"""The page as a person uses it, in Chromium: light, dark, phone, keyboard."""

from __future__ import annotations

import shutil
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ui.conftest import serving

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SERIOUS = """async () => (await axe.run({runOnly: ['wcag2a', 'wcag2aa']})).violations
  .filter(found => ['serious', 'critical'].includes(found.impact))
  .map(found => found.id + ': ' + found.nodes.map(node => node.html.slice(0, 120)).join(' | '))"""
CLIPPED = """() => [...document.querySelectorAll('.plot')].flatMap(plot => {
  const edge = plot.getBoundingClientRect();
  return [...plot.querySelectorAll('.end-label, .unit')].filter(text => {
    const box = text.getBoundingClientRect();
    return text.scrollWidth > text.clientWidth + 1 || box.left < edge.left || box.right > edge.right + 1;
  }).map(text => text.textContent);
})"""
VIEWS = ("/runs", "/memory?run=deepsea-opr", "/cage2?blue=react&step=3", "/report", "/runs/new")


def until(page, expression, seconds=90):
    """Wait for an expression of the page; playwright's own wait needs eval, which the page does not allow."""
    for _ in range(seconds * 10):
        with suppress(Exception):  # the page is being replaced by the next one
            if page.evaluate(expression):
                return
        page.wait_for_timeout(100)
    raise AssertionError(f"{expression} did not become true at {page.url}")


@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="the tests in a browser need playwright")
    if not CHROMIUM.exists():
        warnings.warn(f"NO BROWSER: {CHROMIUM} is missing, the tests of the page are skipped", stacklevel=1)
        pytest.skip(f"NO BROWSER: these tests need {CHROMIUM}: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--headless"])
        yield browser
        browser.close()


def is_fault(line):
    """Whether a line of the console is an error; a stream of events that ends with its page or server is none."""
    return line.type == "error" and "ERR_INCOMPLETE_CHUNKED_ENCODING" not in line.text


@pytest.fixture
def open_page(chromium):
    """Open pages whose console and script errors fail the test."""
    wrong, contexts = [], []

    def open_one(address, width=1280, scheme="light", height=900):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(90_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if is_fault(line) else None)
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_no_view_scrolls_sideways_or_fails_a_serious_rule_of_axe(site, open_page, width, scheme):
    for view in VIEWS:
        page = open_page(site.address + view, width, scheme)
        if view == "/runs":
            page.wait_for_selector(".end-label")
            assert page.evaluate(CLIPPED) == []
        assert page.evaluate(SIDEWAYS) <= 0, view
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(SERIOUS) == [], view


def test_a_curve_and_the_table_grow_while_a_run_writes(site, open_page):
    page = open_page(site.address + "/runs?filter=unfinished&runs=unfinished")
    page.wait_for_selector(".end-label")
    before = page.locator(".plot").get_attribute("aria-label")
    with (site.folder / "unfinished" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 190000, "rollout/raw_return": 7.5}\n{"step": 19')
    until(page, "document.querySelector('#runs-table').textContent.includes('95 %')")
    page.wait_for_timeout(5_000)
    with (site.folder / "unfinished" / "metrics.jsonl").open("a") as file:
        file.write('0001, "rollout/raw_return": 7.5}\n')
    until(page, f"document.querySelector('.plot').getAttribute('aria-label') !== {before!r}")
    assert "ends at 7.50" in page.locator(".plot").get_attribute("aria-label")


def test_runs_are_filtered_sorted_and_selected_and_the_address_keeps_it(site, open_page):
    page = open_page(site.address + "/runs")
    page.wait_for_selector(".end-label")
    page.fill("#filter-words", "fake-ppo")
    until(page, "document.querySelectorAll('#runs-table tbody tr').length === 6")
    page.click("#sort-seed")
    page.wait_for_load_state()
    assert page.locator("tbody th b").first.inner_text() == "fake-ppo-0"
    page.click("#sort-seed")
    page.wait_for_load_state()
    assert page.locator("tbody th b").first.inner_text() == "fake-ppo-5"
    page.uncheck("#pick-0")
    until(page, "location.search.includes('runs=')")
    page.reload()
    assert page.input_value("#filter-words") == "fake-ppo"
    assert not page.locator("#pick-0").is_checked()
    assert page.locator("#pick-1").is_checked()


def test_a_bin_and_an_episode_are_chosen_and_stepped_through_by_keyboard(site, open_page):
    page = open_page(site.address + "/memory?run=deepsea-opr")
    page.locator("a.bin").last.focus()
    page.keyboard.press("\r")
    until(page, "location.search.includes('bin=')")
    page.locator("tbody a").first.click()
    until(page, "location.search.includes('episode=')")
    page.wait_for_selector("#numbers dt")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "step 3 of 4" in page.inner_text("#place")
    page.keyboard.press("End")
    assert "step=4" in page.url
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    until(page, "document.querySelector('#place').textContent.startsWith('step 4')")
    assert page.evaluate("document.querySelector('#film').getContext('2d').getImageData(3, 3, 1, 1).data[3]") == 255


def test_a_replay_is_stepped_by_keyboard_and_two_policies_are_compared(site, open_page):
    page = open_page(site.address + "/cage2?blue=sleep&with=react&seed=4&step=2")
    page.wait_for_selector("#replay .map")
    assert page.locator("#replay .maps .map").count() == 2
    page.keyboard.press("ArrowRight")
    until(page, "location.search.includes('step=3')")
    page.click("[data-go=apart]")
    assert "step=" in page.url
    page.reload()
    assert page.locator("#replay output").inner_text().startswith("step ")


def test_a_stored_cage2_episode_is_shown_with_what_was_true(site, open_page):
    page = open_page(site.address + "/cage2?source=stored&run=cage2-opr")
    page.wait_for_selector("#replay .map")
    assert not page.locator("text=Only what blue saw").count()
    page.keyboard.press("End")
    until(page, "location.search.includes('step=30')")


def test_a_run_is_started_watched_stopped_and_resumed_from_the_page(tmp_path, open_page):
    with serving(tmp_path, control=True) as site:
        page = open_page(site.address + "/runs/new?preset=deepsea/opr&size=4&checkpoint_every=2000")
        page.fill("input[name=total_steps]", "2000000")
        page.keyboard.press("Tab")
        until(page, "document.querySelector('.command').textContent.includes('--total-steps 2000000')")
        assert "token" not in page.url
        page.click("button.main")
        page.wait_for_selector("[id^=stop-]")
        (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("deepsea"))
        while not list(folder.glob("checkpoints/step-*")):
            page.wait_for_timeout(200)
        page.on("dialog", lambda dialog: dialog.accept())
        page.click("[id^=stop-]")
        page.wait_for_selector("[id^=resume-]")
        page.click("[id^=resume-]")
        page.wait_for_selector("[id^=stop-]")
        page.click("[id^=stop-]")
        page.wait_for_selector("[id^=resume-]")
        shutil.rmtree(folder)
        until(page, "!document.querySelector('#runs-table')")


def test_the_full_report_is_made_on_demand(site, open_page):
    page = open_page(site.address + "/report?runs=fake-opr-0,fake-opr-1,fake-ppo-0,fake-ppo-1")
    page.click("button.main")
    page.wait_for_selector("iframe", timeout=120_000)
    assert page.frame_locator("iframe").locator("h1").inner_text()


def test_the_theme_is_kept(site, open_page):
    page = open_page(site.address + "/report?runs=none")
    for theme in ("light", "dark"):
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == theme
    page.reload()
    assert page.inner_text("#theme") == "Theme: dark"
