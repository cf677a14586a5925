"""Stored responses as Arrivals: the same parser and decoder as for live ones."""

import base64
import binascii
import json
from collections.abc import Iterable
from pathlib import Path

from loadgen.errors import UsageError
from loadgen.load.arrivals import Arrivals, End
from loadgen.load.http1 import ResponseParser


def load_stream(reads: Iterable[tuple[float, bytes]], *, http: bool) -> Arrivals:
    """Arrivals of (seconds since the send, bytes) reads. `http`: the bytes are a whole HTTP response with its head and
    framing; else a body alone. Bytes that are no HTTP give arrivals with the end `protocol`.
    """
    arrivals = Arrivals(attempts=1)
    parser = ResponseParser()
    at_s = 0.0
    for at_s, data in reads:
        if arrivals.first_byte_s is None:
            arrivals.first_byte_s = at_s
        try:
            body = parser.feed(data) if http else data
        except ValueError as error:
            arrivals.end(End.PROTOCOL, at_s, str(error))
            break
        if body:
            arrivals.add(at_s, body)
    arrivals.status, arrivals.headers = (parser.status, parser.headers) if http else (200, [])
    complete = not http or parser.complete or parser.close_delimited
    how, why = (End.COMPLETE, None) if complete else (End.CLOSED, "the file ends inside the response")
    arrivals.end(how, at_s, why)
    return arrivals


def load_file(path: Path) -> tuple[Arrivals, bool]:
    """(arrivals, whether their times are real) of an `.sse` body, an `.http` response or a `.reads.jsonl` of reads.
    UsageError for anything else.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): give an .sse, .http or .reads.jsonl file."
        ) from None
    if path.name.endswith(".jsonl"):
        return load_stream(_reads(path, data), http=True), True
    if path.suffix not in (".http", ".sse"):
        raise UsageError(f"{path} has an unknown ending: give an .sse, .http or .reads.jsonl file.")
    return load_stream([(0.0, data)], http=path.suffix == ".http"), False


def _reads(path: Path, data: bytes) -> list[tuple[float, bytes]]:
    """One read a line: `t` in seconds since the send, `b64` its bytes; a first line with `request` is skipped."""
    reads: list[tuple[float, bytes]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if "b64" in entry:
                reads.append((float(entry["t"]), base64.b64decode(entry["b64"], validate=True)))
            elif "request" not in entry:
                raise KeyError("b64")
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise UsageError(f'{path}, line {number} is not {{"t": seconds, "b64": bytes}} ({error}).') from None
    return reads
