"""A finished run as time series, and on its way to Prometheus."""

import gzip
import math
import re
import shutil
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from loadgen.commands.replay_samples import replay_series, run_info
from loadgen.commands.replay_write import Series, open_metrics, remote_write, snappy
from loadgen.errors import UsageError
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.shape import ClientHealth
from loadgen.load.summary import Distribution
from loadgen.metrics.model import CounterDelta, GaugeSample, GaugeSummary
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellKey, CellResult, Condition, Manifest

BEGAN = datetime.fromisoformat("2026-01-01T00:00:00+00:00").timestamp()
KEY = CellKey("ngram", Condition("code-edit", 300, 0.0), 4, 0)
NOTHING = Distribution(0)


def body(tokens: float) -> bytes:
    return (
        f'vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}\n'
        f'vllm:time_to_first_token_seconds_bucket{{engine="0",le="+Inf",model_name="m"}} {tokens / 10}\n'
        'vllm:cache_config_info{engine="0"} 1\n'
    ).encode()


@pytest.fixture
def run(tmp_path: Path, manifest: Manifest) -> RunFolder:
    """One cell: scrapes at 10, 12, 14 and 16 s after the beginning; 100 tokens a second in the window."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.write_manifest(replace(manifest, run_id="run", created_at="2026-01-01T00:00:00.000Z"))
    moments = {"idle-before": (10, 0), "window-open": (12, 50), "window-close": (14, 250), "idle-after": (16, 300)}
    (folder.path / "scrapes").mkdir()
    for moment, (second, tokens) in moments.items():
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(KEY))
        packed = gzip.compress(body(tokens), mtime=int(BEGAN) + second)
        (folder.path / "scrapes" / f"{name}-{moment}.txt.gz").write_bytes(packed)
    # The client's monotonic clock stood at 500 s at idle-before.
    samples = tuple(GaugeSample(500.0 + at, 4.0, 0.0, 0.1, 0.01) for at in (0.0, 1.0, 2.0))
    folder.append_gauges(KEY, samples)
    for outcome in (Outcome.OK, Outcome.TIMEOUT):
        record = RequestRecord("p", 0, outcome, 502.0, 503.2, first_token_s=502.5, last_token_s=503.1, output_tokens=61)
        folder.append_request(KEY, record)
    folder.append_cell(
        CellResult(
            key=KEY,
            order=0,
            started_at="2026-01-01T00:00:09.000Z",
            window_s=2.0,
            output_tokens_per_s=100.0,
            requests_per_s=1.0,
            outcomes={"ok": 1},
            ttft_s=NOTHING,
            tpot_s=NOTHING,
            e2e_s=NOTHING,
            chunk_gap_s=NOTHING,
            output_tokens=NOTHING,
            prompt_tokens=NOTHING,
            client=ClientHealth(0.001, 0.1, 4.0, 0.0),
            window=CounterDelta(2.0),
            idle=CounterDelta(6.0),
            gauges=GaugeSummary(0),
            client_tokens_total=300,
        )
    )
    folder.close()
    return folder


def points(run: RunFolder, name: str, **labels: str) -> dict[float, float]:
    """Seconds since the beginning → value."""
    series = replay_series(run, [run_info(run.manifest(), "m")])
    (found,) = [one for one in series if one.name == name and labels.items() <= one.labels.items()]
    return {at / 1000 - BEGAN: value for at, value in found.points}


def test_counters_are_drawn_between_scrapes_at_the_cells_own_times(run: RunFolder) -> None:
    tokens = points(run, "vllm:generation_tokens_total", instance="ngram", job="replay", model_name="m")
    assert tokens == {11.0: 25.0, 12.0: 50.0, 13.0: 150.0, 14.0: 250.0, 15.0: 275.0, 16.0: 300.0}


def test_what_no_dashboard_reads_stays_out(run: RunFolder) -> None:
    assert "vllm:cache_config_info" not in {one.name for one in replay_series(run, [])}


def test_gauges_come_on_the_wall_clock(run: RunFolder) -> None:
    running = points(run, "vllm:num_requests_running", instance="ngram")
    assert running == {10.0: 4.0, 11.0: 4.0, 12.0: 4.0, 16.0: 0.0}


def test_requests_count_from_zero(run: RunFolder) -> None:
    where = {"profile": "ngram", "workload": "code-edit", "concurrency": "4"}
    assert points(run, "loadgen_requests_total", outcome="ok", **where) == {13.0: 0.0, 14.0: 1.0}
    assert points(run, "loadgen_requests_total", outcome="timeout", **where) == {14.0: 1.0}
    assert points(run, "loadgen_tpot_seconds_count", **where) == {13.0: 0.0, 14.0: 1.0}
    assert points(run, "loadgen_tpot_seconds_sum", **where)[14.0] == pytest.approx(0.01)


def test_progress_and_level(run: RunFolder) -> None:
    assert points(run, "loadgen_run_cells_measured") == {0.0: 0.0, 15.0: 0.0, 30.0: 1.0}
    level = points(run, "loadgen_current_concurrency", profile="ngram")
    assert [level[float(second)] for second in range(11, 17)] == [4.0] * 6
    assert math.isnan(level[max(level)])


def test_a_restarted_server_is_not_drawn_through(run: RunFolder) -> None:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(KEY))
    path = run.path / "scrapes" / f"{name}-window-close.txt.gz"
    path.write_bytes(gzip.compress(body(20), mtime=int(BEGAN) + 14))
    assert sorted(points(run, "vllm:generation_tokens_total")) == [11.0, 12.0, 15.0, 16.0]


def test_a_cell_without_its_scrapes_is_passed_over(run: RunFolder) -> None:
    for path in (run.path / "scrapes").iterdir():
        path.unlink()
    names = {one.name for one in replay_series(run, [])}
    assert not any(name.startswith("vllm:") for name in names)
    assert "loadgen_run_cells_planned" in names


class Receiver(BaseHTTPRequestHandler):
    """Takes one write, as the answer of its server says."""

    def do_POST(self) -> None:
        code, text = self.server.answer  # type: ignore[attr-defined]  # set by the fixture
        self.server.got = (self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))  # type: ignore[attr-defined]  # the same
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        """Says nothing."""


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def unsnappy(data: bytes) -> bytes:
    """Snappy's block format, literals of the two-byte length alone."""
    size, shift, at = 0, 0, 0
    while True:
        byte = data[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    out = b""
    while at < len(data):
        assert data[at] == 0xF4
        length = struct.unpack("<H", data[at + 1 : at + 3])[0] + 1
        out += data[at + 3 : at + 3 + length]
        at += 3 + length
    assert len(out) == size
    return out


@pytest.mark.parametrize("size", [0, 1, 127, 128, 65536, 200_001])
def test_snappy_gives_back_what_went_in(size: int) -> None:
    data = bytes(index * 7 % 251 for index in range(size))
    assert zlib.crc32(unsnappy(snappy(data))) == zlib.crc32(data)


def test_remote_write_sends_sorted_labels_and_samples(receiver: HTTPServer) -> None:
    receiver.answer = (204, b"")  # type: ignore[attr-defined]  # the server's own note
    url = f"http://127.0.0.1:{receiver.server_port}"
    assert remote_write([Series("up", {"zone": "b", "area": "a", "empty": ""}, [(1000, 1.5)])], url) == 1
    path, headers, data = receiver.got  # type: ignore[attr-defined]  # the same
    assert (path, headers["Content-Encoding"]) == ("/api/v1/write", "snappy")
    message = unsnappy(data)
    places = [message.index(word) for word in (b"__name__", b"up", b"area", b"zone")]
    assert places == sorted(places)
    assert b"empty" not in message
    assert struct.pack("<d", 1.5) + b"\x10\xe8\x07" in message


@pytest.mark.parametrize(
    ("code", "text", "word"),
    [
        (404, b"remote write receiver needs to be enabled", "--web.enable-remote-write-receiver"),
        (400, b"out of bounds", "out_of_order_time_window"),
        (500, b"odd", "500"),
    ],
)
def test_a_refusal_names_its_cure(receiver: HTTPServer, code: int, text: bytes, word: str) -> None:
    receiver.answer = (code, text)  # type: ignore[attr-defined]  # the server's own note
    with pytest.raises(UsageError, match=word):
        remote_write([Series("up", {}, [(0, 0.0)])], f"http://127.0.0.1:{receiver.server_port}")


def test_nobody_there() -> None:
    with pytest.raises(UsageError, match="does not answer"):
        remote_write([Series("up", {}, [(0, 0.0)])], "http://127.0.0.1:9")


def test_open_metrics_text(tmp_path: Path) -> None:
    path = tmp_path / "out.om"
    series = [Series("b", {"k": 'a"\\\n'}, [(1500, math.inf), (2500, math.nan)]), Series("a", {}, [(0, 0.1)])]
    assert open_metrics(series, path) == 3
    assert path.read_text() == (
        "# TYPE a unknown\na{} 0.1 0.000\n"
        '# TYPE b unknown\nb{k="a\\"\\\\\\n"} +Inf 1.500\nb{k="a\\"\\\\\\n"} NaN 2.500\n# EOF\n'
    )


def test_the_command_writes_a_file(run: RunFolder, tmp_path: Path) -> None:
    words = ["replay", str(run.path), "--output", str(tmp_path / "run.om")]
    done = subprocess.run([sys.executable, "-m", "loadgen", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "samples of run are in" in done.stdout
    assert (tmp_path / "run.om").read_text().endswith("# EOF\n")
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here; `apt-get install prometheus`")
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(tmp_path / "run.om"), str(tmp_path / "tsdb")]
    made = subprocess.run(blocks, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert list((tmp_path / "tsdb").glob("*/meta.json"))
