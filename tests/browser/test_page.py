"""The service's page as a person uses it: with a mouse, with the keyboard, on a phone."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
Opened = Callable[..., Page]
SLOW_MS = 90_000


@pytest.fixture(autouse=True)
def patience() -> None:
    """A sweep takes its time, and on a busy machine everything does."""
    expect.set_options(timeout=SLOW_MS)


def fill(page: Page, levels: str = "1,4", workload: str = "chat") -> None:
    """The form for a sweep of seconds."""
    for usual in ("code-edit", "chat"):
        page.get_by_label(usual, exact=True).uncheck()
    page.get_by_label(workload, exact=True).check()
    page.get_by_label("Requests in flight").fill(levels)
    page.get_by_label("Engine").select_option("simulator")
    page.get_by_text("More settings").click()
    page.get_by_label("Seconds per cell").fill("0.5")
    page.get_by_label("Repeats").fill("1")


def start(page: Page) -> str:
    """The name of the started run, whose page is shown."""
    page.get_by_role("button", name="Start the sweep").click()
    page.wait_for_url("**/run/*", timeout=SLOW_MS)
    return page.url.rpartition("/")[2]


def shot(page: Page, pictures: Path | None, name: str) -> None:
    if pictures is not None:
        page.screenshot(path=pictures / f"{name}.png")


def fits(page: Page) -> None:
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_sweep_from_the_form_to_the_report(
    opened: Opened, faults: list[str], pictures: Path | None, tmp_path: Path
) -> None:
    page = opened("/")
    expect(page.get_by_label("ngram", exact=True)).to_be_checked()
    fill(page)
    expect(page.locator("#size")).to_have_text("4 cells")
    run = start(page)
    expect(page.locator("#state")).to_have_text("running")
    expect(page.locator("#count")).to_have_text(re.compile(r"[1-3] of 4 cells"))
    shot(page, pictures, "live")

    page.reload()  # in the middle: nothing is lost, nothing starts twice
    expect(page.locator("#count")).to_have_text(re.compile(r"[1-4] of 4 cells"))
    expect(page.locator("#charts .main-svg").first).to_be_visible()

    expect(page.locator("#answer")).to_contain_text("ngram")
    expect(page.locator("#state")).to_have_text("completed")
    expect(page.locator("#said")).to_contain_text("completed")
    expect(page.locator("#simulated")).to_be_visible()
    page.get_by_text("The figures as a table").click()
    expect(page.locator("#tables")).to_contain_text("ngram / baseline")
    with page.expect_download() as download:
        page.get_by_role("link", name="cells.csv").click()
    path = tmp_path / "cells.csv"
    download.value.save_as(path)
    assert path.read_text(encoding="utf-8").count("\n") == 5
    page.get_by_role("link", name="Open the report").click()
    expect(page.locator("h1")).to_contain_text("ngram")
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    assert page.evaluate("window.origin") == "null"  # the report cannot act for the user
    assert run in page.url
    assert faults == []


def test_filter_then_plan(opened: Opened, faults: list[str], pictures: Path | None) -> None:
    page = opened("/")
    rows = page.locator("#runs tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_label("Filter").fill("no such words")
    expect(page.locator("#empty")).to_have_text("No run fits the filter.")
    expect(page.locator("#said")).to_have_text("0 runs fit the filter")
    page.get_by_label("Filter").fill("made simulated")
    expect(rows).to_have_count(2)
    page.get_by_label("State").select_option("completed")
    expect(rows.first).to_contain_text("completed")
    rows.first.get_by_role("link").click()
    page.get_by_role("link", name="Plan capacity").click()
    page.get_by_label("Users", exact=True).last.fill("100")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#result .answer-big")).to_contain_text("GPU")
    shot(page, pictures, "plan")
    page.get_by_text("A rate").click()
    expect(page.get_by_label("Think time, s")).to_be_hidden()
    page.get_by_label("Requests per second").fill("0")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#problem")).to_contain_text("Requests per second")
    page.get_by_label("Requests per second").fill("5")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#result")).to_contain_text("requests/s")
    page.get_by_role("link", name="Open the plan").click()
    expect(page.locator("h1")).to_be_visible()
    assert faults == []


def test_queue_cancel_and_go_on(opened: Opened, faults: list[str]) -> None:
    first = opened("/")
    fill(first, levels="1,2,4,8,16,32")
    start(first)
    second = opened("/")
    fill(second, levels="1,2,4,8")
    start(second)
    expect(second.locator("#state")).to_have_text("queued")
    expect(second.locator("#now")).to_contain_text("number 1 in the queue")
    first.get_by_role("button", name="Cancel").click()
    expect(first.locator("#state")).to_have_text("cancelled")
    expect(first.get_by_role("button", name="Go on")).to_be_visible()
    expect(second.locator("#state")).to_have_text("running")
    second.get_by_role("button", name="Cancel").click()
    expect(second.locator("#state")).to_have_text("cancelled")
    second.get_by_role("button", name="Go on").click()
    expect(second.locator("#state")).to_have_text("completed")
    expect(second.locator("#answer")).to_be_visible()
    assert faults == []


def test_runs_side_by_side(opened: Opened, faults: list[str], pictures: Path | None) -> None:
    page = opened("/")
    page.get_by_label("Filter").fill("made")
    expect(page.locator("#runs tbody tr")).to_have_count(2)
    for box in page.locator("#runs input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Side by side (2)").click()
    expect(page.locator("#conditions .main-svg").first).to_be_visible()
    expect(page.locator("#facts")).to_contain_text("(SIMULATED)")
    expect(page.locator("#changes")).to_contain_text("Made in the same way.")
    shot(page, pictures, "compare")
    page.get_by_role("link", name="Open as one page").click()
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    assert faults == []


def test_wrong_input_is_one_sentence_beside_the_button(opened: Opened, faults: list[str]) -> None:
    page = opened("/")
    fill(page)
    button = page.get_by_role("button", name="Start the sweep")
    page.get_by_label("Requests in flight").fill("1;4")
    button.click()
    expect(page.locator("#form-error")).to_contain_text("whole numbers above 0")
    expect(page.get_by_label("Requests in flight")).to_be_focused()
    page.get_by_label("Requests in flight").fill("1,4")
    page.get_by_label("Repeats").fill("99")
    button.click()
    expect(page.locator("#form-error")).to_contain_text("Repeats: ")
    page.get_by_label("Repeats").fill("1")
    page.get_by_label("ngram", exact=True).uncheck()
    expect(button).to_be_disabled()
    assert faults == []


def test_the_keyboard_alone_starts_a_sweep(opened: Opened, faults: list[str]) -> None:
    page = opened("/")
    expect(page.get_by_label("ngram", exact=True)).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    seen: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        where = str(page.evaluate("document.activeElement.id || document.activeElement.value || ''"))
        seen.append(where)
        if where == "quick":
            page.keyboard.press("Space")
        if where == "levels":
            page.keyboard.type("1")
        if where == "start":
            break
    assert {"ngram", "chat", "levels", "engine", "quick", "start"} <= set(seen)
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/*", timeout=SLOW_MS)
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible()
    cancel.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("cancelled")
    assert faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("path", ["/", "/plan", "/docs", "/compare", "run"])
def test_every_page_fits_and_names_its_fields(
    opened: Opened, faults: list[str], pictures: Path | None, path: str, width: int, scheme: str
) -> None:
    if path == "run":
        list_page = opened("/")
        list_page.get_by_label("State").select_option("completed")
        link = list_page.locator("#runs tbody a").first
        expect(list_page.locator("#runs tbody tr").first).to_contain_text("completed")
        path = str(link.get_attribute("href"))
    page = opened(path, width=width, scheme=scheme)
    page.wait_for_load_state("networkidle")
    fits(page)
    nameless = page.evaluate(
        """[...document.querySelectorAll("input, select, button, a")].filter((e) => e.offsetParent !== null &&
        !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    shot(page, pictures, f"{path.strip('/').split('/')[0] or 'index'}-{width}-{scheme}")
    assert faults == []


def test_a_service_with_a_token_asks_for_it(opened: Opened, started: Callable[..., str], faults: list[str]) -> None:
    token = "a-token-for-this-test-alone"
    page = opened("/plan", base=started(LOADGEN_TOKEN=token))
    expect(page).to_have_url(re.compile("/login"))
    page.get_by_label("Token").fill("a wrong one of good length")
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#problem")).to_contain_text("not the token")
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/plan$"))
    assert token not in page.url
    page.get_by_role("link", name="New sweep").click()
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/login"))
    # The browser itself tells of the 401 that the wrong token got, and wishes for a user name.
    assert [fault for fault in faults if "401" not in fault and "username" not in fault] == []
