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
    scroll_through(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
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
