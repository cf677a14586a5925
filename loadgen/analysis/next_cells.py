"""The next cells of a run that refines its break-even, from the cells that it has."""

from collections.abc import Sequence

from loadgen.analysis.breakeven import MAX_REPEATS, find_break_even
from loadgen.analysis.checks import contexts_of, judge
from loadgen.analysis.levels import level_stat
from loadgen.analysis.pairs import Pairing, pair_cells
from loadgen.analysis.ratios import THROUGHPUT
from loadgen.analysis.refine import propose
from loadgen.store.model import CellKey, CellResult, Manifest

TRIES = 3


def next_cells(
    manifest: Manifest, cells: Sequence[CellResult], *, highest: int, wanted: float, looks: int
) -> tuple[CellKey, ...]:
    """The cells that narrow the break-even by output tokens/s of each speculating profile and condition, pair by pair.

    Empty when every interval is as narrow as `wanted` or nothing can narrow it. Only the first session's cells count:
    later sessions measure what the first one chose. The order of `cells` changes nothing.
    """
    first = [cell for cell in cells if cell.key.session == 0]
    contexts = contexts_of(manifest, first)
    there = {cell.key for cell in first}
    found: dict[CellKey, None] = {}
    for pairing in pair_cells(first, manifest.against):
        if manifest.methods.get(pairing.profile, "none") == "none" or pairing.profile.startswith("cost-probe"):
            continue
        valid = {
            level: [pair for pair in pairing.at(level) if judge(pair, contexts).valid] for level in pairing.levels()
        }
        stats = [stat for level, pairs in valid.items() if (stat := level_stat(level, pairs, THROUGHPUT)) is not None]
        verdict = find_break_even(stats, looks=looks)
        asked = propose(verdict, stats, highest=highest, wanted=wanted).repeats
        # A level whose every cell was void is tried again: twice, for what voids it may lie in the level itself.
        asked |= {level: 1 for level, pairs in valid.items() if not pairs and len(pairing.at(level)) < TRIES}
        for level, repeats in asked.items():
            have = len(valid.get(level, ()))
            for key in _pairs(pairing, manifest.against, level, repeats - have, len(found)):
                if key not in there:
                    found[key] = None
    return tuple(found)


def _pairs(pairing: Pairing, against: str, level: int, count: int, turn: int) -> tuple[CellKey, ...]:
    """Keys of new pairs, the profile and the baseline first by turns; a repeat that was tried is never asked again."""
    tried = {pair.key.repeat for pair in pairing.at(level)} | {
        key.repeat for key in pairing.alone if key.level == level
    }
    first = max(tried, default=-1) + 1
    keys = []
    for repeat in range(first, min(first + count, 2 * MAX_REPEATS)):
        pair = [CellKey(name, pairing.condition, level, repeat) for name in (against, pairing.profile)]
        keys += pair if (turn + repeat) % 2 == 0 else pair[::-1]
    return tuple(keys)


def level_limit(limits: Sequence[int], default: int = 256) -> int:
    """The highest concurrency worth measuring: the smallest max-num-seqs of the servers; 256, vLLM's, where unknown."""
    return min((limit for limit in limits if limit > 0), default=default)
