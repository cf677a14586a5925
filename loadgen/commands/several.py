"""What commands over several runs share."""

from loadgen.analysis.compare import RunFacts
from loadgen.commands.conclude import find_findings
from loadgen.store.folder import RunFolder


def run_facts(folder: RunFolder) -> RunFacts:
    """One run with what its analysis says now."""
    return RunFacts(folder.manifest(), find_findings(folder), folder.cells(), folder.servers())
