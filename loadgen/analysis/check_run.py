"""Checks on the run as a whole: do the servers differ in more than speculation?"""

from collections.abc import Mapping, Sequence

from loadgen.analysis.check_context import warn
from loadgen.analysis.model import Check
from loadgen.store.model import Manifest, ServerFacts

COMPARED = (
    "graph_mode",
    "async_scheduling",
    "model_runner",
    "enforce_eager",
    "dtype",
    "quantization",
    "prefix_caching",
)
"""Effective settings (as engines tell them) that change speed by themselves."""


BY_METHOD = {
    ("async_scheduling", "False"): "async scheduling is off",
    ("model_runner", "v1"): "model runner V1 is used",
}
FORCED = frozenset({"ngram", "suffix", "medusa", "mlp_speculator", "custom_class"})
"""What vLLM itself does for these methods, in words: one line, for nothing is set wrongly."""


def run_checks(manifest: Manifest, servers: Sequence[ServerFacts]) -> tuple[Check, ...]:
    """Differences between the baseline's server and each other, as far as the servers tell them."""
    base = next((server for server in servers if server.profile == manifest.against), None)
    if base is None:
        return ()
    others = [server for server in servers if server.profile != base.profile]
    models = dict.fromkeys(check for server in others if (check := _model(base, server)) is not None)
    return (*models, *_effective(base, others, manifest.methods))


def _model(base: ServerFacts, server: ServerFacts) -> Check | None:
    if base.model == server.model and base.version == server.version:
        return None
    cause = (
        f"{server.profile} serves {server.model} on vLLM {server.version or 'unknown'}, "
        f"{base.profile} {base.model} on {base.version or 'unknown'}"
    )
    return warn("servers-differ", cause, "start both servers from one image with one MODEL")


def _effective(base: ServerFacts, others: Sequence[ServerFacts], methods: Mapping[str, str]) -> list[Check]:
    """One check for all servers that differ alike: a ladder of K has many."""
    differing: dict[tuple[str, str, str], list[str]] = {}
    for server in others:
        for key in COMPARED:
            ours, theirs = server.effective.get(key), base.effective.get(key)
            if ours is not None and theirs is not None and ours != theirs:
                differing.setdefault((key, str(ours), str(theirs)), []).append(server.profile)
    by_method: dict[str, list[str]] = {}
    for place, names in list(differing.items()):
        forced = all(methods.get(name) in FORCED for name in names)
        if forced and (words := BY_METHOD.get(place[:2])) is not None:
            by_method.setdefault(", ".join(sorted(set(names))), []).append(words)
            del differing[place]
    cure = "baseline-sync shows what it costs"
    known = [
        warn("config-differs", f"{' and '.join(found)} for {names}, vLLM does that", cure)
        for names, found in by_method.items()
    ]
    return known + [
        warn(
            "config-differs",
            f"{key} is {ours} for {', '.join(sorted(set(names)))} and {theirs} for {base.profile}",
            _cure(key),
        )
        for (key, ours, theirs), names in differing.items()
    ]


def _cure(key: str) -> str:
    if key in ("async_scheduling", "model_runner"):
        return "baseline-sync shows what it costs"
    if key == "graph_mode":
        return (
            "where a schedule forces it (model runner V1), that is part of its cost; else set it alike in both servers"
        )
    return "set it alike in both servers, or read the speed-up as that of both changes together"
