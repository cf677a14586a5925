"""Servers that already run: asked, never started, never stopped."""

import os
from collections.abc import Mapping, Sequence

import httpx2

from loadgen.clock import now_s
from loadgen.engines.address import clean_url
from loadgen.engines.base import EngineEvent, EngineListener, ReadyServer, StartRequest
from loadgen.engines.readiness import Prober
from loadgen.errors import ServerError, UsageError
from loadgen.profiles.compat import check_profile

READY_TIMEOUT_S = 60.0
_SPECULATION_METRIC = "vllm:spec_decode_num_drafts"


class UrlEngine:
    """One URL, or one per profile."""

    name = "url"
    simulated = False
    # They are up whatever we do; whether they share a GPU is the user's word.
    can_run_together = True
    slow = False

    def __init__(self, urls: str | Mapping[str, str], *, api_key_variable: str = "OPENAI_API_KEY") -> None:
        self._single = clean_url(urls) if isinstance(urls, str) else None
        self._by_profile = {} if isinstance(urls, str) else {name: clean_url(url) for name, url in urls.items()}
        self._single_profile: str | None = None
        key = os.environ.get(api_key_variable)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def require(self, profiles: Sequence[str]) -> None:
        """UsageError if a profile has no URL of its own; asked before a run begins."""
        for profile in profiles:
            self._url_of(profile)

    async def start(self, request: StartRequest, listener: EngineListener) -> ReadyServer:
        """The server at this profile's URL, after it has answered a completion."""
        began, name = now_s(), request.profile.name
        url = self._url_of(name)

        def report(phase: str, detail: str) -> None:
            listener(EngineEvent(name, phase, now_s() - began, detail))

        report("starting", f"asking {url}")
        timeout_s = min(request.start_timeout_s, READY_TIMEOUT_S)
        ready = await Prober(url, headers=self._headers, timeout_s=timeout_s, report=report).until_ready()
        # Without the model: it may be served under any name.
        for warning in check_profile(request.profile, vllm_version=ready.version, model=None):
            report("starting", warning)
        await self._check_speculation(url, request)
        report("ready", f"{ready.model}, vLLM {ready.version or 'of unknown version'}")
        return ReadyServer(
            profile=name,
            url=url,
            model=ready.model,
            max_model_len=ready.max_model_len,
            version=ready.version,
            start_s=now_s() - began,
            effective=ready.effective,
        )

    async def stop(self, server: ReadyServer, listener: EngineListener) -> None:
        """Nothing: the server is not ours."""
        listener(EngineEvent(server.profile, "stopped", 0.0, "left running: it was not started by loadgen"))

    async def check_alive(self, server: ReadyServer) -> str | None:
        """None if the server answers `/v1/models`."""
        try:
            async with httpx2.AsyncClient(headers=self._headers, trust_env=False, timeout=5.0) as client:
                response = await client.get(f"{server.url}/v1/models")
        except httpx2.TransportError as error:
            return f"The server at {server.url} does not answer any more ({type(error).__name__})."
        if response.status_code >= 500:
            return f"The server at {server.url} answers {response.status_code}."
        return None

    async def close(self) -> None:
        """Nothing to end."""

    def _url_of(self, profile: str) -> str:
        if self._single is None:
            if profile not in self._by_profile:
                known = ", ".join(self._by_profile) or "none"
                raise UsageError(f"No URL is given for profile {profile} (given: {known}); add {profile}=URL.")
            return self._by_profile[profile]
        if self._single_profile not in (None, profile):
            raise UsageError(
                f"One URL cannot be both {self._single_profile} and {profile}; give one for each: "
                f"--url {self._single_profile}=URL,{profile}=URL."
            )
        self._single_profile = profile
        return self._single

    async def _check_speculation(self, url: str, request: StartRequest) -> None:
        """ServerError if the server's metrics contradict the profile: the two would be compared under wrong names."""
        try:
            async with httpx2.AsyncClient(headers=self._headers, trust_env=False, timeout=10.0) as client:
                body = (await client.get(f"{url}/metrics")).text
        except httpx2.TransportError:
            return
        if "vllm:" not in body:
            return  # no vLLM metrics to be had: nothing can be said
        speculates = _SPECULATION_METRIC in body
        if speculates != (request.profile.speculative is not None):
            does, says = ("speculates", "does not") if speculates else ("does not speculate", "does")
            raise ServerError(
                f"The server at {url} {does} (by its metrics), but profile {request.profile.name} {says}; "
                "check which URL belongs to which profile."
            )


def parse_urls(text: str) -> str | dict[str, str]:
    """One URL, or profile → URL from `baseline=http://…,ngram=http://…`. UsageError otherwise."""
    if "@" in text:
        # Before the commas part it: a password may hold one.
        return clean_url(text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) == 1 and not _names_profile(parts[0]):
        return clean_url(parts[0])
    urls: dict[str, str] = {}
    for part in parts:
        if not _names_profile(part):
            raise UsageError(f"{part!r} names no profile; write baseline=URL,ngram=URL.")
        name, _, url = part.partition("=")
        if name in urls:
            raise UsageError(f"Profile {name} has two URLs; give one.")
        urls[name] = clean_url(url)
    if not urls:
        raise UsageError("No URL is given; write --url http://HOST:PORT or baseline=URL,ngram=URL.")
    return urls


def _names_profile(part: str) -> bool:
    name, separator, _ = part.partition("=")
    return bool(separator) and "/" not in name and ":" not in name
