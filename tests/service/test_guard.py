"""Who may ask, from where, and how much; what goes out with every answer."""

from collections.abc import Callable, Iterator

import httpx2
import pytest

from loadgen.service.guard import cookie_value

TOKEN = "a-secret-of-thirty-two-characters"
Serve = Callable[..., httpx2.Client]


@pytest.fixture
def locked(serve: Serve) -> httpx2.Client:
    return serve(token=TOKEN)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8088", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_rebound_name_is_refused(serve: Serve, host: str) -> None:
    answer = serve().get("/api/runs", headers={"host": host})
    assert answer.status_code in (400, 403)
    assert answer.headers["content-type"] != "text/html; charset=utf-8"


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1", "[::1]:8088", "box.lan"])
def test_own_names_are_answered(serve: Serve, host: str) -> None:
    assert serve(hosts=frozenset({"box.lan"})).get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_sites_page_changes_nothing(serve: Serve, headers: dict[str, str]) -> None:
    client = serve()
    assert client.post("/api/runs", json={}, headers=headers).status_code == 403
    assert client.get("/api/runs").json()["total"] == 0


def test_the_own_page_may_change_things(serve: Serve) -> None:
    client = serve()
    origin = str(client.base_url).rstrip("/")
    answer = client.post("/api/runs", json={"profiles": ["nonsense"]}, headers={"origin": origin})
    assert answer.status_code == 422


def test_a_form_of_another_type_starts_nothing(serve: Serve) -> None:
    client = serve()
    answer = client.post("/api/runs", content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 422
    assert client.get("/api/runs").json()["total"] == 0


@pytest.mark.parametrize("path", ["/api/runs", "/api/options", "/openapi.json", "/metrics", "/runs/x/report.html"])
def test_everything_but_health_needs_the_token(locked: httpx2.Client, path: str) -> None:
    assert locked.get(path).status_code == 401
    assert locked.get(path, headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401
    assert locked.get(path, headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
    assert locked.get(f"{path}?token={TOKEN}").status_code == 401
    assert locked.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code in (200, 404)
    assert locked.get("/health").status_code == 200


def test_open_metrics_are_metrics_alone(serve: Serve) -> None:
    client = serve(token=TOKEN, open_metrics=True)
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics/../api/runs").status_code == 401


def test_a_browser_is_led_to_the_log_in_and_back(locked: httpx2.Client) -> None:
    answer = locked.get("/run/2026?x=1", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/run/2026")
    assert locked.get("/login").status_code == 200
    assert locked.get("/static/app.css").status_code == 200
    assert locked.post("/api/login", json={"token": "wrong"}).status_code == 401
    cookie = locked.post("/api/login", json={"token": TOKEN}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert locked.get("/api/runs").status_code == 200
    locked.post("/api/logout")
    assert locked.get("/api/runs").status_code == 401


def test_a_cookie_of_another_token_is_worth_nothing(locked: httpx2.Client) -> None:
    forged = {"cookie": f"loadgen={cookie_value('another-secret-of-some-length')}"}
    assert locked.get("/api/runs", headers=forged).status_code == 401


def test_a_large_body_is_refused_whether_or_not_it_tells_its_length(serve: Serve) -> None:
    client = serve(max_body_bytes=1000)
    assert client.post("/api/runs", content=b"x" * 2000).status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    answer = client.post("/api/runs", content=chunks(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/runs", "/no-such-page", "/static/app.js", "/docs"])
def test_every_answer_carries_the_headers(serve: Serve, path: str) -> None:
    headers = serve().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers
