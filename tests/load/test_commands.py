"""`loadgen load` and `loadgen inspect stream` as a user runs them, in a process of their own."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli import main
from loadgen.errors import ServerError, UsageError
from loadgen.load.preflight import ServedModel, preflight
from loadgen.load.target import Target

Here = Callable[..., tuple[int, str, str]]
CAPTURES = Path(__file__).parent.parent / "data" / "captures"
KEYS = {"ttft_s", "tpot_s", "e2e_s", "chunk_gap_s", "output_tokens_per_s", "outcomes", "client", "server", "simulated"}


def refuse(name: str) -> None:
    raise AssertionError(f"{name} in JSON")


async def spawn(*arguments: str) -> asyncio.subprocess.Process:
    environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import sys; from loadgen.cli import main; main()",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )


async def loadgen(*arguments: str) -> tuple[int, str, str]:
    process = await spawn(*arguments)
    async with asyncio.timeout(60):
        out, error = await process.communicate()
    assert process.returncode is not None
    assert b"Traceback" not in error, error.decode()
    return process.returncode, out.decode(), error.decode()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Runs the command line in this process: for what needs no server."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["loadgen", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def openai(chunks: Any) -> Any:
    """A script that serves `/v1/models`, `/metrics` and completions of 6 tokens."""
    metrics = {"tokens": 0}

    async def script(seen: Any, reply: Any) -> None:
        if seen.path == "/v1/models":
            await reply.whole(200, b'{"object":"list","data":[{"id":"srv","max_model_len":4096}]}')
        elif seen.path == "/metrics":
            text = f'vllm:generation_tokens_total{{engine="0",model_name="srv"}} {metrics["tokens"]}\n'
            await reply.whole(200, text.encode(), "text/plain")
        elif seen.path.startswith("/v1/"):
            await reply.chunked(chunks.reply(6), gap_s=0.003)
            metrics["tokens"] += 6
        else:
            await reply.whole(404, b'{"error":"no such page"}')

    return script


def sent(server: Any) -> list[Any]:
    return [seen for seen in server.seen if "completions" in seen.path]


async def test_load_gives_the_published_json_and_never_exceeds_its_requests(start_server: Any, openai: Any) -> None:
    server = await start_server(openai)
    code, out, error = await loadgen(
        "load", "--url", server.url, "--concurrency", "4", "--requests", "24", "--max-tokens", "8", "--json"
    )
    assert code == 0, error
    found = json.loads(out, parse_constant=refuse)
    assert set(found) == KEYS
    assert set(found["ttft_s"]) == {"n", "mean", "p50", "p90", "p99", "max"}
    assert found["ttft_s"]["n"] > 5
    assert found["outcomes"]["ok"] == 24
    assert found["outcomes"]["cancelled"] == found["outcomes"]["empty"] == 0
    assert set(found["client"]) == {"loop_lag_p99_s", "cpu_share", "in_flight_mean"}
    assert found["server"]["generation_tokens"] > 0
    assert found["output_tokens_per_s"] > 0
    assert len(sent(server)) == 24
    assert server.most_active <= 5
    assert len({seen.body for seen in sent(server)}) == 24
    assert {seen.json()["model"] for seen in sent(server)} == {"srv"}


async def test_a_simulator_behind_the_url_is_said(start_server: Any, openai: Any) -> None:
    async def simulator(seen: Any, reply: Any) -> Any:
        if seen.path == "/metrics":
            return await reply.whole(200, b"vllm:num_requests_running 0\nloadgen_sim_steps_total 4\n", "text/plain")
        return await openai(seen, reply)

    server = await start_server(simulator)
    words = ("load", "--url", server.url, "--concurrency", "2", "--requests", "4", "--max-tokens", "8")
    code, out, error = await loadgen(*words)
    assert code == 0, error
    assert out.startswith("SIMULATED: a simulator answers there")
    code, out, _ = await loadgen(*words, "--json")
    assert json.loads(out)["simulated"] is True


async def test_open_loop_prints_a_table(start_server: Any, openai: Any) -> None:
    server = await start_server(openai)
    code, out, _ = await loadgen(
        "load", "--url", f"{server.url}/v1/", "--requests", "12", "--stages", "0.1x60,1x20", "--arrival", "constant"
    )
    assert code == 0
    assert "ttft" in out
    assert "ok 12" in out
    assert "tokens/s" in out
    assert len(sent(server)) == 12


async def test_load_over_two_processes_sends_each_prompt_once(start_server: Any, openai: Any) -> None:
    server = await start_server(openai)
    code, out, error = await loadgen(
        "load", "--url", server.url, "--concurrency", "4", "--requests", "24", "--workers", "2", "--json"
    )
    assert code == 0, error
    found = json.loads(out, parse_constant=refuse)
    assert set(found) == KEYS
    assert found["outcomes"]["ok"] == 24
    assert len({seen.body for seen in sent(server)}) == 24


async def test_a_trace_gives_arrivals_and_lengths_and_its_warnings_are_shown(
    start_server: Any, openai: Any, tmp_path: Path
) -> None:
    trace = tmp_path / "mooncake.jsonl"
    rows = [{"timestamp": 40 * i, "input_length": 4 if i == 0 else 600, "output_length": 10 + i} for i in range(5)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    server = await start_server(openai)
    code, out, error = await loadgen("load", "--url", server.url, "--trace", str(trace))
    assert code == 0, error
    assert [seen.json()["max_tokens"] for seen in sent(server)] == [10, 11, 12, 13, 14]
    assert "output length  mean 6.0" in out
    assert "were lengthened" in error


async def test_lengths_are_drawn_per_prompt_and_follow_from_the_seed(start_server: Any, openai: Any) -> None:
    caps = []
    for _ in range(2):
        server = await start_server(openai)
        drawn = ("--output-lengths", "uniform:4-40", "--input-lengths", "uniform:200-400", "--ignore-eos")
        code, _, error = await loadgen("load", "--url", server.url, "--concurrency", "2", "--requests", "8", *drawn)
        assert code in (0, 3), error
        caps.append(sorted((seen.json()["max_tokens"], len(seen.body)) for seen in sent(server)))
        assert {seen.json()["ignore_eos"] for seen in sent(server)} == {True}
    assert caps[0] == caps[1]
    assert len({cap for cap, _ in caps[0]}) > 3
    assert all(4 <= cap <= 40 for cap, _ in caps[0])


async def test_c59_wrong_model_name_is_refused_with_both_names(start_server: Any, openai: Any) -> None:
    server = await start_server(openai)
    code, out, error = await loadgen("load", "--url", server.url, "--model", "org/name")
    assert code == 2
    assert out == ""
    assert "srv" in error
    assert "org/name" in error
    assert not sent(server)


async def test_c35_all_failed_is_no_verdict_with_an_error_table(start_server: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        if seen.path == "/v1/models":
            await reply.whole(200, b'{"data":[{"id":"srv"}]}')
        else:
            await reply.whole(404, b'{"error":{"message":"gone | away","code":404}}')

    server = await start_server(script)
    code, out, _ = await loadgen("load", "--url", server.url, "--concurrency", "2", "--requests", "20")
    assert code == 3
    assert "gone | away" in out
    assert "not_found 20" in out
    assert "n/a" in out


async def test_c60_ctrl_c_gives_what_was_measured(start_server: Any, chunks: Any, openai: Any, until: Any) -> None:
    async def script(seen: Any, reply: Any) -> None:
        if "completions" in seen.path:
            await reply.chunked([chunks.text("x")] * 2000, gap_s=0.01)
        await openai(seen, reply)

    server = await start_server(script)
    process = await spawn("load", "--url", server.url, "--concurrency", "8", "--requests", "16", "--json")
    await until(lambda: len(sent(server)) == 8)
    await asyncio.sleep(0.1)
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(60):
        out, error = await process.communicate()
    assert process.returncode == 130, error.decode()
    found = json.loads(out, parse_constant=refuse)
    assert found["interrupted"] is True
    assert found["outcomes"]["cancelled"] == 8
    assert sum(found["outcomes"].values()) == 8
    assert set(found) == KEYS | {"interrupted"}
    await until(lambda: server.disconnects == 8 and server.open_now == 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--url", "http://127.0.0.1:9"), "does not answer"),
        (("--url", "ftp://127.0.0.1"), "http://HOST:PORT"),
        (("--url", "http://127.0.0.1:9", "--requests", "3"), "--requests 3 cannot keep --concurrency 32"),
        (("--url", "http://127.0.0.1:9", "--rate", "1", "--arrival", "monday"), "poisson or constant"),
        (("--url", "http://127.0.0.1:9", "--rate", "1", "--stages", "1x1"), "give one of them"),
        (("--url", "http://127.0.0.1:9", "--stages", "fast"), "30x2,30x8"),
        (("--url", "http://127.0.0.1:9", "--trace", "missing.jsonl"), "cannot be read"),
        (("--url", "http://127.0.0.1:9", "--output-lengths", "many"), "tells no length"),
        (("--url", "http://127.0.0.1:9", "--rate", "3", "--workers", "2"), "splits a closed loop"),
    ],
)
def test_wrong_usage_is_one_sentence(here: Here, arguments: tuple[str, ...], says: str) -> None:
    code, out, error = here("load", *arguments)
    assert code in (2, 3)
    assert out == ""
    assert says in error
    assert error.count("\n") == 1


async def test_preflight_takes_the_first_model_and_names_what_is_wrong(start_server: Any, openai: Any) -> None:
    async def locked(seen: Any, reply: Any) -> None:
        await reply.whole(401, b'{"error":"Unauthorized"}')

    async def other(seen: Any, reply: Any) -> None:
        await reply.whole(200, b"<html>", "text/html")

    server = await start_server(openai)
    assert await preflight(Target(server.url, "")) == ServedModel("srv", 4096)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        await preflight(Target((await start_server(locked)).url, ""))
    with pytest.raises(ServerError, match="OpenAI-compatible"):
        await preflight(Target((await start_server(other)).url, ""))


def test_inspect_stream_of_every_form(here: Here) -> None:
    folder = CAPTURES / "vllm-0.26.0-h200"
    code, out, _ = here("inspect", "stream", str(folder / "ngram-cont-usage.reads.jsonl"), "--json")
    timed = json.loads(out, parse_constant=refuse)
    assert code == 0
    assert (timed["outcome"], timed["output_tokens"], timed["prompt_tokens"]) == ("ok", 96, 331)
    assert timed["finish_reason"] == "length"
    assert sum(timed["chunk_tokens"]) == 96
    assert timed["ttft_s"] > 0
    assert timed["tpot_s"] < timed["chunk_gap_s"]["mean"]
    code, out, _ = here("inspect", "stream", str(folder / "ngram-cont-usage.http"), "--json")
    untimed = json.loads(out, parse_constant=refuse)
    assert untimed["ttft_s"] is None
    assert untimed["chunk_gap_s"]["n"] == 0
    assert untimed["chunk_tokens"] == timed["chunk_tokens"]
    sse = CAPTURES / "vllm-0.32.0-cpu-ngram" / "chat-stream.sse"
    code, out, _ = here("inspect", "stream", str(sse))
    assert code == 0
    assert "output_tokens             46" in out
    assert "finish_reason             stop" in out


def test_inspect_stream_of_a_bad_stream_and_of_no_stream(here: Here, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sse"
    broken.write_bytes(b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n')
    code, out, _ = here("inspect", "stream", str(broken), "--json")
    assert code == 1
    assert json.loads(out)["outcome"] == "incomplete_stream"
    for name, text, says in (
        ("x.txt", "", "unknown ending"),
        ("y.reads.jsonl", '{"t": 1}\n', "line 1"),
        ("missing.sse", None, "cannot be read"),
    ):
        path = tmp_path / name
        if text is not None:
            path.write_text(text)
        code, _, error = here("inspect", "stream", str(path))
        assert code == 2
        assert says in error
