"""Servers that already run."""

from collections.abc import Callable

import pytest

from loadgen.engines.base import EngineEvent, StartRequest
from loadgen.engines.managed import ManagedEngine
from loadgen.engines.url import UrlEngine, parse_urls
from loadgen.errors import ServerError, UsageError

RequestFor = Callable[..., StartRequest]
NGRAM = "speculative-config: {method: ngram, num_speculative_tokens: 4, prompt_lookup_max: 5}"


async def test_a_running_server_is_asked_and_never_stopped(
    engine: ManagedEngine, request_for: RequestFor, events: list[EngineEvent]
) -> None:
    theirs = await engine.start(request_for(), lambda event: None)
    ours = UrlEngine(f"{theirs.url}/v1/")

    server = await ours.start(request_for(), events.append)
    await ours.stop(server, events.append)
    await ours.close()

    assert (server.url, server.model, server.version) == (theirs.url, "fake", "0.32.0")
    assert (server.pid, server.command) == (None, ())
    assert "left running" in events[-1].detail
    assert await ours.check_alive(server) is None

    await engine.close()
    assert "does not answer any more" in str(await ours.check_alive(server))


async def test_a_server_that_is_not_the_profiles_is_refused(engine: ManagedEngine, request_for: RequestFor) -> None:
    plain = await engine.start(request_for(), lambda event: None)
    drafting = await engine.start(request_for("--speculates", name="b"), lambda event: None)
    swapped = UrlEngine({"baseline": drafting.url, "ngram": plain.url})
    right = UrlEngine({"baseline": plain.url, "ngram": drafting.url})

    with pytest.raises(ServerError, match=r"speculates \(by its metrics\), but profile baseline does not"):
        await swapped.start(request_for(), lambda event: None)
    with pytest.raises(ServerError, match=r"does not speculate .*but profile ngram does"):
        await swapped.start(request_for(name="ngram", text=NGRAM), lambda event: None)
    assert (await right.start(request_for(name="ngram", text=NGRAM), lambda event: None)).url == drafting.url


async def test_one_url_is_one_profile(engine: ManagedEngine, request_for: RequestFor) -> None:
    theirs = await engine.start(request_for(), lambda event: None)
    ours = UrlEngine(theirs.url)
    await ours.start(request_for(), lambda event: None)
    await ours.start(request_for(), lambda event: None)

    with pytest.raises(UsageError, match="One URL cannot be both baseline and ngram"):
        await ours.start(request_for(name="ngram", text=NGRAM), lambda event: None)
    with pytest.raises(UsageError, match=r"No URL is given for profile baseline \(given: ngram\)"):
        await UrlEngine({"ngram": theirs.url}).start(request_for(), lambda event: None)


def test_urls_as_they_are_written() -> None:
    assert parse_urls("http://127.0.0.1:8000/v1/") == "http://127.0.0.1:8000"
    assert parse_urls("localhost:8000") == "http://localhost:8000"
    assert parse_urls("https://h/a/v1") == "https://h/a"
    assert parse_urls("http://[::1]:8000") == "http://[::1]:8000"
    assert parse_urls("baseline=h:1, ngram=http://h:2/v1") == {"baseline": "http://h:1", "ngram": "http://h:2"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "No URL is given"),
        ("ftp://h", "no URL of a server"),
        ("http://h:port", "no valid port"),
        ("http://user:pw@h:1", "set OPENAI_API_KEY"),
        ("baseline=http://user:p,w@h:1,ngram=h:2", "set OPENAI_API_KEY"),
        ("baseline=h:1,ngram=http://[bad", "no URL of a server"),
        ("baseline=h:1,h:2", "names no profile"),
        ("a=h:1,a=h:2", "two URLs"),
    ],
)
def test_what_is_no_url(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_urls(text)


async def test_a_profile_that_its_version_cannot_run_is_refused(
    engine: ManagedEngine, request_for: RequestFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = await engine.start(request_for(), lambda event: None)
    monkeypatch.setattr("loadgen.profiles.versions.OLDEST_KNOWN", (0, 40, 0))

    with pytest.raises(UsageError, match=r"vLLM 0\.32\.0 is older"):
        await UrlEngine(theirs.url).start(request_for(), lambda event: None)
