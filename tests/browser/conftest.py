"""Debian's Chromium, and a service of its own with real sweeps on the simulator."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tools.make_large_run import Size, write_large_run

Started = Callable[..., str]


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Starts `loadgen serve` on the runs folder (a new one by default) with these variables set; gives its URL."""
    with ExitStack() as stack:

        def start(runs: Path | None = None, **environment: str) -> str:
            runs = runs or tmp_path_factory.mktemp("runs")
            process = subprocess.Popen(
                [sys.executable, "-m", "loadgen", "serve", "--port", "0", "--runs", str(runs)],
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | environment,
            )
            assert process.stdout is not None
            for last in (process.stdout.close, process.wait, process.terminate):
                stack.callback(last)
            found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
            assert found is not None
            return found[0]

        yield start


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with two finished runs that nobody measured: on a stalled machine the trust checks rightly void
    cells of a real sweep, and what a page shows of valid ones is tested with these.
    """
    runs = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        size = Size(levels=(1, 4, 16), profiles=("ngram",), repeats=3, chunks=2_000)
        run = runs / f"2026-01-0{seed}T00-00-00Z-made"
        write_large_run(run, size, seed)
        subprocess.run([sys.executable, "-m", "loadgen", "report", str(run)], check=True, capture_output=True)
    return runs


@pytest.fixture(scope="session")
def url(started: Started, made_runs: Path) -> str:
    """The service that the tests of this folder share."""
    return started(made_runs)


@pytest.fixture
def faults() -> list[str]:
    """What went wrong in the pages of a test: errors, warnings, requests to other hosts. It must stay empty."""
    return []


Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, url: str, faults: list[str]) -> Iterator[Opened]:
    """Opens a page of the service: `opened("/", width=375)`."""
    with ExitStack() as stack:

        def open_page(path: str, width: int = 1280, scheme: str = "light", base: str = url) -> Page:
            context = browser.new_context(
                viewport={"width": width, "height": 800},
                color_scheme="dark" if scheme == "dark" else "light",
                accept_downloads=True,
            )
            stack.callback(context.close)
            page = context.new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("console", lambda message: faults.append(message.text))
            page.on("dialog", lambda dialog: faults.append(dialog.message))
            page.on(
                "request", lambda asked: None if asked.url.startswith((base, "blob:")) else faults.append(asked.url)
            )
            page.goto(base + path)
            return page

        yield open_page


@pytest.fixture(scope="session")
def pictures() -> Path | None:
    """Where screenshots go if LOADGEN_PICTURES names a folder; a person looks at them."""
    folder = os.environ.get("LOADGEN_PICTURES")
    return Path(folder) if folder else None
