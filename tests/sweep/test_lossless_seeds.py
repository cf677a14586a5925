"""Seeds go to servers that survive them."""

import pytest

from loadgen.errors import UsageError
from loadgen.sweep.lossless_seeds import decide_seeds

CUDA, CPU = {"device": "cuda"}, {"device": "cpu"}


@pytest.mark.parametrize(
    ("servers", "sent", "why"),
    [
        ({"baseline": CUDA, "ngram": CUDA}, True, "on a GPU"),
        ({"baseline": CUDA}, True, "on a GPU"),
        ({"baseline": CPU}, False, "on a CPU"),
        ({"baseline": CUDA, "ngram": CPU}, False, "on a CPU"),
        ({"baseline": {}, "ngram": CUDA}, False, "do not tell"),
        ({}, False, "do not tell"),
        ({"baseline": {"device": "xpu"}}, False, "do not tell"),
    ],
)
def test_the_device_decides(servers: dict[str, dict[str, str]], sent: bool, why: str) -> None:
    found = decide_seeds("auto", servers, simulated=False)

    assert found.sent is sent
    assert why in found.why


def test_the_simulator_takes_seeds_and_a_word_decides_over_all() -> None:
    assert decide_seeds("auto", {}, simulated=True).sent
    assert not decide_seeds("off", {"b": CUDA}, simulated=True).sent
    assert decide_seeds("on", {"b": CPU}, simulated=False).sent
    assert "as asked" in decide_seeds("on", {"b": CPU}, simulated=False).why
    with pytest.raises(UsageError, match="known ones"):
        decide_seeds("maybe", {}, simulated=False)
