"""The method of `vllm bench serve`: its own request function with its session, semaphore and one task per request.

Runs in vLLM's environment. The session's settings are those of `vllm.benchmarks.serve.benchmark` (0.32).
"""

import asyncio

import aiohttp
from vllm.benchmarks.lib.endpoint_request_func import (
    RequestFuncInput,
    RequestFuncOutput,
    async_request_openai_chat_completions,
)

from benchmarks.loops.common import Load, Seen, main, prompt, tag

SIX_HOURS_S = 6 * 60 * 60


async def _run(load: Load) -> list[Seen]:
    connector = aiohttp.TCPConnector(
        limit=load.concurrency,
        limit_per_host=load.concurrency,
        ttl_dns_cache=300,
        use_dns_cache=True,
        keepalive_timeout=60,
        enable_cleanup_closed=True,
        force_close=False,
        ssl=False,
    )
    semaphore = asyncio.Semaphore(load.concurrency)
    timeout = aiohttp.ClientTimeout(total=SIX_HOURS_S)
    async with aiohttp.ClientSession(connector=connector, trust_env=True, timeout=timeout) as session:

        async def limited(number: int) -> RequestFuncOutput:
            asked = RequestFuncInput(
                prompt=prompt(number),
                api_url=f"{load.url}/v1/chat/completions",
                prompt_len=32,
                output_len=load.max_tokens,
                model="mock",
                ignore_eos=True,
            )
            async with semaphore:
                return await async_request_openai_chat_completions(asked, session)

        outputs = await asyncio.gather(*(asyncio.create_task(limited(n)) for n in range(load.requests)))
    return [Seen(tag(n), one.ttft if one.success else None) for n, one in enumerate(outputs)]


if __name__ == "__main__":
    main(lambda load: asyncio.run(_run(load)))
