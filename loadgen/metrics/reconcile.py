"""The client's sums against the server's: what differs, and what explains it."""

from dataclasses import dataclass

from loadgen.metrics.model import CounterDelta

TOKEN_TOLERANCE = 0.01
TTFT_TOLERANCE = 0.25


@dataclass(frozen=True)
class ClientTotals:
    """What the client saw between the same two idle scrapes, all requests included."""

    succeeded: int
    cancelled: int = 0
    failed: int = 0
    output_tokens: int = 0
    """Of all requests; of failed and cancelled ones as far as known."""
    prompt_tokens: int | None = None
    ttft_p50_s: float | None = None


@dataclass(frozen=True)
class ReconcileRow:
    """One line of the table."""

    name: str
    client: float | None
    server: float | None
    difference: float | None
    """server − client."""
    explanation: str
    agrees: bool
    """False only for a difference that nothing explains."""


@dataclass(frozen=True)
class Reconciliation:
    """The whole table, and a warning for each line that does not agree."""

    rows: tuple[ReconcileRow, ...]
    warnings: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """True if nothing stays unexplained."""
        return all(row.agrees for row in self.rows)


def reconcile(client: ClientTotals, server: CounterDelta) -> Reconciliation:
    """The client's counts beside the server's, with a warning where they differ by more than can be explained.

    Requests: the server may have given a first token to each request that was cancelled or failed. Its
    `finished_reason="abort"` is no help: vLLM 0.32 never raises it. Tokens: 1 % is allowed, and what the server made
    for requests that the client left. TTFT: the client's median may lie 25 % above the server's mean.
    """
    rows = (_requests(client, server), _tokens(client, server), _prompt_tokens(client, server), _ttft(client, server))
    return Reconciliation(rows, tuple(f"{row.name}: {row.explanation}" for row in rows if not row.agrees))


def _requests(client: ClientTotals, server: CounterDelta) -> ReconcileRow:
    seen = server.time_to_first_token.count if server.time_to_first_token else None
    name = "requests with a first token"
    if seen is None:
        return _row(name, client.succeeded, None, "the server does not tell", agrees=True)
    surplus = seen - client.succeeded
    if surplus == 0:
        return _row(name, client.succeeded, seen, "equal", agrees=True)
    left = client.cancelled + client.failed
    if 0 < surplus <= left:
        text = f"{surplus:g} more on the server, of {client.cancelled} cancelled and {client.failed} failed requests"
        return _row(name, client.succeeded, seen, text, agrees=True)
    text = f"the server counts {seen:g}, the client {client.succeeded} and {left} that it left; is there other traffic?"
    return _row(name, client.succeeded, seen, text, agrees=False)


def _tokens(client: ClientTotals, server: CounterDelta) -> ReconcileRow:
    name, made = "output tokens", server.generation_tokens
    if made is None:
        return _row(name, client.output_tokens, None, "the server does not tell", agrees=True)
    surplus = made - client.output_tokens
    if abs(surplus) <= TOKEN_TOLERANCE * max(client.output_tokens, made):
        return _row(name, client.output_tokens, made, "equal within 1 %", agrees=True)
    if surplus > 0 and client.cancelled + client.failed:
        text = f"{surplus:g} more on the server; requests that the client left go on there for a while"
        return _row(name, client.output_tokens, made, text, agrees=True)
    cause = "is there other traffic on this server?" if surplus > 0 else "are the client's counts estimates?"
    return _row(name, client.output_tokens, made, f"they differ by more than 1 %; {cause}", agrees=False)


def _prompt_tokens(client: ClientTotals, server: CounterDelta) -> ReconcileRow:
    name, seen = "prompt tokens", server.prompt_tokens
    if seen is None or client.prompt_tokens is None:
        return _row(name, client.prompt_tokens, seen, "only one side tells", agrees=True)
    surplus = seen - client.prompt_tokens
    if abs(surplus) <= TOKEN_TOLERANCE * max(client.prompt_tokens, seen):
        return _row(name, client.prompt_tokens, seen, "equal within 1 %", agrees=True)
    if surplus > 0 and client.cancelled + client.failed:
        text = f"{surplus:g} more on the server, from requests that the client left"
        return _row(name, client.prompt_tokens, seen, text, agrees=True)
    text = "they differ by more than 1 %; is there other traffic on this server?"
    return _row(name, client.prompt_tokens, seen, text, agrees=False)


def _ttft(client: ClientTotals, server: CounterDelta) -> ReconcileRow:
    name = "TTFT in s (client p50, server mean)"
    mean = server.time_to_first_token.mean if server.time_to_first_token else None
    if mean is None or client.ttft_p50_s is None:
        return _row(name, client.ttft_p50_s, mean, "only one side tells", agrees=True)
    excess = client.ttft_p50_s - mean
    if excess <= TTFT_TOLERANCE * mean:
        return _row(name, client.ttft_p50_s, mean, "within 25 %", agrees=True)
    text = (
        f"the client's median lies {excess * 1000:.0f} ms above the server's mean; "
        "look at the API process, a proxy, or the client's own lag"
    )
    return _row(name, client.ttft_p50_s, mean, text, agrees=False)


def _row(name: str, client: float | None, server: float | None, explanation: str, *, agrees: bool) -> ReconcileRow:
    difference = None if client is None or server is None else server - client
    return ReconcileRow(name, client, server, difference, explanation, agrees)
