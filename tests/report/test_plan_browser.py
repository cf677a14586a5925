"""The plan's page in a real browser: it draws, asks for nothing, fits a phone."""

import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from loadgen.cli import app

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sys.path.insert(0, str(ROOT))
    try:
        from tools.make_large_run import Size, write_large_run
    finally:
        sys.path.remove(str(ROOT))
    path = tmp_path_factory.mktemp("runs") / "one"
    write_large_run(path, Size(levels=(1, 4, 16), profiles=("ngram",), repeats=3, chunks=9_000))
    done = CliRunner().invoke(app, ["plan", str(path), "--slo", "ttft_p90=500ms", "--rate", "2/s"])
    assert done.exit_code == 0, done.output
    return path / "plan.html"


@pytest.mark.parametrize("width", [375, 1280])
def test_the_plan_draws_asks_for_nothing_and_fits(browser: Browser, page_path: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    faults: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_path.as_uri())
    page.locator(".chart").first.scroll_into_view_if_needed()
    page.locator(".chart .main-svg").first.wait_for()
    assert faults == []
    assert asked == [page_path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("table").count() >= 1
    page.close()
