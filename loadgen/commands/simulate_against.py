"""How far a simulated machine is from a measured curve: both in a closed loop of the same lengths, level by level."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadgen.analysis.model import Estimate, Findings
from loadgen.commands.conclude import find_findings
from loadgen.commands.simulate_fit import run_configs
from loadgen.errors import UsageError
from loadgen.simulator.config import MODEL_DRAFTS
from loadgen.simulator.curve import Lengths, tokens_per_s
from loadgen.simulator.hardware import Hardware
from loadgen.store.folder import RunFolder
from loadgen.store.model import CellResult
from loadgen.workloads.lengths import parse_lengths


@dataclass(frozen=True)
class CurveLevel:
    """One profile at one level with valid pairs."""

    profile: str
    level: int
    n: int
    measured: Estimate
    """Speed-up in output tokens/s."""
    simulated: float

    @property
    def error(self) -> float:
        """Simulated over measured, less 1."""
        return self.simulated / self.measured.value - 1

    @property
    def inside(self) -> bool | None:
        """Whether it lies in the measured interval; None without one."""
        return None if self.measured.ci95 is None else self.measured.ci95[0] <= self.simulated <= self.measured.ci95[1]


def curve(folder: RunFolder, hardware: Hardware) -> tuple[CurveLevel, ...]:
    """The run's speed-ups beside those of a quiet simulated machine under the same loads, by profile and level.

    UsageError for a run whose outcome the prompts' text decides: n-gram and suffix drafts, answers that end by
    themselves, several conditions.
    """
    configs = run_configs(folder)
    lengths = _lengths(folder)
    if any(config.method not in {"none", *MODEL_DRAFTS} for config in configs.values()):
        raise UsageError(f"{folder.path} has drafts that come from the text; only its step times can be compared.")
    wanted = list(_valid(find_findings(folder)))
    levels = sorted({one.level for one in wanted})
    against = folder.manifest().against
    plain = tokens_per_s(hardware, configs[against], lengths, levels)
    own = {
        profile: tokens_per_s(
            hardware, configs[profile], lengths, [one.level for one in wanted if one.profile == profile]
        )
        for profile in dict.fromkeys(one.profile for one in wanted)
    }
    return tuple(
        CurveLevel(one.profile, one.level, one.n, one.measured, own[one.profile][one.level] / plain[one.level])
        for one in wanted
    )


@dataclass(frozen=True)
class _Valid:
    profile: str
    level: int
    n: int
    measured: Estimate


def _valid(findings: Findings) -> Iterator[_Valid]:
    for condition in findings.conditions:
        for profile in condition.profiles:
            for level in profile.levels:
                if level.speedup is not None and level.n:
                    yield _Valid(profile.profile, level.concurrency, level.n, level.speedup)


def _lengths(folder: RunFolder) -> Lengths:
    manifest = folder.manifest()
    request = manifest.settings.get("request")
    outputs = request.get("output_lengths") if isinstance(request, dict) else None
    cells: Sequence[CellResult] = folder.cells()
    prompts = [cell.prompt_tokens.mean for cell in cells if cell.prompt_tokens.mean is not None]
    if not outputs or not manifest.sampling.get("ignore_eos") or len(manifest.conditions) != 1 or not prompts:
        raise UsageError(
            f"{folder.path} has no forced output lengths of one condition; only its step times can be compared."
        )
    return Lengths(round(math.fsum(prompts) / len(prompts)), parse_lengths(outputs))


def table(found: Sequence[CurveLevel]) -> str:
    """Markdown: measured speed-up with its 95 % interval and n, the simulated one, and how far it is off."""
    lines = [
        "| in flight | profile | measured | simulated | off | within the interval |",
        "| --: | :-- | :-- | --: | --: | :-- |",
    ]
    for one in found:
        interval = "" if one.measured.ci95 is None else f"{one.measured.ci95[0]:.2f}–{one.measured.ci95[1]:.2f}, "
        within = "no interval" if one.inside is None else "yes" if one.inside else "no"
        lines.append(
            f"| {one.level} | {one.profile} | {one.measured.value:.2f}× ({interval}n = {one.n}) | "
            f"{one.simulated:.2f}× | {one.error:+.0%} | {within} |"
        )
    return "\n".join(lines) + "\n"
