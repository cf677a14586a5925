import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from loadgen.analysis.findings import analyse
from loadgen.metrics.model import CounterDelta, HistogramDelta
from loadgen.store.model import CellResult, Manifest

LEVELS = (1, 2, 4, 8, 16, 32)
K = 4


def step_s(batch: float, verified: float, *, speculates: bool) -> float:
    return 4e-3 + 1e-4 * max(0.0, verified - 16) + (3e-4 if speculates else 0.0) + 2e-5 * batch


def written(
    make: Callable[..., CellResult], profile: str, level: int, repeat: int, tokens_per_step: float, k: int = K
) -> CellResult:
    """A cell of a server whose step cost is known and that drafts K tokens in every step."""
    drafts = profile != "baseline"
    seconds = step_s(level, level * (1 + k) if drafts else level, speculates=drafts)
    steps = 2.5 / seconds
    tokens = steps * level * tokens_per_step
    rate = tokens / 2.5 * math.exp(0.004 * (repeat - 1))
    delta = CounterDelta(
        duration_s=2.5,
        generation_tokens=tokens,
        drafts=steps * level if drafts else None,
        draft_tokens=steps * level * k if drafts else None,
        accepted_tokens=steps * level * (tokens_per_step - 1) if drafts else None,
        inter_token_latency=HistogramDelta(steps * level, 2.5 * level),
        iteration_tokens=HistogramDelta(steps, tokens),
        time_to_first_token=HistogramDelta(0.0, 0.0),
        process_cpu_s=0.5,
    )
    return replace(make(profile, level, repeat, rate), window=delta, idle=replace(delta, generation_tokens=5120.0))


def found(
    make: Callable[..., CellResult], manifest: Callable[..., Manifest], profiles: dict[str, float], probe_k: int = K
) -> list[str]:
    """The notes on step costs."""
    cells = [
        written(make, name, level, repeat, length, probe_k if name == "cost-probe" else K)
        for name, length in {"baseline": 1.0, **profiles}.items()
        for level in LEVELS
        for repeat in range(3)
    ]
    return costs(analyse(manifest(("baseline", *profiles)), cells).notes)


def costs(notes: Iterable[str]) -> list[str]:
    return [note for note in notes if "fitted step cost" in note or "L*" in note]


def test_the_fit_names_its_error_and_a_break_even_near_the_measured_one(
    cell: Callable[..., CellResult], manifest: Callable[..., Manifest]
) -> None:
    (note,) = found(cell, manifest, {"draft-model": 2.0})
    match = re.search(r"12 step times, (\d\.\d)% off", note)
    assert match is not None
    assert float(match[1]) <= 2.5
    assert "decoding without speculation is" in note
    # 2.0 tokens a step against cost ratios of 1.65 at 8 and 2.55 at 16: it turns between them.
    turn = re.search(r"by it speculation pays up to (\d+)(?: \(95 %: (\d+) to (\d+)\))?, measured", note)
    assert turn is not None
    assert 8 <= int(turn[1]) < 16


def test_a_probe_foretells_the_break_even_of_a_profile_that_drafts_in_every_step(
    cell: Callable[..., CellResult], manifest: Callable[..., Manifest]
) -> None:
    notes = found(cell, manifest, {"draft-model": 2.0, "cost-probe": 1.0001})
    (probed,) = [note for note in notes if "cost-probe's" in note]
    assert probed.startswith("draft-model")
    # It turns between 8 and 16, as the step costs say.
    turn = re.search(r"it should pay up to (\d+)", probed)
    assert turn is not None
    assert 8 <= int(turn[1]) < 16
    # Both draft K tokens in every step at the same cost, so that the probe's foretelling is right.
    assert "checked at 6 levels: its speed-ups are off by at most 0%" in probed
    (lengths,) = [note for note in notes if note.startswith("cost-probe")]
    # (4 + 0.3 + 0.02) ms over 4.02 ms.
    assert "(L*): 1.07 at 1" in lengths
    assert "2.0 would pay up to " + turn[1] in lengths


def test_a_probe_of_another_k_foretells_nothing(
    cell: Callable[..., CellResult], manifest: Callable[..., Manifest]
) -> None:
    notes = found(cell, manifest, {"draft-model": 2.0, "cost-probe": 1.0001}, probe_k=2)
    assert not [note for note in notes if "cost-probe's" in note]
    assert [note for note in notes if note.startswith("cost-probe")]


def test_too_few_step_times_say_nothing(
    run_of: Callable[..., list[CellResult]], manifest: Callable[..., Manifest]
) -> None:
    assert costs(analyse(manifest(), run_of({1: 1.5, 8: 1.1})).notes) == []


def test_a_note_and_its_table_have_one_regime(
    cell: Callable[..., CellResult], manifest: Callable[..., Manifest]
) -> None:
    cells = [
        written(cell, name, level, repeat, length, K)
        for name, length in {"baseline": 1.0, "draft-model": 2.0}.items()
        for level in LEVELS
        for repeat in range(3)
    ]
    findings = analyse(manifest(("baseline", "draft-model")), cells)
    (note,) = costs(findings.notes)
    rows = findings.conditions[0].profiles[0].levels
    regimes = {row.concurrency: row.explanation.regime for row in rows if row.explanation}
    told = re.search(r"memory-bound up to (\d+)", note)
    bound = list(itertools.takewhile(lambda level: regimes[level] == "memory-bound", sorted(regimes)))
    if told is None:
        assert bound in ([], sorted(regimes))
    else:
        assert bound[-1] == int(told[1])
