"""Our closed loop as `loadgen load` runs it: transport, stamps, and the decoding after the window."""

import uvloop

from benchmarks.loops.common import Load, Seen, main, prompt, tag
from loadgen.load.closed_loop import run_closed_loop
from loadgen.load.record import Outcome
from loadgen.load.shape import ClosedLoop
from loadgen.load.target import Target
from loadgen.workloads.base import Message, Prompt

LONG_S = 3600.0


async def _run(load: Load) -> list[Seen]:
    prompts = [
        Prompt(prompt_id=tag(n), max_tokens=load.max_tokens, messages=(Message("user", prompt(n)),))
        for n in range(load.requests)
    ]
    # all workers start at once, as the other clients' do, and go on until the prompts have run out
    shape = ClosedLoop(load.concurrency, window_s=LONG_S, max_window_s=LONG_S, spread_s=0.0)
    result = await run_closed_loop(Target(load.url, "mock"), prompts, shape)
    return [Seen(r.prompt_id, r.ttft_s if r.outcome is Outcome.OK else None) for r in result.records]


if __name__ == "__main__":
    main(lambda load: uvloop.run(_run(load)))
