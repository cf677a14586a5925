"""What vLLM made of the servers that were asked for: overrides that its log admits, and what its counters show."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.analysis.acceptance import pool
from loadgen.analysis.verify_model import Claim, Role
from loadgen.store.model import CellResult, ServerFacts

DROPPED = "falling back to static"
NOTHING = "nothing"
SCHEDULE = "num_speculative_tokens_per_batch_size"
_ASKED = {
    "max-num-seqs": "max_num_seqs",
    # Drafting slots are taken off what a step may hold.
    "max-num-batched-tokens": "max_num_scheduled_tokens",
    "max-model-len": "max_model_len",
    "tensor-parallel-size": "tensor_parallel_size",
    "data-parallel-size": "data_parallel_size",
    "kv-cache-dtype": "kv_cache_dtype",
    "quantization": "quantization",
    "dtype": "dtype",
}
"""vLLM's option, and the effective setting that says what became of it."""
_READ_BY_VLLM = ("auto", "half", "float")
_SWITCHES = {
    "async-scheduling": "async_scheduling",
    "enforce-eager": "enforce_eager",
    "enable-prefix-caching": "prefix_caching",
    "enable-chunked-prefill": "chunked_prefill",
}
UNHEEDED = 0.1
"""Share of decode steps with a draft that K = 0 must stay below; a batch that dips over the edge drafts a little."""


Settings = Mapping[str, Any]
"""A profile's, with vLLM's dashed names."""


def overrides(
    claim: Claim, servers: Sequence[ServerFacts], requested: Mapping[str, Settings] | None = None
) -> tuple[str, ...]:
    """One sentence for each thing that vLLM changed, by server: what its log admits, then what was requested against
    what is in force; and where graph mode or runner differ between the servers.
    """
    roles = {name: role for role, name in claim.arms.items()}
    facts: dict[str, Mapping[str, Any]] = {one.profile: one.effective for one in servers if one.profile in roles}
    found = []
    for name, effective in facts.items():
        said = effective.get("overrides")
        found += [f"{name}: {text}" for text in said] if isinstance(said, list) else []
        found += requested_against_effective(name, (requested or {}).get(name, {}), effective)
    for key, words in (
        ("graph_mode", "CUDA graph mode"),
        ("model_runner", "model runner"),
        ("async_scheduling", "async scheduling"),
    ):
        values = {name: effective[key] for name, effective in facts.items() if key in effective}
        if len(set(map(str, values.values()))) > 1:
            found.append(f"{words}: " + ", ".join(f"{name} {value}" for name, value in values.items()))
    return tuple(dict.fromkeys(found))


def requested_against_effective(name: str, settings: Settings, effective: Settings) -> list[str]:
    """`ngram: asked for max-num-batched-tokens 8192, runs with 7936`: what the profile sets and the server tells
    otherwise. What it does not tell is no difference.
    """
    pairs = [(asked, settings.get(asked), effective.get(told)) for asked, told in _ASKED.items()]
    for asked, told in _SWITCHES.items():
        wanted = not settings[f"no-{asked}"] if f"no-{asked}" in settings else settings.get(asked)
        pairs.append((asked, wanted, effective.get(told)))
    compilation = settings.get("compilation-config")
    if isinstance(compilation, Mapping) and compilation.get("cudagraph_mode") is not None:
        pairs.append(("cudagraph_mode", str(compilation["cudagraph_mode"]).upper(), effective.get("graph_mode")))
    pairs += _speculation(settings.get("speculative-config"), effective)
    return [
        f"{name}: asked for {key} {_shown(asked)}, runs with {_shown(got)}"
        for key, asked, got in pairs
        if asked is not None and got is not None and _differ(asked, got)
    ]


def _differ(asked: Any, got: Any) -> bool:
    """Words for a number (`auto`, `32k`) and names for a type (`half`) are read by vLLM and no difference."""
    if asked in _READ_BY_VLLM or (isinstance(got, int) and not isinstance(asked, int)):
        return False
    return _shown(asked) != _shown(got)


def _speculation(asked: Any, effective: Settings) -> list[tuple[str, Any, Any]]:
    """(setting, asked, in force); a schedule or a method that is gone is told as `nothing`."""
    if not isinstance(asked, Mapping) or "speculation" not in effective:
        return []
    got = effective["speculation"]
    if not isinstance(got, Mapping):
        return [("speculative-config", asked.get("method", "a method"), NOTHING)]
    keys = ("method", "num_speculative_tokens", SCHEDULE)
    return [(key, asked.get(key), NOTHING if got[key] is None else got[key]) for key in keys if key in got]


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_shown, value)) + "]"
    return str(value)


def schedule_ignored(claim: Claim, servers: Sequence[ServerFacts], cells: Sequence[CellResult]) -> str:
    """Why the schedule was not in force, as one sentence; empty if it was, as far as can be seen."""
    name = claim.arms.get(Role.SCHEDULE)
    if name is None:
        return ""
    for server in servers:
        said = server.effective.get("overrides") if server.profile == name else None
        if isinstance(said, list) and any(DROPPED in str(text) for text in said):
            return f"vLLM dropped the schedule of {name}: {next(str(text) for text in said if DROPPED in str(text))}"
        if server.profile != name or "speculation" not in server.effective:
            continue
        running = server.effective["speculation"]
        if running is None or (isinstance(running, Mapping) and running.get(SCHEDULE, ...) is None):
            return f"vLLM dropped the schedule of {name}: its /server_info has none"
    off = next((first for first, _, k in claim.schedule if k == 0), None)
    if off is None:
        return ""
    for level in sorted({cell.key.level for cell in cells if cell.key.profile == name}):
        pooled = pool(c.window for c in cells if c.key.profile == name and c.key.level == level)
        if pooled is None or pooled.decode_batch is None or pooled.draft_coverage is None:
            continue
        # Well inside the range where K is 0, so that no step should draft.
        if pooled.decode_batch >= 1.25 * off and pooled.draft_coverage > UNHEEDED:
            return (
                f"{name} still drafts in {pooled.draft_coverage:.0%} of the steps at {level} in flight, where its "
                f"schedule says K = 0: this vLLM does not heed it"
            )
    return ""
