"""A server's address as a person writes it, checked before anything is sent or stored."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from loadgen.errors import UsageError

_HOST = re.compile(r"[^\s\x00-\x1f\x7f/\\?#@:\[\]<>\"'`^|{}%,;!$&()*+=~]+")
_ENDPOINT = re.compile(r"(/v1)?/(api/v1/write|chat/completions|completions|models|tokenize|health|metrics|version)$")
_CREDENTIALS = re.compile(r"^([a-z][a-z0-9+.-]*://)?.*@", re.IGNORECASE | re.DOTALL)
"""All up to the last @: a password may hold any sign."""


def clean_url(url: str, *, key: str | None = "OPENAI_API_KEY") -> str:
    """The base URL without a trailing slash and `/v1`; `http://` is added where no scheme stands.

    UsageError, one sentence with the cure, for what no request can be sent to, for a query (it would be lost) and for
    a user or password (it would be stored with the run); no error repeats a password. `key` names the environment
    variable that takes its place, None where there is none.
    """
    text = url.strip()
    told = shown(text)
    if _CREDENTIALS.match(text):
        raise UsageError(
            f"{told!r} holds a user or password, which would be stored with the run; leave it out and set {key}."
            if key
            else f"{told!r} holds a user or password, which is not sent; leave it out."
        )
    address = _split(text if "://" in text else f"http://{text}", told)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"{told!r} is no URL of a server; write http://HOST:PORT.")
    if address.query or address.fragment:
        raise UsageError(f"{told!r} has a part behind ? or #, which no request would carry; write http://HOST:PORT.")
    path = address.path.rstrip("/")
    if found := _ENDPOINT.search(path):
        raise UsageError(f"{told!r} is one page of a server; write its base URL, without {found[0]}.")
    if re.search(r"[\s\x00-\x1f\x7f]", path):
        raise UsageError(f"{told!r} has white space in its path; write http://HOST:PORT.")
    host = f"[{address.hostname}]" if ":" in address.hostname else address.hostname
    port = "" if address.port is None else f":{address.port}"
    return f"{address.scheme}://{host}{port}{path.removesuffix('/v1')}"


def shown(url: str) -> str:
    """The URL as it may be printed: a user and password before the host are starred out."""
    return _CREDENTIALS.sub(lambda match: f"{match[1] or ''}***@", url)


def _split(text: str, told: str) -> SplitResult:
    """The parts; UsageError for a host or port that cannot be."""
    try:
        address = urlsplit(text)
        host = address.hostname or ""
    except ValueError:
        raise UsageError(f"{told!r} is no URL of a server; write http://HOST:PORT.") from None
    try:
        port = address.port
    except ValueError:
        port = 0
    if port == 0:
        raise UsageError(f"{told!r} has no valid port (1 to 65535); write http://HOST:PORT.")
    if host and not _is_host(host):
        raise UsageError(f"{told!r} has no valid host; write http://HOST:PORT.")
    return address


def _is_host(host: str) -> bool:
    """True for a name or an address of version 4 or 6."""
    if ":" in host:
        try:
            ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return False
        return True
    try:
        # What httpx does with a name that is not ASCII; empty and overlong labels fail here too.
        host.encode("idna")
    except UnicodeError:
        return False
    return _HOST.fullmatch(host) is not None
