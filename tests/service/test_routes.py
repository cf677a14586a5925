"""The API as a client sees it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loadgen.store.folder import RunFolder

MakeRun = Callable[..., RunFolder]
Serve = Callable[..., httpx2.Client]
Until = Callable[[Callable[[], bool]], None]
BODY = {"workloads": ["chat"], "levels": [1, 4], "repeats": 1, "window_s": 0.2, "engine": "simulator"}


def stream(client: httpx2.Client, run: str) -> Iterator[tuple[str, Any]]:
    with client.stream("GET", f"/api/runs/{run}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                yield name, json.loads(line[6:])


def test_a_sweep_is_started_watched_and_completed(serve: Serve, runs: Path) -> None:
    client = serve()
    answer = client.post("/api/runs", json=BODY)
    assert answer.status_code == 202
    run = answer.json()["run"]
    assert answer.headers["location"] == f"/api/runs/{run}"
    assert answer.json()["cells_planned"] == 4
    seen: list[str] = []
    for name, data in stream(client, run):
        if name == "status":
            seen.append(data["state"])
            if data["remaining_s"] is not None:
                (runs / run / "go").touch()
        last = name
    assert last == "end"
    assert seen[-1] == "completed"
    assert "running" in seen
    assert client.get(f"/api/runs/{run}").json()["state"] == "completed"
    assert client.post(f"/api/runs/{run}/cancel").status_code == 409
    assert client.post(f"/api/runs/{run}/resume").status_code == 409
    manifest = json.loads((runs / run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["argv"][:3] == ["sweep", "--profile", "ngram"]


def test_cancel_then_resume(serve: Serve, until: Until) -> None:
    client = serve()
    run = client.post("/api/runs", json=BODY).json()["run"]

    def state() -> str:
        return str(client.get(f"/api/runs/{run}").json()["state"])

    assert client.post(f"/api/runs/{run}/cancel").status_code == 202
    until(lambda: state() == "cancelled")
    assert client.post(f"/api/runs/{run}/resume").json()["state"] in ("queued", "running")
    until(lambda: state() == "running")


def test_cells_come_over_the_stream(serve: Serve, make_run: MakeRun) -> None:
    run = make_run(("queued", "started", "completed"))
    cell = {
        "key": {
            "profile": "<b>",
            "condition": {"workload": "chat", "input_tokens": 60, "temperature": 0.0},
            "level": 1,
            "repeat": 0,
        },
        "output_tokens_per_s": 10.0,
        "ttft_s": {},
        "tpot_s": {},
    }
    (run.path / "cells.jsonl").write_text((json.dumps(cell) + "\n") * 3, encoding="utf-8")
    events = list(stream(serve(), run.run_id))
    assert [name for name, _ in events] == ["cells", "status", "end"]
    assert len(events[0][1]) == 3


def test_an_open_stream_does_not_hold_a_stopping_service_up(serve: Serve, services: ExitStack, until: Until) -> None:
    client = serve()
    run = client.post("/api/runs", json=BODY).json()["run"]
    seen: list[str] = []

    def read() -> None:
        with httpx2.Client(base_url=client.base_url, timeout=60) as own:
            for name, _ in stream(own, run):
                seen.append(name)  # one by one: the test waits for the first

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: client.get(f"/api/runs/{run}").json()["state"] == "running" and bool(seen))
    services.close()
    thread.join()
    assert "end" not in seen  # the run has not ended: the page asks again


def test_the_list_is_filtered_and_paged(serve: Serve, make_run: MakeRun) -> None:
    chat, code = make_run(("started", "completed")), make_run(("started",), workloads=["code-edit"])
    (chat.path / "summary.json").write_text(json.dumps({"answer": "It pays.", "conditions": []}), encoding="utf-8")
    (code.path.parent / "broken").mkdir()
    (code.path.parent / "broken" / "manifest.json").write_text("{", encoding="utf-8")
    client = serve()

    def names(**query: str | int) -> list[str]:
        return [row["run"] for row in client.get("/api/runs", params=query).json()["runs"]]

    assert names() == [code.run_id, chat.run_id]
    assert names(q="CHAT simulated") == [chat.run_id]
    assert names(q="it pays") == [chat.run_id]
    assert names(q="nowhere") == []
    assert names(state="completed") == [chat.run_id]
    assert names(limit=1, offset=1) == [chat.run_id]
    whole = client.get("/api/runs").json()
    assert whole["unreadable"] == ["broken"]
    assert whole["runs"][1]["answer"] == "It pays."
    assert client.get("/api/runs", params={"limit": 0}).status_code == 422


@pytest.mark.parametrize("path", ["", "/summary", "/events"])
def test_unknown_runs_are_404(serve: Serve, path: str) -> None:
    answer = serve().get(f"/api/runs/2026-nothing{path}")
    assert answer.status_code == 404
    assert set(answer.json()) == {"error"}


def test_a_run_without_an_answer_yet_says_so(serve: Serve, make_run: MakeRun) -> None:
    run = make_run(("started",))
    client = serve()
    assert "no summary yet" in client.get(f"/api/runs/{run.run_id}/summary").json()["error"]
    (run.path / "summary.json").write_text('{"answer": "It pays."}', encoding="utf-8")
    assert client.get(f"/api/runs/{run.run_id}/summary").json() == {"answer": "It pays."}


def test_refusals_are_one_sentence(serve: Serve) -> None:
    client = serve()
    wrong = client.post("/api/runs", json={"levels": [1, 0]})
    assert (wrong.status_code, set(wrong.json())) == (422, {"error"})
    assert wrong.json()["error"].startswith("levels.1: ")
    unknown = client.post("/api/runs", json={"workloads": ["poems"]})
    assert "take one of code-edit" in unknown.json()["error"]
    assert client.post("/api/runs", content=b"{", headers={"content-type": "application/json"}).status_code == 422
    odd = client.post("/api/runs", content=b"\xff", headers={"content-type": "application/json"})
    assert (odd.status_code, odd.json()["error"][:15]) == (400, "The body is no ")
    other = client.put("/api/runs", json={})
    assert (other.status_code, other.headers["allow"]) == (405, "GET, POST")


def test_options_name_what_there_is(serve: Serve) -> None:
    options = serve(servers=("http://127.0.0.1:8000",)).get("/api/options").json()
    assert options["profiles"][0]["name"] == "baseline"
    assert "chat" in [workload["name"] for workload in options["workloads"]]
    assert "url" in [engine["name"] for engine in options["engines"]]
    assert options["needs_token"] is False


def test_every_file_of_the_page_is_served_and_asks_no_other_host(serve: Serve) -> None:
    client = serve()
    static = Path("loadgen/service/static")
    assert client.get("/static/frame.html").status_code == 404  # what all pages have, and no page
    for path in static.iterdir():
        if path.name == "frame.html":
            continue
        answer = client.get(f"/static/{path.name}")
        assert answer.status_code == 200
        if path.suffix == ".html":
            assert answer.text.startswith("<!doctype html>")
            assert "{%" not in answer.text
        else:
            assert answer.content == path.read_bytes()
        again = client.get(f"/static/{path.name}", headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304
        text = answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text
    for page in ("/", "/run/x", "/compare", "/plan", "/docs", "/login"):
        assert client.get(page).headers["content-type"].startswith("text/html")
    assert client.get("/static/plotly-basic.min.js").status_code == 200


def test_metrics_are_prometheus_text(serve: Serve) -> None:
    answer = serve().get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")


def test_a_plan_needs_a_measured_run(serve: Serve, make_run: MakeRun) -> None:
    client = serve()
    path = f"/api/runs/{make_run().run_id}/plan"
    assert client.post(path, json={"slos": []}).status_code == 422
    odd = client.post(path, json={"slos": ["ttft_p99=500ms"], "rate": "--json"})
    assert "no rate" in odd.json()["error"]
    refused = client.post(path, json={"slos": ["nothing_p99=500ms"]})
    assert (refused.status_code, "no objective" in refused.json()["error"]) == (422, True)
    assert client.post("/api/runs/none/plan", json={"slos": ["ttft_p99=500ms"]}).status_code == 404


def test_a_bug_is_one_sentence_too(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.service.routes_service.list_profiles", lambda folder: folder.nothing)
    answer = serve().get("/api/options")
    assert (answer.status_code, answer.json()) == (500, {"error": "The service has a fault; its log tells which."})
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_two_runs_are_compared_and_put_on_one_page(serve: Serve, make_run: MakeRun) -> None:
    first, second = make_run(("started",)), make_run(("started",), seed=7)
    client = serve()
    names = {"before": first.run_id, "after": second.run_id}
    found = client.get("/api/compare", params=names).json()
    assert [difference["field"] for difference in found["differences"]] == ["seed"]
    assert client.get("/api/compare", params=names | {"after": first.run_id}).status_code == 422
    assert client.get("/api/compare", params=names | {"after": "../etc"}).status_code == 404
    page = client.get("/side-by-side", params={"run": [first.run_id, second.run_id]})
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert "<h1" in page.text
    assert client.get("/side-by-side", params={"run": [first.run_id, first.run_id]}).status_code == 422
