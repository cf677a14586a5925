"""What stands before every request: who asks, from where, how much; and the headers that go out with every answer."""

import hmac
import ipaddress
import json
from collections.abc import Iterable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loadgen.service.settings import Settings

COOKIE = "loadgen"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OPEN_PATHS = frozenset({"/health", "/login", "/api/login"})
"""No token is asked for here; nor for `/static/`, which is the same in every copy of loadgen."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A report's scripts run in an origin of their own: whatever a run folder holds, it cannot act for the user here.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def too_large(limit: int) -> str:
    """The sentence of 413."""
    return f"The body is over {limit} bytes; no request here needs more."


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def cookie_value(token: str) -> str:
    """What the browser keeps: follows from the token, and does not tell it."""
    return hmac.new(token.encode(), b"loadgen service cookie", sha256).hexdigest()


class Guard:
    """ASGI middleware: Host (DNS rebinding), Origin (forged requests), token, size of the body, headers."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        send = _with_headers(send)
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        body = _Body(receive, send, self._settings.max_body_bytes)
        await self._app(scope, body.receive, body.send)

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> tuple[int, str] | tuple[int, str, str] | None:
        """(status, sentence[, where to go]) if the request is not to be answered."""
        host = headers.get("host", [])
        if len(host) != 1 or not self._is_ours(host[0]):
            return 403, "The Host is none of this service's; name it with `loadgen serve --allow-host NAME`."
        if scope["method"] not in SAFE and not _same_origin(headers, host[0]):
            return 403, "The request comes from another site's page."
        length = headers.get("content-length", ["0"])[0]
        if not length.isdigit() or int(length) > self._settings.max_body_bytes:
            return 413, too_large(self._settings.max_body_bytes)
        if self._needs_token(scope["path"]) and not self._knows_token(headers):
            sentence = "A token is needed: Authorization: Bearer TOKEN, or log in at /login."
            if scope["method"] == "GET" and "text/html" in "".join(headers.get("accept", [])):
                return 303, sentence, f"/login?next={quote(scope['path'], safe='/')}"
            return 401, sentence
        return None

    def _is_ours(self, host: str) -> bool:
        """localhost, an address (a rebound name is never one), or a name that was allowed; any port, for forwarding."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name in self._settings.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _needs_token(self, path: str) -> bool:
        if self._settings.token is None or path in OPEN_PATHS or path.startswith("/static/"):
            return False
        return not (path == "/metrics" and self._settings.open_metrics)

    def _knows_token(self, headers: dict[str, list[str]]) -> bool:
        token = self._settings.token or ""
        for value in headers.get("authorization", []):
            scheme, _, given = value.partition(" ")
            if scheme.lower() == "bearer" and same(given.strip(), token):
                return True
        return any(same(given, cookie_value(token)) for given in _cookies(headers.get("cookie", [])))


class _Body:
    """Counts what comes in; a body that grows over the limit (it told no length) ends as 413, whatever became of it."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive = receive
        self._send = send
        self._limit = limit
        self._left = limit
        self._answered = False

    async def receive(self) -> Message:
        """The next part; OSError once it is too much, which the application takes for a lost client."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise OSError(too_large(self._limit))
        return message

    async def send(self, message: Message) -> None:
        """Passes the answer on, unless the body was too large."""
        if self._left >= 0:
            await self._send(message)
        elif not self._answered:
            self._answered = True
            await _answer(self._send, 413, too_large(self._limit))


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _same_origin(headers: dict[str, list[str]], host: str) -> bool:
    """False for what a browser sends on behalf of another site; programs send neither header."""
    origins = headers.get("origin")
    if origins is not None:
        return origins in ([f"http://{host}"], [f"https://{host}"])
    return headers.get("sec-fetch-site", ["none"])[0] in ("same-origin", "none")


def _cookies(values: Iterable[str]) -> list[str]:
    found: list[str] = []
    for value in values:
        try:
            cookies = SimpleCookie(value)
        except CookieError:
            continue
        if COOKIE in cookies:
            found.append(cookies[COOKIE].value)
    return found


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message.get("headers", [])}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in given]
            message = {**message, "headers": [*message.get("headers", []), *more]}
        await send(message)

    return wrapped


async def _answer(send: Send, status: int, sentence: str, location: str | None = None) -> None:
    body = json.dumps({"error": sentence}).encode()
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="loadgen"'))
    if location:
        headers.append((b"location", location.encode("latin-1")))
    if status == 413:
        # What is left of the body is not read, so the connection cannot be used again.
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
