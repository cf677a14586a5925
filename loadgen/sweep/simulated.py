"""A simulator may stand behind any URL or image; it tells itself, and then the whole run says SIMULATED."""

from dataclasses import replace

from loadgen.errors import ServerError
from loadgen.metrics.scrape import MetricsClient, is_simulated
from loadgen.store.folder import RunFolder

SENTENCE = "SIMULATED: a simulator answers there, so no figure of this run is from hardware."


async def tells_simulated(metrics: MetricsClient) -> bool:
    """True if the server says that it is a simulator; one without metrics tells nothing."""
    try:
        return is_simulated(await metrics.scrape())
    except ServerError:
        return False


async def mark_if_simulated(folder: RunFolder, metrics: MetricsClient) -> bool:
    """True if the run's manifest says so from now on and did not before."""
    manifest = folder.manifest()
    if manifest.simulated or not await tells_simulated(metrics):
        return False
    folder.write_manifest(replace(manifest, simulated=True))
    return True
