"""From a profile to a server: the real engine core behind the real API, and the command as a child process."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.profiles.loader import load_profile, parse_profile
from loadgen.profiles.model import ServerProfile, SpeculativeConfig
from loadgen.simulator.launch import NOISES, Launch, LaunchOptions, launch
from loadgen.simulator.server import SimulatorServer

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "server_profiles"
FAST = LaunchOptions(hardware="h200-8b", noise="off")
CODE = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return add(a, a)\n"
EDIT = [{"role": "user", "content": f"Rewrite this code, but rename add to plus.\n```python\n{CODE}\n```"}]


def parts_of(text: str, options: LaunchOptions = FAST) -> Launch:
    return launch(parse_profile(text, name="test", label="test.yaml"), options)


@pytest.fixture
def serve_launch() -> Any:
    """Runs a launched server on a free port; gives (server, ask), where ask is the conftest client."""

    @contextlib.asynccontextmanager
    async def run(parts: Launch) -> AsyncIterator[tuple[SimulatorServer, int]]:
        server = SimulatorServer(parts.core, parts.times, parts.answers, parts.spec)
        try:
            yield server, await server.start("127.0.0.1", 0)
        finally:
            await server.stop()

    return run


async def ask(port: int, raw: bytes, http_reply: Any) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        return await asyncio.wait_for(http_reply(reader), 60)
    finally:
        writer.close()


@pytest.mark.parametrize("name", sorted(path.stem for path in PROFILES.glob("*.yaml")))
async def test_every_shipped_profile_serves(name: str, serve_launch: Any, http_request: Any, http_reply: Any) -> None:
    parts = launch(load_profile(name, PROFILES), FAST)
    body = {"messages": EDIT, "max_tokens": 40, "temperature": 0}
    async with serve_launch(parts) as (_, port):
        reply = await ask(port, http_request("POST", "/v1/chat/completions", body), http_reply)
        text = (await ask(port, http_request("GET", "/metrics"), http_reply)).body.decode()
    assert reply.status == 200
    assert reply.json["choices"][0]["message"]["content"]
    assert ("vllm:spec_decode_num_drafts_total" in text) == (parts.core.config.k > 0)


async def test_the_text_is_the_same_for_all_profiles(serve_launch: Any, http_request: Any, http_reply: Any) -> None:
    body = {"messages": EDIT, "max_tokens": 60, "temperature": 0, "stream": True, "return_token_ids": True}
    answers = []
    for name in ("baseline", "ngram", "eagle3"):
        async with serve_launch(launch(load_profile(name, PROFILES), FAST)) as (_, port):
            reply = await ask(port, http_request("POST", "/v1/chat/completions", body), http_reply)
        answers.append([t for e in reply.events[1:] for t in e["choices"][0]["token_ids"]])
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) > 20


async def test_counters_add_up_with_the_real_core(serve_launch: Any, http_request: Any, http_reply: Any) -> None:
    body = {"messages": EDIT, "max_tokens": 60, "temperature": 0}
    async with serve_launch(launch(load_profile("ngram", PROFILES), FAST)) as (server, port):
        raw = http_request("POST", "/v1/chat/completions", body)
        usages = [r.json["usage"] for r in await asyncio.gather(*(ask(port, raw, http_reply) for _ in range(4)))]
    value = server.stats.value
    assert value("vllm:generation_tokens") == sum(u["completion_tokens"] for u in usages)
    assert value("vllm:prompt_tokens") == sum(u["prompt_tokens"] for u in usages)
    assert value("vllm:spec_decode_num_accepted_tokens") > 0
    per_position = [value("vllm:spec_decode_num_accepted_tokens_per_pos", str(i)) for i in range(4)]
    assert sum(per_position) == value("vllm:spec_decode_num_accepted_tokens")
    assert value("vllm:prefix_cache_hits") > 0


async def test_logprobs_are_the_models_own(serve_launch: Any, http_request: Any, http_reply: Any) -> None:
    async with serve_launch(launch(load_profile("baseline", PROFILES), FAST)) as (_, port):
        body = {"prompt": "Tell me about rivers.", "max_tokens": 8, "temperature": 0, "logprobs": 5}
        reply = await ask(port, http_request("POST", "/v1/completions", body), http_reply)
    found = reply.json["choices"][0]["logprobs"]
    for value, top in zip(found["token_logprobs"], found["top_logprobs"], strict=True):
        assert value == max(top.values())
        assert len(top) == 5


async def test_suffix_with_a_schedule_dies_like_vllm(serve_launch: Any, http_request: Any, http_reply: Any) -> None:
    # Profiles refuse this pair; vLLM does not, so the simulator must know what then happens.
    schedule = ((1, 1, 8), (2, 256, 0))
    profile = ServerProfile("suffix", {}, SpeculativeConfig("suffix", 8, {"method": "suffix"}, schedule))
    parts = launch(profile, FAST)
    body = {"messages": EDIT, "max_tokens": 200, "temperature": 0, "ignore_eos": True}
    async with serve_launch(parts) as (server, port):
        raw = http_request("POST", "/v1/chat/completions", body)
        replies = await asyncio.gather(*(ask(port, raw, http_reply) for _ in range(3)))
    assert server.died.is_set()
    assert {reply.status for reply in replies} == {500}
    assert replies[0].json["error"]["message"].startswith("EngineCore encountered an issue.")


def test_two_starts_have_their_own_luck_and_one_start_has_one() -> None:
    def factor(start: int) -> float:
        return parts_of("", LaunchOptions(start=start)).core._noise.start_factor

    assert factor(0) == factor(0) != factor(1)


async def test_a_taken_port_is_one_sentence(serve_launch: Any) -> None:
    async with serve_launch(parts_of("")) as (_, port):
        parts = parts_of("")
        other = SimulatorServer(parts.core, parts.times, parts.answers, parts.spec)
        with pytest.raises(UsageError, match=f"Cannot listen on 127.0.0.1:{port}"):
            await other.start("127.0.0.1", port)


def test_fingerprints_tell_configurations_apart() -> None:
    prints = {parts_of(text).spec.fingerprint for text in ("", "max-num-seqs: 8", "no-async-scheduling: true")}
    assert len(prints) == 3
    assert parts_of("").spec.fingerprint == parts_of("").spec.fingerprint


def test_options_win_over_the_file() -> None:
    options = LaunchOptions(hardware="h200-8b", model="my/model", max_num_seqs=4, max_model_len=1000)
    parts = parts_of("max-num-seqs: 8\nmax-model-len: 2000", options)
    assert (parts.core.config.max_num_seqs, parts.core.config.max_model_len) == (4, 1000)
    assert (parts.spec.model_id, parts.spec.root) == ("my/model", "my/model")


def test_per_request_metrics_setting() -> None:
    spec = "speculative-config: {method: ngram, num_speculative_tokens: 2}\n"
    assert parts_of(spec + "per-request-spec-decode-metrics: summary").spec.spec_metrics == "summary"
    with pytest.raises(UsageError, match="needs a speculative-config"):
        parts_of("per-request-spec-decode-metrics: summary")
    with pytest.raises(UsageError, match="summary or detailed"):
        parts_of(spec + "per-request-spec-decode-metrics: lots")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LaunchOptions(hardware="abacus"), "h200-8b"),
        (LaunchOptions(noise="loud"), ", ".join(NOISES)),
        (LaunchOptions(max_model_len=10_000_000), "max-model-len"),
    ],
)
def test_wrong_options_name_the_known_ones(options: LaunchOptions, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        parts_of("", options)


@pytest.fixture
def simulate() -> Any:
    """Starts the command as a child process; gives (process, port, log so far)."""

    @contextlib.asynccontextmanager
    async def run(profile: str, *more: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int, list[str]]]:
        code = "import typer; from loadgen.commands.simulate import command; typer.run(command)"
        arguments = ["--config", str(PROFILES / f"{profile}.yaml"), "--port", "0", "--noise", "off", *more]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            code,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert process.stdout
        log: list[str] = []
        try:
            async with asyncio.timeout(60):
                while not (log and "startup complete" in log[-1]):
                    line = await process.stdout.readline()
                    assert line, "".join(log)
                    log.append(line.decode())
            port = int(re.findall(r"http://127\.0\.0\.1:(\d+)", "".join(log))[0])
            yield process, port, log
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            log += (await process.stdout.read()).decode().splitlines(keepends=True)
            await process.wait()

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_serves_and_ends_cleanly(
    simulate: Any, http_request: Any, http_reply: Any, number: signal.Signals
) -> None:
    async with simulate("ngram", "--model", "tiny") as (process, port, log):
        models = await ask(port, http_request("GET", "/v1/models"), http_reply)
        body = {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True}
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(http_request("POST", "/v1/completions", body))
        await writer.drain()
        process.send_signal(number)
        assert await asyncio.wait_for(process.wait(), 60) == 0
        writer.close()
    text = "".join(log)
    assert models.json["data"][0]["id"] == "tiny"
    assert "Traceback" not in text
    for words in (
        "'method': 'ngram'",
        "Async scheduling not supported with ngram-based speculative decoding and will be disabled",
        "using the V1 model runner instead",
        "CUDAGraphMode.FULL_AND_PIECEWISE",
        "GPU KV cache size:",
    ):
        assert words in text


async def test_the_log_tells_the_engines_room_what_runs(simulate: Any) -> None:
    from loadgen.engines.effective import effective_from_log

    async with simulate("ngram") as (_, _, log):
        found = effective_from_log("".join(log))
    async with simulate("baseline-sync") as (_, _, log):
        sync = effective_from_log("".join(log))
    assert (found["version"], found["model_runner"], found["async_scheduling"]) == ("0.32.0", "v1", False)
    assert found["graph_mode"] == "FULL_AND_PIECEWISE"
    assert found["max_model_len"] == 32768
    assert (sync["model_runner"], sync["async_scheduling"]) == ("v2", False)


async def test_a_dead_engine_ends_the_process_with_an_error(simulate: Any, http_request: Any, http_reply: Any) -> None:
    async with simulate("baseline", "--fault", "engine-death:0") as (process, port, _):
        reply = await ask(port, http_request("POST", "/v1/completions", {"prompt": "x"}), http_reply)
        assert reply.status == 500
        assert await asyncio.wait_for(process.wait(), 60) == 1


@pytest.mark.parametrize(("fault", "complete"), [("reset", False), ("truncated", False), ("early-end", True)])
async def test_faults_of_the_command(
    simulate: Any, http_request: Any, http_reply: Any, fault: str, complete: bool
) -> None:
    """The command runs on uvloop, whose sockets are not asyncio's."""
    async with simulate("baseline", "--fault", fault) as (_, port, log):
        body = {"prompt": "x", "max_tokens": 50, "ignore_eos": True, "stream": True}
        reply = await ask(port, http_request("POST", "/v1/completions", body), http_reply)
        assert (await ask(port, http_request("GET", "/health"), http_reply)).status == 200
    assert reply.complete == complete
    assert len(reply.events) <= 3
    assert b"[DONE]" not in reply.body
    assert "Traceback" not in "".join(log)


async def test_thirty_two_fast_streams_keep_their_pace(simulate: Any, http_request: Any, http_reply: Any) -> None:
    """32 requests at about 200 tokens/s each arrive whole, with the engine's own count of steps."""
    async with simulate("baseline", "--hardware", "h200-8b") as (_, port, _):
        usage = {"include_usage": True}
        body = {"prompt": "x", "max_tokens": 100, "ignore_eos": True, "stream": True, "stream_options": usage}
        raw = http_request("POST", "/v1/completions", body)
        replies = await asyncio.gather(*(ask(port, raw, http_reply) for _ in range(32)))
    assert [reply.events[-1]["usage"]["completion_tokens"] for reply in replies] == [100] * 32
    assert {len(reply.events) for reply in replies} == {101}
