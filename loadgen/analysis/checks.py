"""All trust checks over the pairs of a run: which cells are void, and why (issue 4, "Trust")."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.analysis.check_client import CLIENT_CHECKS
from loadgen.analysis.check_context import DIRECT, IMPORT, CellContext
from loadgen.analysis.check_output import OUTPUT_CHECKS, PAIR_CHECKS
from loadgen.analysis.check_server import SERVER_CHECKS
from loadgen.analysis.ladder import ladder_of
from loadgen.analysis.model import Check
from loadgen.analysis.pairs import Pair
from loadgen.store.model import CellResult, Manifest

CELL_CHECKS = CLIENT_CHECKS + SERVER_CHECKS + OUTPUT_CHECKS
MAX_TEMPLATE_TOKENS = 128.0
"""No chat template shares more than this; what is shared beyond it is prompts."""


@dataclass(frozen=True)
class JudgedPair:
    """A pair and what the checks say of either cell (a pair's own checks stand with the profile)."""

    pair: Pair
    baseline_checks: tuple[Check, ...]
    profile_checks: tuple[Check, ...]

    @property
    def baseline_void(self) -> bool:
        """The baseline cell is void."""
        return any(check.voids for check in self.baseline_checks)

    @property
    def profile_void(self) -> bool:
        """The profile's cell is void."""
        return any(check.voids for check in self.profile_checks)

    @property
    def valid(self) -> bool:
        """Neither cell is void: a cell always falls with its pair."""
        return not (self.baseline_void or self.profile_void)


def check_cell(cell: CellResult, context: CellContext) -> tuple[Check, ...]:
    """All findings on one cell, in the order of the checks."""
    found = (check(cell, context) for check in CELL_CHECKS)
    return tuple(check for check in found if check is not None)


def judge(pair: Pair, contexts: Mapping[str, CellContext]) -> JudgedPair:
    """The pair with its checks; `contexts` by profile name."""
    own = check_cell(pair.profile, contexts[pair.profile.key.profile])
    both = tuple(check for check in (test(pair) for test in PAIR_CHECKS) if check is not None)
    return JudgedPair(pair, check_cell(pair.baseline, contexts[pair.baseline.key.profile]), own + both)


def contexts_of(manifest: Manifest, cells: Sequence[CellResult]) -> dict[str, CellContext]:
    """What the checks need to know, per profile that occurs in the manifest or the cells."""
    template = template_tokens(cells)
    # A constant schedule of K = 0 drafts nothing on purpose.
    silent = {name for name, arm in ladder_of(manifest).items() if arm.k == 0}
    speculates = {name: method != "none" and name not in silent for name, method in manifest.methods.items()}
    names = sorted({*manifest.profiles, manifest.against, *(cell.key.profile for cell in cells)})
    return {
        name: CellContext(
            speculates=speculates.get(name, False),
            pair_speculates=any(speculates.values()),
            cost_probe=name.startswith("cost-probe"),
            template_tokens=template,
            direct=manifest.engine in DIRECT,
            natural_ends=manifest.sampling.get("ignore_eos") is False,
            imported=manifest.engine == IMPORT,
            tokens_per_event=1.0 + manifest.num_speculative_tokens.get(name, 0),
        )
        for name in names
    }


def template_tokens(cells: Iterable[CellResult]) -> float:
    """Prompt tokens per request that every cell shares: the chat template's cache blocks, at most 128.

    A template is hit by every request alike, prompts that come back are hit in some cells more than in others; so the
    cell with the fewest hits per request shows the template.
    """
    found = [
        cell.window.prefix_cache_hit_rate * cell.prompt_tokens.mean
        for cell in cells
        if cell.window is not None and cell.window.prefix_cache_hit_rate is not None and cell.prompt_tokens.mean
    ]
    return min(*found, MAX_TEMPLATE_TOKENS) if found else 0.0


def level_checks(judged: Sequence[JudgedPair]) -> tuple[Check, ...]:
    """The checks of one level, one per name and profile, with the number of its cells; voiding ones first."""
    groups: dict[tuple[str, str, bool], list[Check]] = {}
    for one in judged:
        for profile, checks in (
            (one.pair.baseline.key.profile, one.baseline_checks),
            (one.pair.profile.key.profile, one.profile_checks),
        ):
            for check in checks:
                groups.setdefault((check.name, profile, check.voids), []).append(check)
    return tuple(
        Check(name, voids, f"{profile}, {len(found)} of {len(judged)} cells: {found[0].cause}", found[0].cure)
        for (name, profile, voids), found in sorted(groups.items(), key=lambda item: (not item[0][2], item[0]))
    )
