"""A server's address: what is taken, and the sentence for what is not."""

import pytest

from loadgen.engines.address import clean_url, shown
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        (" localhost:8000 ", "http://localhost:8000"),
        ("HTTPS://h/proxy/v1", "https://h/proxy"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://h:", "http://h"),
        ("http://höst:1", "http://höst:1"),
        ("http://under_score.example:1", "http://under_score.example:1"),
    ],
)
def test_a_base_url_however_it_is_written(text: str, base: str) -> None:
    assert clean_url(text) == base


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://[bad", "no URL of a server; write http://HOST:PORT"),
        ("http://::1", "no valid port"),
        ("http://h:999999", r"no valid port \(1 to 65535\)"),
        ("http://h:0", "no valid port"),
        ("http://h:port", "no valid port"),
        ("http://", "no URL of a server"),
        ("http:///x", "no URL of a server"),
        ("", "no URL of a server"),
        ("file:///etc/passwd", "no URL of a server"),
        ("ftp://h", "no URL of a server"),
        ("http://a b:1", "no valid host"),
        ("http://a..b:1", "no valid host"),
        ("http://" + "a" * 70, "no valid host"),
        ("http://[::zz]:1", "no URL of a server|no valid host"),
        ("http://h/a b", "white space"),
        ("http://h:1?model=x", r"behind \? or #"),
        ("http://h:1/v1#top", r"behind \? or #"),
        ("http://h:1/v1/chat/completions", "without /v1/chat/completions"),
        ("http://h:1/metrics", "without /metrics"),
        ("http://h:1/v1/models/", "without /v1/models"),
    ],
)
def test_what_no_request_can_be_sent_to_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        clean_url(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        *("http://user:hunter2@h:1", "user:hunter2@h", "http://hunter2@h", "http://user:hunter2@[bad"),
        *("http://user:hunter2@h:999999", "http://user:a/hunter2@h", "http://u:a@hunter2@h", "ftp://u:hunter2@h"),
        *("http://u:hunter2?@h", "http://u:#hunter2@h"),
    ],
)
def test_a_password_is_refused_and_stands_in_no_error(text: str) -> None:
    with pytest.raises(UsageError, match="set OPENAI_API_KEY") as caught:
        clean_url(text)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in shown(text)


def test_where_no_key_takes_its_place_none_is_named() -> None:
    with pytest.raises(UsageError, match="which is not sent; leave it out") as caught:
        clean_url("http://user:hunter2@h:1", key=None)
    assert "OPENAI_API_KEY" not in str(caught.value)
