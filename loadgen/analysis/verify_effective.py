"""What vLLM made of the servers that were asked for: overrides that its log admits, and what its counters show."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.analysis.acceptance import pool
from loadgen.analysis.verify_model import Claim, Role
from loadgen.store.model import CellResult, ServerFacts

DROPPED = "falling back to static"
UNHEEDED = 0.1
"""Share of decode steps with a draft that K = 0 must stay below; a batch that dips over the edge drafts a little."""


def overrides(claim: Claim, servers: Sequence[ServerFacts]) -> tuple[str, ...]:
    """One sentence for each thing that vLLM changed, by server; and where graph mode or runner differ between them."""
    roles = {name: role for role, name in claim.arms.items()}
    facts: dict[str, Mapping[str, Any]] = {one.profile: one.effective for one in servers if one.profile in roles}
    found = []
    for name, effective in facts.items():
        said = effective.get("overrides")
        found += [f"{name}: {text}" for text in said] if isinstance(said, list) else []
    for key, words in (
        ("graph_mode", "CUDA graph mode"),
        ("model_runner", "model runner"),
        ("async_scheduling", "async scheduling"),
    ):
        values = {name: effective[key] for name, effective in facts.items() if key in effective}
        if len(set(map(str, values.values()))) > 1:
            found.append(f"{words}: " + ", ".join(f"{name} {value}" for name, value in values.items()))
    return tuple(dict.fromkeys(found))


def schedule_ignored(claim: Claim, servers: Sequence[ServerFacts], cells: Sequence[CellResult]) -> str:
    """Why the schedule was not in force, as one sentence; empty if it was, as far as can be seen."""
    name = claim.arms.get(Role.SCHEDULE)
    if name is None:
        return ""
    for server in servers:
        said = server.effective.get("overrides") if server.profile == name else None
        if isinstance(said, list) and any(DROPPED in str(text) for text in said):
            return f"vLLM dropped the schedule of {name}: {next(str(text) for text in said if DROPPED in str(text))}"
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
