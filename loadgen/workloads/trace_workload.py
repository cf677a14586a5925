"""A workload with the lengths of a recorded trace."""

from dataclasses import replace

from loadgen.errors import UsageError
from loadgen.workloads.base import Message, Prompt, PromptRequest, TokenCounter
from loadgen.workloads.formats.traces import Arrival, Trace
from loadgen.workloads.lengths import IndexedWorkload
from loadgen.workloads.text_workload import prompt_id


class TraceWorkload:
    """Prompt i has the lengths of the trace's request i; texts come from another workload where the trace has none.

    The recorded lengths count whole prompts, template included; requests shorter than the texts allow get the shortest
    that there is.
    """

    def __init__(self, trace: Trace, inner: IndexedWorkload) -> None:
        self.trace = trace
        self.name = trace.name
        self.description = f"{len(trace.arrivals)} requests of {trace.name}, texts of {inner.name}"
        self._inner = inner
        self._least = inner.min_input_tokens
        inputs = [arrival.input_tokens or inner.default_input_tokens for arrival in trace.arrivals]
        outputs = [arrival.output_tokens or inner.default_max_tokens for arrival in trace.arrivals]
        self.default_input_tokens = round(sum(inputs) / len(inputs))
        self.default_max_tokens = round(sum(outputs) / len(outputs))
        raised = sum(length < self._least for length in inputs)
        told = f"{raised} requests of {trace.name} are shorter than {self._least} tokens and were lengthened to that"
        self.warnings = trace.warnings + ((told,) if raised else ())

    def prompts(self, request: PromptRequest, count_tokens: TokenCounter) -> tuple[Prompt, ...]:
        """`request.count` prompts; UsageError if the trace has fewer requests."""
        if request.count > len(self.trace.arrivals):
            raise UsageError(
                f"trace {self.name} has {len(self.trace.arrivals)} requests, but {request.count} are needed; "
                "ask for fewer, or give a longer trace"
            )
        return tuple(
            self._prompt(request, index, arrival, count_tokens)
            for index, arrival in enumerate(self.trace.arrivals[: request.count])
        )

    def _prompt(self, request: PromptRequest, index: int, arrival: Arrival, count_tokens: TokenCounter) -> Prompt:
        cap = request.max_tokens or arrival.output_tokens or self._inner.default_max_tokens
        length = max(arrival.input_tokens or self._inner.default_input_tokens, self._least)
        name = prompt_id(request, self.name, length, index)
        if arrival.prompt is not None:
            return Prompt(prompt_id=name, max_tokens=cap, messages=(Message("user", arrival.prompt),))
        made = self._inner.prompt_at(replace(request, input_tokens=length, max_tokens=cap), index, count_tokens)
        return replace(made, prompt_id=name)
