"""Are the servers of a same-quality test alike but for speculation?"""

from collections.abc import Mapping, Sequence

from loadgen.analysis.check_run import COMPARED
from loadgen.store.model import ServerFacts


def model_of(server: ServerFacts) -> str:
    """The model that the server loaded, where it tells; else the name that it serves it under."""
    return str(server.effective.get("model") or server.model)


def other_model(servers: Sequence[ServerFacts]) -> tuple[ServerFacts, ServerFacts] | None:
    """Two servers that do not answer from one model; None if all do, as far as they tell."""
    for server in servers[1:]:
        told = all(one.effective.get("model") for one in (servers[0], server))
        if (told and model_of(server) != model_of(servers[0])) or (not told and server.model != servers[0].model):
            return servers[0], server
    return None


def server_differences(against: str, servers: Mapping[str, ServerFacts]) -> tuple[str, ...]:
    """What differs from the baseline's server beside speculation, one half-sentence each; what either does not tell is
    left out.
    """
    base = servers.get(against)
    if base is None:
        return ()
    found = []
    for name, server in servers.items():
        pairs = [("vLLM", server.version, base.version), ("max_model_len", server.max_model_len, base.max_model_len)]
        pairs += [(key, server.effective.get(key), base.effective.get(key)) for key in COMPARED]
        found += [
            f"{key} is {ours} for {name} and {theirs} for {against}"
            for key, ours, theirs in pairs
            if ours is not None and theirs is not None and ours != theirs
        ]
    return tuple(found)
