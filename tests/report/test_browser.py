"""The report in a real browser: it draws, asks for nothing, runs nothing from outside, fits a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from loadgen.analysis.model import Findings
from loadgen.report.detail import Detail
from loadgen.report.html import render_html
from loadgen.store.model import CellResult, Manifest, ServerFacts

pytestmark = pytest.mark.browser

DRAWN = "document.querySelectorAll('.chart .main-svg').length > 0"
SCROLL_TO_NEXT = """(() => {
  const next = [...document.querySelectorAll('.chart')].find(c => !c.querySelector('.main-svg'));
  if (next) next.scrollIntoView();
  return !next;
})()"""


def opened(browser: Browser, folder: Path, text: str, width: int, faults: list[str]) -> Page:
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.on("request", lambda request: None if request.url == path.as_uri() else faults.append(request.url))
    page.goto(path.as_uri())
    return page


def until(page: Page, expression: str) -> None:
    # Not wait_for_function: it evaluates text inside the page, which the page's own policy forbids.
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def scroll_through(page: Page) -> None:
    # Charts draw when they come near the screen; on a busy machine that takes as many frames as it takes.
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    until(page, SCROLL_TO_NEXT)


@pytest.mark.parametrize("width", [375, 1280])
def test_every_chart_is_drawn_and_the_page_fits(
    width: int,
    browser: Browser,
    tmp_path: Path,
    findings: Findings,
    manifest: Manifest,
    cells: tuple[CellResult, ...],
    servers: tuple[ServerFacts, ...],
    detail: Detail,
) -> None:
    faults: list[str] = []
    text = render_html(findings, manifest, cells, servers, detail)
    page = opened(browser, tmp_path, text, width, faults)
    answer = page.locator("h1").bounding_box()
    assert answer is not None
    assert answer["y"] + answer["height"] < 800  # the first screen answers
    assert page.evaluate("document.documentElement.scrollWidth") == width
    scroll_through(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert faults == []
    page.close()


@pytest.mark.parametrize("width", [375, 1280])
def test_the_list_at_the_top_leads_to_every_part_by_keyboard_too(
    width: int,
    browser: Browser,
    tmp_path: Path,
    findings: Findings,
    manifest: Manifest,
    cells: tuple[CellResult, ...],
    servers: tuple[ServerFacts, ...],
    detail: Detail,
) -> None:
    faults: list[str] = []
    page = opened(browser, tmp_path, render_html(findings, manifest, cells, servers, detail), width, faults)
    links = page.locator("nav.jump a")
    targets = [links.nth(number).get_attribute("href") for number in range(links.count())]
    headings = page.evaluate("[...document.querySelectorAll('section h2[id]')].map(h => '#' + h.id)")
    assert targets == headings
    for number in range(links.count()):
        links.nth(number).focus()
        page.keyboard.press("Enter")
        place = f"document.querySelector('{targets[number]}').getBoundingClientRect().top"
        # Below the list, which stays; the last parts cannot get as high as that.
        until(page, f"{place} >= document.querySelector('nav.jump').getBoundingClientRect().bottom")
        until(page, f"{place} < innerHeight")
    page.emulate_media(media="print")
    assert page.locator("nav.jump").is_hidden()
    assert faults == []
    page.close()


def test_more_charts_stand_behind_a_fold_that_the_keyboard_opens(
    browser: Browser,
    tmp_path: Path,
    findings: Findings,
    manifest: Manifest,
    cells: tuple[CellResult, ...],
    servers: tuple[ServerFacts, ...],
    detail: Detail,
) -> None:
    faults: list[str] = []
    page = opened(browser, tmp_path, render_html(findings, manifest, cells, servers, detail), 1280, faults)
    until(page, DRAWN)
    fold = "document.querySelector('.fold')"
    assert page.evaluate(f"{fold}.querySelectorAll('.main-svg').length") == 0
    page.locator(".fold > summary").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(f"{fold}.open")
    until(page, f"{fold}.querySelectorAll('.main-svg').length > 0")
    assert faults == []
    page.close()


def test_c102_nothing_from_outside_runs(
    browser: Browser, tmp_path: Path, hostile_findings: Findings, manifest: Manifest, cells: tuple[CellResult, ...]
) -> None:
    faults: list[str] = []
    page = opened(browser, tmp_path, render_html(hostile_findings, manifest, cells), 1280, faults)
    scroll_through(page)
    assert page.locator("img").count() == 0
    assert faults == []
    page.close()


def test_the_legend_hides_a_profile(browser: Browser, tmp_path: Path, findings: Findings, manifest: Manifest) -> None:
    faults: list[str] = []
    page = opened(browser, tmp_path, render_html(findings, manifest), 1280, faults)
    until(page, DRAWN)
    shown = "document.querySelector('.chart').data.filter(t => t.visible === 'legendonly').length"
    assert page.evaluate(shown) == 0
    page.locator(".chart .legendtoggle").first.click()
    until(page, f"{shown} > 0")
    assert faults == []
    page.close()
