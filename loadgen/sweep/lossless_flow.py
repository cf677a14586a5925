"""The same-quality test from its first question to its findings, whatever the servers are."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from loadgen.analysis.lossless_drafts import FAULT_DRAFTS
from loadgen.analysis.lossless_greedy import judge_greedy
from loadgen.analysis.lossless_model import Arm, Drafted, GreedyFinding, LosslessFinding, Place, SamplingFinding
from loadgen.analysis.lossless_sampling import ALPHA, judge_sampling
from loadgen.analysis.lossless_verdict import judge
from loadgen.errors import ServerError
from loadgen.sweep.lossless_greedy import Asking, Chunk, Reference, compare, references, with_gaps
from loadgen.sweep.lossless_journal import Journal, Question
from loadgen.sweep.lossless_plan import LosslessPlan, Servers, WhenNeeded
from loadgen.sweep.lossless_sampling import Prefix, choose_prefixes, places, positions, sample
from loadgen.workloads.base import Prompt

Samples = dict[str, list[Counter[int]]]
"""Prefix → per position, how often each token came."""
Say = Callable[[str], None]
Prompts = Callable[[int], Awaitable[Sequence[Prompt]]]
"""The prompts of set 0 or 1."""
SEEDS_DIE = (
    'If its log says "CPU Generator does not use offset", it cannot take the samples\' seeds: go on with --seeds off.'
)


@dataclass
class LosslessRun:
    """One test. `say` gets a sentence per phase; what stands in the journal is not asked again."""

    plan: LosslessPlan
    servers: Servers
    say: Say
    journal: Journal = field(default_factory=Journal)
    _arms: list[Arm] = field(default_factory=list)
    _control: list[Arm] = field(default_factory=list)
    _phases: list[str] = field(default_factory=list)

    async def run(self, prompts: Prompts) -> LosslessFinding:
        """The verdict; the second set of prompts is used only if the first one has exactly one hard divergence."""
        greedy, sampling = await self._round(0, prompts, self.plan.temperatures)
        if greedy.wants_more:
            self.say("One prompt has a hard divergence; a second set of prompts decides.")
            greedy, _ = await self._round(1, prompts, ())
        return judge(self.plan.profile, self.plan.against, greedy, sampling)

    async def _round(
        self, number: int, prompts: Prompts, temperatures: tuple[float, ...]
    ) -> tuple[GreedyFinding, list[SamplingFinding]]:
        """Ordered so that servers which cannot be up together change places twice only: A, B, A."""
        plan = self.plan
        baseline, profile = (WhenNeeded(self.servers, name) for name in (plan.against, plan.profile))
        asking = Asking(self.journal, baseline, f"{number}/{plan.against}")
        questions = await self._questions(number, prompts, baseline)
        self.say(f"{plan.against} answers {len(questions)} prompts, twice alone and then {plan.wide} at a time.")
        found = await references(asking, questions)
        control = [(await compare(asking, found, n))[0] for n in (1, plan.wide)]
        arms, chunks = await self._profile(profile, found, number)
        sampler = _Sampler(plan, self.say, self.journal)
        for temperature in temperatures:
            await sampler.profile(profile, temperature, chunks)
        self.say(f"{plan.against} is asked for its log-probabilities where answers part.")
        control = [await with_gaps(asking, arm, found) for arm in control]
        asking = Asking(self.journal, baseline, f"{number}/{plan.profile}-as-{plan.against}")
        arms = [await with_gaps(asking, arm, found) for arm in arms]
        self._arms, self._control = _merged(self._arms, arms), _merged(self._control, control)
        sampling = [await sampler.baseline(baseline, temperature) for temperature in temperatures]
        drafted = self.journal.drafted(*self._phases)
        return judge_greedy(self._arms, self._control, plan.kind, drafted, number + 1), sampling

    async def _questions(self, number: int, prompts: Prompts, baseline: WhenNeeded) -> list[Question]:
        if not self.journal.questions(number):
            taken = await prompts(number)
            questions = [Question(p.prompt_id, await baseline.tokenize(p), p.max_tokens, number) for p in taken]
            self.journal.keep_questions(questions)
        return self.journal.questions(number)

    async def _profile(
        self, profile: WhenNeeded, found: list[Reference], number: int
    ) -> tuple[list[Arm], tuple[Chunk, ...]]:
        plan = self.plan
        phase = f"{number}/{plan.profile}"
        self._phases.append(phase)
        self.say(f"{plan.profile} answers the same prompts, alone and {plan.wide} at a time.")
        async with self.journal.counting(phase, profile) as server:
            asking = Asking(self.journal, server, phase)
            alone, chunks = await compare(asking, found, 1)
            busy, _ = await compare(asking, found, plan.wide)
        asking = Asking(self.journal, profile, phase)
        return [await with_gaps(asking, arm, found, own=True) for arm in (alone, busy)], chunks


class _Sampler:
    """The samples of all temperatures: the profile's first, the baseline's when its server is up again."""

    def __init__(self, plan: LosslessPlan, say: Say, journal: Journal) -> None:
        self._plan = plan
        self._say = say
        self._journal = journal
        self._prefixes: dict[float, tuple[Prefix, ...]] = {}
        self._counts: dict[float, Samples] = {}

    async def profile(self, server: WhenNeeded, temperature: float, chunks: Sequence[Chunk]) -> None:
        """The profile's samples."""
        plan = self._plan
        self._prefixes[temperature] = choose_prefixes(chunks, plan.prefixes, temperature)
        self._say(
            f"{plan.profile} samples {plan.samples} answers after each of {len(self._prefixes[temperature])} prefixes "
            f"at temperature {temperature:g}, {'each with a seed' if plan.seeds.sent else 'without seeds'}."
        )
        async with self._journal.counting(_phase(temperature), server) as counted:
            asking = Asking(self._journal, counted, _phase(temperature))
            self._counts[temperature] = await self._sample(asking, temperature, plan.concurrency, 0)

    async def baseline(self, server: WhenNeeded, temperature: float) -> SamplingFinding:
        """The baseline's samples, twice, and the verdict; nothing is sampled where no verdict can come of it."""
        plan = self._plan
        drafted = self._journal.drafted(_phase(temperature))
        compared: tuple[Place, ...] = ()
        control: tuple[Place, ...] = ()
        if self._prefixes[temperature] and not _faulty(drafted):
            self._say(f"{plan.against} samples as many, twice, at temperature {temperature:g}.")
            asking = Asking(self._journal, server, f"{_phase(temperature)}/{plan.against}")
            own = await self._sample(asking, temperature, plan.concurrency, 1)
            asking = Asking(self._journal, server, f"{_phase(temperature)}/control")
            again = await self._sample(asking, temperature, max(1, plan.concurrency // 4), 2)
            compared = places(own, self._counts[temperature])
            control = places(own, again)
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

    async def _sample(self, asking: Asking, temperature: float, concurrency: int, arm: int) -> Samples:
        plan = self._plan
        try:
            return await sample(
                asking,
                self._prefixes[temperature],
                samples=plan.samples,
                tokens=positions(plan.k),
                temperature=temperature,
                concurrency=concurrency,
                arm=arm,
                seed=plan.seed if plan.seeds.sent else None,
            )
        except ServerError as error:
            if not plan.seeds.sent:
                raise
            raise ServerError(f"{error} {SEEDS_DIE}") from error


def _phase(temperature: float) -> str:
    return f"temperature-{temperature:g}"


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
