"""The page and the Markdown of a same-quality test say what the finding says, and nothing in them is live."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from loadgen.analysis.lossless_greedy import judge_greedy
from loadgen.analysis.lossless_model import Arm, Divergence, Drafted, LosslessFinding, Place
from loadgen.analysis.lossless_sampling import judge_sampling
from loadgen.analysis.lossless_verdict import judge
from loadgen.errors import UsageError
from loadgen.report.lossless_html import render_lossless_html
from loadgen.report.lossless_json import LosslessAbout, lossless_json
from loadgen.report.lossless_markdown import render_lossless_markdown
from loadgen.report.lossless_text import sentence, short_name
from loadgen.report.lossless_write import read_result, write_lossless
from loadgen.report.summary import dumps
from loadgen.store.model import ServerFacts
from loadgen.sweep.lossless_plan import LosslessPlan
from loadgen.sweep.lossless_seeds import Seeding

ENOUGH = Drafted(1000, 4000, 1500, 5000)
EVIL = "<script>alert(1)</script>"


def finding(*gaps: float | None, drafted: Drafted = ENOUGH) -> LosslessFinding:
    found = tuple(Divergence(f"code-edit/200/L1/r0/measure/{i}", 1, 9 * i, 3, 4, g, g, 5) for i, g in enumerate(gaps))
    arms = [Arm(n, 40, 40 - len(found), 2500, (27,) * len(found), found) for n in (1, 32)]
    control = [
        Arm(1, 40, 40, 2500, (), ()),
        Arm(32, 40, 39, 2500, (5,), (Divergence("p", 32, 5, 3, 4, 0.03, 0.03, 0),)),
    ]
    greedy = judge_greedy(arms, control, "16-bit", drafted, 1)
    base, other = {1: 1200, 2: 300}, {1: 1190, 2: 310}
    places = [Place("code-edit/200/L1/r0/measure/7+12", at, base, other) for at in range(1, 7)]
    calm = [Place("code-edit/200/L1/r0/measure/7+12", at, base, base) for at in range(1, 7)]
    sampling = judge_sampling(places, calm, drafted, temperature=0.8, samples=1500)
    return judge("ngram", "baseline", greedy, [sampling])


def about(simulated: bool = False, model: str = "m") -> LosslessAbout:
    plan = LosslessPlan("ngram", "baseline", 4, seeds=Seeding(False, "a CPU dies of them"))
    facts = ("ngram", 0, "http://127.0.0.1:1", model, "0.32.0", 1.0, ("vllm", "serve", "--x"), {"device": "cpu"})
    argv = ("lossless", "--profile", "ngram")
    servers = {"ngram": ServerFacts(*facts)}
    return LosslessAbout("run", "2026", "1", argv, "process", "asked", simulated, "code-edit", 64, plan, servers)


def test_the_verdict_comes_first_and_every_part_stands_in_both_reports() -> None:
    found = finding(0.05, 0.2)
    page, text = render_lossless_html(found, about()), render_lossless_markdown(found, about())

    assert re.search(r"<h1[^>]*>ngram against baseline: same quality", page)
    assert text.startswith("# ngram against baseline: same quality")
    for part in (page, text):
        assert "Tolerance 0.25 nat" in part
        assert "baseline (control)" in part
        assert "Power: a distance of" in part
        assert "p after Holm" in part
        assert "margin of 0.1" in part
        assert "1,500" in part
        assert "none were sent: a CPU dies of them" in part
        assert "loadgen lossless --profile ngram" in part
        assert "76 of 80" in part  # equality, which is not the verdict
        assert "SIMULATED" not in part
    assert "vllm#41758" in page
    assert 'data-figure="greedy-gaps"' in page
    assert 'data-figure="s1-tv-0-8"' in page
    assert "http://" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_divergences_beyond_the_tolerance_are_listed_with_their_gaps() -> None:
    found = finding(0.9, None, 0.1)
    page, text = (
        render_lossless_html(found, about(simulated=True)),
        render_lossless_markdown(found, about(simulated=True)),
    )

    assert 'class="tag loss">differs' in page
    assert "SIMULATED" in page
    assert "**SIMULATED**" in text
    assert "| code-edit 0 | 1 | 0 | 3 | 4 | 0.90 | 0.90 | accepted drafts |" in text
    assert "not among 20" in text
    assert "code-edit 2" not in text  # a near tie


def test_untested_parts_say_why_and_lower_bounds_are_named() -> None:
    few = finding(drafted=Drafted(40, 160, 30, 900, at_least=True))
    page = render_lossless_html(few, about())

    assert 'class="tag void">not tested' in page
    assert "only 30 tokens came from accepted drafts" in page
    assert "at least 30" in page


def test_names_from_outside_stay_text() -> None:
    page, text = (
        render(finding(0.9, None), about(model=EVIL)) for render in (render_lossless_html, render_lossless_markdown)
    )

    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page
    assert EVIL not in text


def test_a_result_is_read_back_as_it_was(tmp_path: Path) -> None:
    found, how = finding(0.05, None, 2.0), about()
    path = tmp_path / "result.json"
    path.write_text(dumps(lossless_json(found, how)))

    assert read_result(path) == (found, how)
    assert set(write_lossless(tmp_path, *read_result(path))) == {"report.html", "report.md"}
    path.write_text('{"quality": "same quality"}')
    with pytest.raises(UsageError, match="cannot be read"):
        read_result(path)


def test_names_are_short_where_they_can_be() -> None:
    assert short_name("code-edit/200/L1/r0/measure/17+8") == "code-edit 17 + 8 tokens"
    assert short_name("my/file/200/L1/r1/measure/3") == "my/file 3, second set"
    assert short_name("p3") == "p3"


@pytest.mark.browser
@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_draws_asks_for_nothing_and_fits(browser: Browser, tmp_path: Path, width: int) -> None:
    found = finding(0.05, 0.9, None)
    path = write_lossless(tmp_path, found, about())["report.html"]
    page = browser.new_page(viewport={"width": width, "height": 900})
    faults: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator(".main-svg").first.wait_for()
    assert page.locator("h1").inner_text() == sentence(found)
    assert faults == []
    assert asked == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
