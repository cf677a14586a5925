"""The same-quality test from its first question to its findings, whatever the servers are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from loadgen.analysis.lossless_drafts import FAULT_DRAFTS
from loadgen.analysis.lossless_greedy import judge_greedy
from loadgen.analysis.lossless_model import Arm, Drafted, GreedyFinding, LosslessFinding, Place, SamplingFinding
from loadgen.analysis.lossless_sampling import ALPHA, MARGIN, judge_sampling
from loadgen.analysis.lossless_verdict import judge
from loadgen.sweep.lossless_client import LosslessServer
from loadgen.sweep.lossless_greedy import Chunk, Question, Reference, compare, references, with_gaps
from loadgen.sweep.lossless_sampling import Prefix, choose_prefixes, places, positions, sample
from loadgen.workloads.base import Prompt

WIDE = 32
"""The busy arm: another batch, other rounding."""
SAMPLING_CONCURRENCY = 64


@dataclass(frozen=True)
class LosslessPlan:
    """What is tested, and how hard."""

    profile: str
    against: str
    k: int
    """The profile's num_speculative_tokens."""
    kind: str = "16-bit"
    """Of `analysis.lossless_greedy.TOLERANCES`."""
    temperatures: tuple[float, ...] = (0.8,)
    """Those above 0; the greedy part always runs."""
    samples: int = 1500
    prefixes: int = 4
    margin: float = MARGIN
    wide: int = WIDE
    concurrency: int = SAMPLING_CONCURRENCY
    """Requests in flight while sampling; the control runs at a quarter of it."""
    seed: int = 1
    seeded: bool = True
    """Send a seed with each sample. Not to a real vLLM: it takes another path for seeded requests than for its users'
    usual ones, and 0.32 on a CPU dies of it with drafts ("CPU Generator does not use offset")."""


class Servers(Protocol):
    """Brings a profile's server up when it is needed; that may cost the other one."""

    async def use(self, name: str) -> LosslessServer:
        """The server of that profile, ready."""


Say = Callable[[str], None]
Keep = Callable[[str, Any], None]


@dataclass
class LosslessRun:
    """One test. `say` gets a sentence per phase, `keep` a name and plain facts for the run folder."""

    plan: LosslessPlan
    servers: Servers
    say: Say
    keep: Keep
    _arms: list[Arm] = field(default_factory=list)
    _control: list[Arm] = field(default_factory=list)
    _drafted: list[Drafted] = field(default_factory=list)

    async def run(self, first: Sequence[Prompt], second: Sequence[Prompt]) -> LosslessFinding:
        """The verdict; the second set of prompts is used only if the first one has exactly one hard divergence."""
        greedy, sampling = await self._round(first, self.plan.temperatures)
        if greedy.wants_more:
            self.say("One prompt has a hard divergence; a second set of prompts decides.")
            greedy, _ = await self._round(second, ())
        return judge(self.plan.profile, self.plan.against, greedy, sampling)

    async def _round(
        self, prompts: Sequence[Prompt], temperatures: tuple[float, ...]
    ) -> tuple[GreedyFinding, list[SamplingFinding]]:
        """Ordered so that servers which cannot be up together change places twice only: A, B, A."""
        plan = self.plan
        baseline = await self.servers.use(plan.against)
        questions = [Question(p.prompt_id, await baseline.tokenize(p), p.max_tokens) for p in prompts]
        self.say(f"{plan.against} answers {len(questions)} prompts, alone and {plan.wide} at a time.")
        found = await references(baseline, questions)
        control, _ = await compare(baseline, found, plan.wide)
        arms, chunks, drafted = await self._profile(found)
        sampler = _Sampler(plan, self.say)
        profile = await self.servers.use(plan.profile)
        for temperature in temperatures:
            await sampler.profile(profile, temperature, chunks)
        baseline = await self.servers.use(plan.against)
        self.say(f"{plan.against} is asked for its log-probabilities where answers part.")
        control = await with_gaps(baseline, control, found)
        arms = [await with_gaps(baseline, arm, found) for arm in arms]
        self._arms, self._control = _merged(self._arms, arms), _merged(self._control, [control])
        self._drafted.append(drafted)
        self.keep("answers", [{"prompt": r.question.name, "tokens": r.answer.tokens} for r in found])
        self.keep("arms", arms)
        self.keep("control", [control])
        sampling = [await sampler.baseline(baseline, temperature) for temperature in temperatures]
        self.keep("samples", sampler.kept())
        sets = len(self._drafted)
        return judge_greedy(self._arms, self._control, plan.kind, _total(self._drafted), sets), sampling

    async def _profile(self, found: list[Reference]) -> tuple[list[Arm], tuple[Chunk, ...], Drafted]:
        plan = self.plan
        server = await self.servers.use(plan.profile)
        self.say(f"{plan.profile} answers the same prompts, alone and {plan.wide} at a time.")
        await server.mark()
        alone, chunks = await compare(server, found, 1)
        busy, _ = await compare(server, found, plan.wide)
        drafted = await server.since_mark()
        arms = [await with_gaps(server, arm, found, own=True) for arm in (alone, busy)]
        return arms, chunks, drafted


class _Sampler:
    """The samples of all temperatures: the profile's first, the baseline's when its server is up again."""

    def __init__(self, plan: LosslessPlan, say: Say) -> None:
        self._plan = plan
        self._say = say
        self._prefixes: dict[float, tuple[Prefix, ...]] = {}
        self._counts: dict[tuple[float, str], Any] = {}
        self._drafted: dict[float, Drafted] = {}

    async def profile(self, server: LosslessServer, temperature: float, chunks: Sequence[Chunk]) -> None:
        """The profile's samples."""
        plan = self._plan
        prefixes = choose_prefixes(chunks, plan.prefixes, temperature)
        self._prefixes[temperature] = prefixes
        self._say(
            f"{plan.profile} samples {plan.samples} answers after each of {len(prefixes)} prefixes at "
            f"temperature {temperature:g}."
        )
        await server.mark()
        await self._sample(server, temperature, "profile", plan.concurrency, 0)
        self._drafted[temperature] = await server.since_mark()

    async def baseline(self, server: LosslessServer, temperature: float) -> SamplingFinding:
        """The baseline's samples, twice, and the verdict. Without accepted drafts there is nothing to compare with."""
        plan, drafted = self._plan, self._drafted[temperature]
        compared: tuple[Place, ...] = ()
        control: tuple[Place, ...] = ()
        if self._prefixes[temperature] and not _faulty(drafted):
            self._say(f"{plan.against} samples as many, twice, at temperature {temperature:g}.")
            await self._sample(server, temperature, "baseline", plan.concurrency, 1)
            await self._sample(server, temperature, "control", max(1, plan.concurrency // 4), 2)
            own = self._counts[temperature, "baseline"]
            compared = places(own, self._counts[temperature, "profile"])
            control = places(own, self._counts[temperature, "control"])
        return judge_sampling(
            compared,
            control,
            drafted,
            temperature=temperature,
            samples=plan.samples,
            margin=plan.margin,
            alpha=ALPHA / len(plan.temperatures),
            seed=plan.seed,
        )

    def kept(self) -> list[dict[str, Any]]:
        """The counts as plain facts."""
        return [
            {
                "temperature": temperature,
                "server": server,
                "prefix": name,
                "counts": [sorted(c.items(), key=lambda item: -item[1]) for c in counts],
            }
            for (temperature, server), by_prefix in self._counts.items()
            for name, counts in by_prefix.items()
        ]

    async def _sample(self, server: LosslessServer, temperature: float, name: str, concurrency: int, arm: int) -> None:
        self._counts[temperature, name] = await sample(
            server,
            self._prefixes[temperature],
            samples=self._plan.samples,
            tokens=positions(self._plan.k),
            temperature=temperature,
            concurrency=concurrency,
            arm=arm,
            seed=self._plan.seed if self._plan.seeded else None,
        )


def _faulty(drafted: Drafted) -> bool:
    return drafted.accepted_tokens == 0 and (drafted.drafts or 0) >= FAULT_DRAFTS


def _merged(before: Sequence[Arm], now: Sequence[Arm]) -> list[Arm]:
    """Arms of the same concurrency over two sets of prompts, as one."""
    if not before:
        return list(now)
    return [
        Arm(
            a.concurrency,
            a.prompts + b.prompts,
            a.exact + b.exact,
            a.tokens + b.tokens,
            a.first_divergences + b.first_divergences,
            a.divergences + b.divergences,
        )
        for a, b in zip(before, now, strict=True)
    ]


def _total(parts: Sequence[Drafted]) -> Drafted:
    def add(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Drafted(
        add([p.drafts for p in parts]),
        add([p.draft_tokens for p in parts]),
        add([p.accepted_tokens for p in parts]),
        add([p.generated_tokens for p in parts]),
    )
