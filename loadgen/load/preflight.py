"""Before any load: does the server serve the model that was asked for?"""

from dataclasses import dataclass, replace

import httpx2

from loadgen.errors import ServerError, UsageError
from loadgen.load.client import make_client
from loadgen.load.request import base_url
from loadgen.load.target import Target, Timeouts

_PATIENCE = Timeouts(connect_s=10.0, first_byte_s=30.0, idle_s=30.0, total_s=60.0)


@dataclass(frozen=True)
class ServedModel:
    """What `/v1/models` says of the model that will be loaded."""

    model_id: str
    max_model_len: int | None


async def preflight(target: Target) -> ServedModel:
    """The served model; with an empty `target.model` the server's first one. UsageError if the server serves another
    (both names are shown, case C59) or wants a key; ServerError if it does not answer as an OpenAI server does.
    """
    url = f"{base_url(target.url)}/v1/models"
    async with make_client(replace(target, timeouts=_PATIENCE)) as client:
        try:
            response = await client.get(url, extensions={"timeouts": _PATIENCE})
        except httpx2.HTTPError as error:
            raise ServerError(
                f"{target.url} does not answer ({error}): is the server up, and is the URL right?"
            ) from None
    if response.status_code in (401, 403):
        raise UsageError(
            f"{target.url} wants a key ({response.status_code}): put it into the environment variable "
            f"{target.api_key_variable}."
        )
    served = _models(response)
    if not served:
        raise ServerError(f"{url} lists no model (status {response.status_code}): is this an OpenAI-compatible server?")
    if not target.model:
        return served[0]
    for model in served:
        if model.model_id == target.model:
            return model
    names = ", ".join(model.model_id for model in served)
    raise UsageError(f"{target.url} serves {names}, not {target.model}: give --model {served[0].model_id}.")


def _models(response: httpx2.Response) -> list[ServedModel]:
    if response.status_code != 200:
        return []
    try:
        entries = response.json()["data"]
        return [ServedModel(str(entry["id"]), _length(entry.get("max_model_len"))) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _length(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
