"""TLS: verified by default, by an own CA, or not at all when asked."""

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from loadgen.errors import UsageError
from loadgen.load.arrivals import Arrivals
from loadgen.load.client import make_client
from loadgen.load.decode import decode
from loadgen.load.record import Outcome, RequestRecord
from loadgen.load.request import prepare
from loadgen.load.sender import Sender
from loadgen.load.target import Target
from loadgen.workloads.base import Prompt


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, and server.pem + server.key for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("pki")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    ca = ["-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem"), "-subj", "/CN=test ca"]
    openssl("req", "-x509", *key, *ca, "-addext", "keyUsage=critical,keyCertSign")
    request = ["-keyout", str(folder / "server.key"), "-out", str(folder / "server.csr"), "-subj", "/CN=server"]
    openssl("req", *key[:-2], *request)
    extension = folder / "san.txt"
    extension.write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    signer = ["-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key"), "-CAcreateserial", "-days", "2"]
    files = ["-in", str(folder / "server.csr"), "-out", str(folder / "server.pem"), "-extfile", str(extension)]
    openssl("x509", "-req", *signer, *files)
    return folder


@pytest.fixture
async def tls_server(pki: Path, start_server: Any, chunks: Any) -> Any:
    async def script(seen: Any, reply: Any) -> None:
        await reply.chunked(chunks.reply(5), gap_s=0.002)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki / "server.pem", pki / "server.key")
    return await start_server(script, ssl_context=context)


async def ask(target: Target, times: int = 1) -> list[RequestRecord]:
    records = []
    async with make_client(target) as client:
        for _ in range(times):
            request = prepare(Prompt("p", 5, text="hello"), target)
            arrivals = Arrivals()
            await Sender(client, target).send(request, arrivals)
            records.append(decode(arrivals, request.asked))
    return records


async def test_an_unknown_ca_is_refused(tls_server: Any, target_of: Any) -> None:
    (record,) = await ask(target_of(tls_server))
    assert record.outcome is Outcome.CONNECT_ERROR
    assert "certificate" in (record.error or "").lower()
    assert not tls_server.seen


async def test_own_ca_verifies_and_the_connection_is_kept(tls_server: Any, target_of: Any, pki: Path) -> None:
    records = await ask(target_of(tls_server, ca_file=str(pki / "ca.pem")), times=2)
    assert [r.outcome for r in records] == [Outcome.OK] * 2
    assert [r.output_tokens for r in records] == [5] * 2
    assert {seen.connection for seen in tls_server.seen} == {1}


async def test_own_ca_still_checks_the_name(tls_server: Any, pki: Path) -> None:
    target = Target(f"https://localhost:{tls_server.port}", "m", ca_file=str(pki / "ca.pem"))
    (record,) = await ask(target)
    assert record.outcome is Outcome.CONNECT_ERROR
    assert "localhost" in (record.error or "")


async def test_verification_off_only_when_asked(tls_server: Any, target_of: Any) -> None:
    (record,) = await ask(target_of(tls_server, verify_tls=False))
    assert record.outcome is Outcome.OK


def test_a_ca_file_that_is_none_is_said_at_once(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    wrong.write_text("no certificate")
    with pytest.raises(UsageError, match=r"CA file .* PEM"):
        make_client(Target("https://127.0.0.1:1", "m", ca_file=str(wrong)))


def test_a_url_without_scheme_is_said_at_once() -> None:
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        make_client(Target("127.0.0.1:8000", "m"))
