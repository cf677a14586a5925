"""The engine core: continuous batching step by step, without a clock."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from loadgen.simulator.bugs import Bug, with_bug
from loadgen.simulator.config import EngineConfig
from loadgen.simulator.cost import CostModel, StepShape
from loadgen.simulator.hardware import Hardware
from loadgen.simulator.kv import KvPool
from loadgen.simulator.model import LoadState, SimRequest, StepOutput, StepResult
from loadgen.simulator.noise import QUIET, Noise, NoiseSource
from loadgen.simulator.sequence import Sequence, drafter_for
from loadgen.simulator.text import TextModel, with_flips


class EngineDeadError(RuntimeError):
    """The engine has died as vLLM's would; every later step dies too."""


class Emission(NamedTuple):
    """What one request got out of one step; `start` to `stop` are positions in its answer."""

    sequence: Sequence
    start: int
    stop: int
    drafted: int
    accepted: int
    """As vLLM counts: without the bonus token, tokens past the end included (vllm#56101)."""


@dataclass
class Advance:
    """One step, before it is put into words."""

    duration_s: float
    shape: StepShape
    emissions: list[Emission]
    draft_k: int
    generated: int
    preempted: int
    prefix_queries: int
    prefix_hits: int
    admitted: list[Sequence]


@dataclass
class Scheduled:
    """A step's plan."""

    work: list[tuple[Sequence, int]] = field(default_factory=list)
    """(request, prompt tokens to compute); 0 tokens: it decodes."""
    admitted: list[Sequence] = field(default_factory=list)
    preempted: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0


class SimulatedCore:
    """An EngineCore with vLLM's V1 scheduling: running requests first, then the queue, under one token budget."""

    def __init__(
        self,
        config: EngineConfig,
        hardware: Hardware,
        *,
        noise: Noise = QUIET,
        text: TextModel | None = None,
        bug: Bug | None = None,
    ) -> None:
        self.config = config
        self.hardware = hardware
        self.cost = CostModel(config, hardware)
        self.text = text or TextModel()
        self.pool = KvPool(self.cost.kv_blocks(), config.block_size, caching=config.prefix_caching)
        # vLLM refuses to start when one longest request does not fit; `--max-model-len auto` shortens it, as here.
        self.max_model_len = min(config.max_model_len, self.pool.total * config.block_size)
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self._joins_late = config.async_scheduling and hardware.steps_ahead > 0
        self._new: list[Sequence] = []
        """Arrived since the last step was planned, where they join one step later; else empty."""
        self._noise = NoiseSource(noise)
        self._bug = bug
        self._drafter = drafter_for(config, per_prompt=noise.per_prompt_acceptance)
        self._first_request_due = noise.first_request
        self._first_draft_due = noise.first_request and self._drafter is not None
        self._dead: str | None = None

    def add(self, request: SimRequest, now_s: float) -> None:
        """The request waits from `now_s` on. ValueError if prompt + 1 exceeds max_model_len."""
        length = len(request.prompt_token_ids)
        if length + 1 > self.max_model_len:
            raise ValueError(
                f"the prompt has {length} tokens, but max_model_len is {self.max_model_len} with the answer"
            )
        answer = self.text.continuation(request.prompt_token_ids, temperature=request.temperature, seed=request.seed)
        noise = self._noise.noise
        if noise.flip_share > 0:
            answer = with_flips(self.text, answer, noise.flip_share, f"{noise.seed}/{self.config.method}")
        if self._bug is not None:
            answer = with_bug(self.text, answer, self.config, self._bug, request.max_tokens)
        sequence = Sequence(request, answer, self.max_model_len)
        if self._drafter is not None:
            self._drafter.begin(sequence)
        late = self._joins_late and (self.running or self.waiting)
        (self._new if late else self.waiting).append(sequence)

    def abort(self, request_id: str) -> None:
        """The request is gone; unknown ids are ignored."""
        for sequence in self.running:
            if sequence.request.request_id == request_id:
                self.running.remove(sequence)
                self.pool.release(sequence.held, sequence.owned)
                return
        for queue in (self.waiting, self._new):
            for sequence in queue:
                if sequence.request.request_id == request_id:
                    queue.remove(sequence)
                    return

    def state(self) -> LoadState:
        """Running, waiting, KV use, now."""
        return LoadState(len(self.running), len(self.waiting) + len(self._new), self.pool.usage)

    def reset_prefix_cache(self) -> bool:
        """True if the prefix cache is empty now; False while requests hold blocks."""
        return self.pool.reset_cache()

    def step(self, now_s: float) -> StepResult | None:
        """The next step in words; see `advance`."""
        advance = self.advance(now_s)
        if advance is None:
            return None
        return StepResult(
            duration_s=advance.duration_s,
            outputs=tuple(_output(emission) for emission in advance.emissions),
            scheduled_requests=advance.shape.requests,
            scheduled_tokens=advance.shape.prefill_tokens + advance.generated,
            prompt_tokens=advance.shape.prefill_tokens,
            draft_tokens_k=advance.draft_k,
            preempted=advance.preempted,
            prefix_queries=advance.prefix_queries,
            prefix_hits=advance.prefix_hits,
            admitted=tuple(sequence.request.request_id for sequence in advance.admitted),
            extra=self.cost.terms(advance.shape),
        )

    def advance(self, now_s: float) -> Advance | None:
        """The next step, begun at `now_s`; None if nothing waits or runs. EngineDeadError where vLLM's engine dies."""
        if self._dead is not None:
            raise EngineDeadError(self._dead)
        plan = self._schedule()
        if not plan.work:
            return None
        emissions, shape, generated = self._compute(plan)
        draft_k = self.config.k_for(len(plan.work)) if self._drafter is not None else 0
        shape = self._propose(emissions, shape, draft_k)
        duration = self.cost.seconds(shape) * self._noise.factor(now_s) + self._compilation_s(emissions)
        self._retire(emissions)
        return Advance(
            duration,
            shape,
            emissions,
            draft_k,
            generated,
            plan.preempted,
            plan.prefix_queries,
            plan.prefix_hits,
            plan.admitted,
        )

    # Scheduling

    def _schedule(self) -> Scheduled:
        plan = Scheduled()
        budget, size = self.config.max_num_batched_tokens, self.config.block_size
        at = 0
        while at < len(self.running) and budget > 0:
            sequence = self.running[at]
            if sequence.left:
                chunk = min(sequence.left, budget)
                total = sequence.prompt_length + sequence.out - sequence.left + chunk
            else:
                chunk = 0
                if sequence.draft >= budget:
                    self._cut_draft(sequence, budget - 1)
                total = sequence.prompt_length + sequence.out + sequence.draft
            missing = -(-total // size) - len(sequence.held) - sequence.owned
            if missing > 0 and not self._grow(sequence, missing, plan):
                continue  # it was preempted itself: the list is shorter now
            plan.work.append((sequence, chunk))
            budget -= chunk or 1 + sequence.draft
            at += 1
        if not self.running and not self.waiting:
            self._join()
        if not plan.preempted:
            self._admit(plan, budget)
        self._join()
        return plan

    def _join(self) -> None:
        """Those that came while the last step ran wait for the next one from now on."""
        if self._new:
            self.waiting.extend(self._new)
            self._new.clear()

    def _admit(self, plan: Scheduled, budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.config.max_num_seqs:
            sequence = self.waiting[0]
            tokens = sequence.tokens_so_far()
            hits = self.pool.cached_prefix(tokens, len(tokens) - 1)  # the last token is always computed
            if self.config.drop_cached_block:
                hits = hits[:-1]
            cached = len(hits) * self.config.block_size
            chunk = min(len(tokens) - cached, budget)
            self.pool.hold(hits)
            blocks = -(-(cached + chunk) // self.config.block_size) - len(hits)
            if not self.pool.take(blocks):
                self.pool.release(hits, 0)
                return
            self.waiting.popleft()
            sequence.held, sequence.owned, sequence.left = hits, blocks, len(tokens) - cached
            if not sequence.preempted:
                sequence.cached = cached
                plan.prefix_queries += len(tokens)
                plan.prefix_hits += cached
            self.running.append(sequence)
            plan.admitted.append(sequence)
            plan.work.append((sequence, chunk))
            budget -= chunk

    def _grow(self, sequence: Sequence, missing: int, plan: Scheduled) -> bool:
        """True if the request got `missing` blocks; the last running ones make room. False: it went itself."""
        while not self.pool.take(missing):
            victim = self.running.pop()
            self._preempt(victim, plan)
            if victim is sequence:
                return False
        sequence.owned += missing
        return True

    def _preempt(self, victim: Sequence, plan: Scheduled) -> None:
        self.pool.release(victim.held, victim.owned)
        victim.held, victim.owned = [], 0
        victim.left, victim.draft, victim.right = victim.prompt_length + victim.out, 0, 0
        victim.preempted = True
        self.waiting.appendleft(victim)
        plan.preempted += 1

    @staticmethod
    def _cut_draft(sequence: Sequence, most: int) -> None:
        sequence.draft = most
        sequence.right = min(sequence.right, most)

    # Computing

    def _compute(self, plan: Scheduled) -> tuple[list[Emission], StepShape, int]:
        """Moves every scheduled request on."""
        emissions: list[Emission] = []
        prefill = decoded = context = verified = generated = 0
        low_k, high_k = 1 << 30, -1
        for sequence, chunk in plan.work:
            start = sequence.out
            context += sequence.prompt_length + start
            if chunk:
                prefill += chunk
                sequence.left -= chunk
                if sequence.left:
                    continue
                self._name_blocks(sequence)
                stop, drafted, accepted = start + 1, 0, 0
            else:
                drafted, accepted = sequence.draft, sequence.right
                decoded += 1 + drafted
                verified += drafted * (sequence.prompt_length + start)
                low_k = drafted if drafted < low_k else low_k
                high_k = drafted if drafted > high_k else high_k
                stop = start + 1 + accepted
                stop = sequence.end if stop > sequence.end else stop
            sequence.out = stop
            generated += stop - start
            emissions.append(Emission(sequence, start, stop, drafted, accepted))
        uniform = low_k if low_k == high_k and not prefill else -1
        finished_prompts = sum(1 for sequence, chunk in plan.work if chunk and not sequence.left) if prefill else 0
        shape = StepShape(
            prefill + decoded, len(plan.work), prefill, decoded + finished_prompts, context, verified, uniform, 0, 0, 0
        )
        return emissions, shape, generated

    def _name_blocks(self, sequence: Sequence, without: int = 0) -> None:
        if self.config.prefix_caching:
            tokens = sequence.tokens_so_far()
            known = tokens[: len(tokens) - without]
            sequence.owned = self.pool.name_blocks(known, sequence.held, sequence.owned)

    def _propose(self, emissions: list[Emission], shape: StepShape, draft_k: int) -> StepShape:
        """Drafts for the next step, of the K that this step's size picks: vLLM's one-step lag."""
        drafter = self._drafter
        if drafter is None:
            return shape
        if self.config.dies_on_dynamic_k and draft_k != self.config.k:
            self._dead = (
                f"AssertionError: {self.config.method} cannot draft {draft_k} tokens where num_speculative_tokens is "
                f"{self.config.k}; remove num_speculative_tokens_per_batch_size"
            )
            raise EngineDeadError(self._dead)
        drafting = context = 0
        longest = self.max_model_len - 1
        for emission in emissions:
            sequence = emission[0]
            if sequence.out >= sequence.end:
                continue
            length = sequence.prompt_length + sequence.out
            drafting += 1
            context += length
            most = draft_k if draft_k <= longest - length else max(0, longest - length)
            drafter.propose(sequence, most)
        return shape._replace(drafting=drafting, drafting_context=context, draft_k=draft_k)

    def _retire(self, emissions: list[Emission]) -> None:
        ended = [emission.sequence for emission in emissions if emission.stop >= emission.sequence.end]
        if not ended:
            return
        for sequence in ended:
            self._name_blocks(sequence, 1)  # the last token's KV is never computed
            self.pool.release(sequence.held, sequence.owned)
            if self._drafter is not None:
                self._drafter.end(sequence)
        gone = set(map(id, ended))
        self.running = [sequence for sequence in self.running if id(sequence) not in gone]

    def _compilation_s(self, emissions: list[Emission]) -> float:
        """Kernels that compile in the first steps after start (h200.md, lesson 3)."""
        seconds = 0.0
        if self._first_request_due:
            self._first_request_due = False
            seconds += self.hardware.first_request_s
        if self._first_draft_due and any(emission.drafted for emission in emissions):
            self._first_draft_due = False
            seconds += self.hardware.first_draft_s
        return seconds


def _output(emission: Emission) -> StepOutput:
    sequence = emission.sequence
    first = emission.start == 0
    return StepOutput(
        request_id=sequence.request.request_id,
        new_token_ids=tuple(sequence.answer.tokens[emission.start : emission.stop]),
        finish_reason=sequence.finish_reason if emission.stop >= sequence.end else None,
        first=first,
        drafted=emission.drafted,
        accepted=emission.accepted,
        cached_prompt_tokens=sequence.cached if first else 0,
    )
