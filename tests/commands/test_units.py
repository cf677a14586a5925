"""Quantities with units, read strictly."""

import pytest

from loadgen.commands import units
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("0.5s", 0.5), ("2min", 120.0), ("1h", 3600.0), ("30us", 3e-5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert units.duration(text, "--think") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["500", "0.5", "5 ms", "ms", "-1s", "1e3ms", "0s", "1s1", "1,5s", "500MS", ""])
def test_a_duration_without_its_unit_or_odd_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--think"):
        units.duration(text, "--think")


def test_rates() -> None:
    assert units.rate("12/s") == 12
    assert units.rate("720/min") == 12
    assert units.rate("3600/h") == 1
    for text in ("12", "12/m", "/s", "12/ s", "0/s", "-1/s"):
        with pytest.raises(UsageError, match="--rate"):
            units.rate(text)


def test_shares() -> None:
    assert units.share("20%", "--headroom") == pytest.approx(0.2)
    assert units.share("0.2", "--headroom") == pytest.approx(0.2)
    for text in ("20", "120%", "-1%", "a"):
        with pytest.raises(UsageError, match="--headroom"):
            units.share(text, "--headroom")


def test_objectives() -> None:
    one = units.slo("ttft_p99.9=500ms")
    assert (one.metric, one.name) == ("ttft", "ttft_p99.9")
    assert one.quantile == pytest.approx(0.999)
    assert one.limit_s == 0.5
    for text in ("ttft=500ms", "ttft_p99", "ttft_p99=500", "itl_p99=1ms", "ttft_p100=1s", "ttft_p0=1s", "TTFT_p99=1s"):
        with pytest.raises(UsageError, match="--slo"):
            units.slo(text)


def test_objectives_must_be_there_and_agree() -> None:
    with pytest.raises(UsageError, match="--slo is missing"):
        units.slos([])
    with pytest.raises(UsageError, match="twice"):
        units.slos(["ttft_p99=500ms", "ttft_p99=1s"])


def test_a_mix_adds_up_to_one() -> None:
    assert units.mix("code-edit=0.7,chat=30%") == (("code-edit", 0.7), ("chat", 0.3))
    for text in ("code-edit=0.7", "code-edit=0.7,chat=0.4", "code-edit,chat", "chat=0.5,chat=0.5", "a=1,b=0", ""):
        with pytest.raises(UsageError, match="--mix"):
            units.mix(text)
