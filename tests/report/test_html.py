"""report.html: complete, offline, safe, small."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from loadgen.analysis.model import Findings
from loadgen.report.detail import Detail
from loadgen.report.html import embed_json, render_html
from loadgen.store.model import CellResult, Manifest, ServerFacts

VOID_TAGS = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, the text outside scripts, and a check that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID_TAGS:
            self._open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts[-1] += data
        elif not self._open or self._open[-1] != "style":
            self.text += data

    def figures(self) -> dict[str, dict[str, object]]:
        loaded: dict[str, dict[str, object]] = json.loads(self.scripts[0])
        return loaded


@pytest.fixture
def page(
    findings: Findings,
    manifest: Manifest,
    cells: tuple[CellResult, ...],
    servers: tuple[ServerFacts, ...],
    detail: Detail,
) -> Page:
    return Page(render_html(findings, manifest, cells, servers, detail))


def attributes(page: Page) -> Iterator[tuple[str, str, str]]:
    for tag, attrs in page.tags:
        for name, value in attrs.items():
            yield tag, name, value or ""


def test_the_first_thing_is_the_answer(page: Page, findings: Findings) -> None:
    words = " ".join(page.text.split())
    assert words.index("SIMULATED") < words.index(findings.answer) < words.index("Speed-up at a glance")
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    for part in (
        "num_speculative_tokens_per_batch_size: [[1,8,4],[9,13,2],[14,256,0]]",
        "not re-measured yet",
        "client-bound",
        "Give loadgen a free core or lower the level.",
        ".venv/bin/loadgen sweep --profile ngram --workload code-edit,chat",
        "async_scheduling",
        "the same for all profiles",
    ):
        assert part in words


def test_it_asks_the_network_for_nothing(page: Page) -> None:
    for tag, name, value in attributes(page):
        if name == "href" and (value or "").startswith("#"):
            continue  # a part of this page
        assert name not in ("src", "srcset", "href", "action", "poster", "data", "ping"), (tag, name, value)
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
    policy = next(attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs)
    assert policy is not None
    assert "default-src 'none'" in policy


def test_every_chart_has_a_figure_and_a_line_that_explains_it(page: Page) -> None:
    wanted = [value for tag, name, value in attributes(page) if name == "data-figure"]
    assert sorted(wanted) == sorted(page.figures())
    assert {name.split("-")[1] for name in wanted} == {
        "speedup", "throughput", "why", "acceptance", "positions", "tpot", "ttft", "pareto",
        "tpot99", "ttft99", "tpotspread", "ttftspread", "tokens", "running", "kv", "parts0",
    }  # fmt: skip
    assert sum(tag == "figcaption" for tag, _ in page.tags) == len(wanted)


def test_the_script_is_plotly_and_ours(page: Page) -> None:
    assert len(page.scripts) == 3
    assert "plotly.js (basic - minified)" in page.scripts[1]
    assert "beforeprint" in page.scripts[2]


def test_no_button_sends_the_chart_away(page: Page) -> None:
    assert "modeBarButtons: [[" in page.scripts[2]
    assert "cloud" not in page.scripts[2].lower()
    policy = next(attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs)
    assert policy is not None
    assert "form-action 'none'" in policy


def test_large_runs_stay_small(
    large_findings: Findings,
    manifest: Manifest,
    make_cells: Callable[[Findings], tuple[CellResult, ...]],
    make_detail: Callable[[Findings], Detail],
    servers: tuple[ServerFacts, ...],
) -> None:
    detail = make_detail(large_findings)
    text = render_html(large_findings, manifest, make_cells(large_findings), servers, detail)
    assert len(text.encode()) < 2_000_000
    assert len(Page(text).figures()) == 2 * 12 + 3


def test_c102_nothing_from_outside_runs(
    hostile_findings: Findings, manifest: Manifest, cells: tuple[CellResult, ...], servers: tuple[ServerFacts, ...]
) -> None:
    text = render_html(hostile_findings, manifest, cells, servers)
    page = Page(text)
    assert not any(tag == "img" for tag, _ in page.tags)
    assert not any(name.startswith("on") for _, name, _ in attributes(page))
    assert len(page.scripts) == 3
    assert "\u2028" not in text
    assert "<img" not in page.scripts[0]
    named = json.dumps(page.figures())
    assert "<img" not in named
    assert "&lt;img" in named


def test_c102_embedded_json_escapes_what_ends_a_script() -> None:
    text = embed_json({"a": "</script><!--&\u2028\u2029"})
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"a": "</script><!--&\u2028\u2029"}


def test_degenerate_findings(degenerate: dict[str, Findings], manifest: Manifest) -> None:
    for name, found in degenerate.items():
        page = Page(render_html(found, manifest))
        assert not re.search(r"\b(nan|None|inf|undefined)\b", page.text), name
        if name in ("no conditions", "no profiles", "no levels", "all invalid"):
            assert page.scripts == [], name


def test_tables_can_be_scrolled_by_keyboard(page: Page) -> None:
    boxes = [attrs for tag, attrs in page.tags if attrs.get("class") == "scroll"]
    assert boxes
    assert all(box.get("tabindex") == "0" and box.get("aria-label") for box in boxes)


def test_our_commands_in_advice_are_code_and_marks_stay_text(findings: Findings, manifest: Manifest) -> None:
    assert findings.recommendation is not None
    advice = replace(findings.recommendation, why="Run `loadgen verify` for `<b>x</b>`.")
    text = render_html(replace(findings, recommendation=advice), manifest)
    assert "Run <code>loadgen verify</code> for `&lt;b&gt;x&lt;/b&gt;`." in text
