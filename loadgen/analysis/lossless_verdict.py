"""The parts' verdicts as one."""

from collections.abc import Sequence

from loadgen.analysis.lossless_model import GreedyFinding, LosslessFinding, Quality, SamplingFinding


def judge(
    profile: str, against: str, greedy: GreedyFinding | None, sampling: Sequence[SamplingFinding]
) -> LosslessFinding:
    """Differs if any part differs; the same quality only if every part that was asked for was tested."""
    parts = [part.quality for part in ([greedy] if greedy else []) + list(sampling)]
    quality = Quality.SAME if parts else Quality.NOT_TESTED
    for worse in (Quality.NOT_TESTED, Quality.DIFFERS):
        if worse in parts:
            quality = worse
    return LosslessFinding(quality, profile, against, greedy, tuple(sampling))
