"""Which GPUs a server gets, and who else may be on them."""

import pytest

from loadgen.engines.docker_compose import Service
from loadgen.engines.docker_gpu import GpuUse, check_fit, gpu_group, memory_share, overlap, wanted_gpus
from loadgen.errors import ServerError, UsageError

WORDS = ("vllm", "serve", "m", "--gpu-memory-utilization", "0.90", "--tensor-parallel-size", "1")


def service(*, count: int | None = 1, ids: tuple[str, ...] = (), words: tuple[str, ...] = WORDS) -> Service:
    return Service("vllm/vllm-openai:v0.32.0", words, None if ids else count, ids)


def use(name: str, *gpus: str, share: float | None = 0.9) -> GpuUse:
    return GpuUse(name, frozenset(gpus) if gpus else None, share)


@pytest.mark.parametrize(
    ("words", "share"),
    [
        (WORDS, 0.9),
        ((*WORDS, "--gpu-memory-utilization=0.45"), 0.45),
        (("vllm", "serve", "m"), 0.92),
        (("python3", "train.py"), None),
    ],
)
def test_the_share_is_the_last_one_said(words: tuple[str, ...], share: float | None) -> None:
    assert memory_share(words) == share


def test_a_share_that_is_no_number_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="--gpu-memory-utilization much is no number"):
        memory_share(("vllm", "--gpu-memory-utilization", "much"))


def test_docker_takes_the_first_gpus_for_a_count() -> None:
    assert wanted_gpus(service(count=2)) == frozenset({"0", "1"})
    assert wanted_gpus(service(count=-1)) is None
    assert wanted_gpus(service(ids=("2", "3"))) == frozenset({"2", "3"})
    assert overlap(None, frozenset({"7"}))
    assert not overlap(frozenset({"0"}), frozenset({"1"}))


def test_c90_two_servers_on_one_gpu_are_refused_unless_their_shares_fit() -> None:
    gpu = frozenset({"0"})
    with pytest.raises(ServerError, match=r"GPU 0 is taken: with 0\.90 for this server and old \(0\.48\), 1\.38 of"):
        check_fit(gpu, 0.9, [use("old", "0", share=0.48)])
    with pytest.raises(ServerError, match="GPU 0 is taken"):
        check_fit(gpu, 0.9, [use("all of them", share=0.9)])

    assert check_fit(gpu, 0.9, [use("elsewhere", "1")]) == []
    (warning,) = check_fit(gpu, 0.48, [use("small", "0", share=0.48)])
    assert "Container small is on GPU 0 too" in warning
    (warning,) = check_fit(gpu, 0.9, [use("no vLLM", "0", share=None)])
    assert "falls into the measurement" in warning


def test_side_by_side_gives_each_server_gpus_of_its_own() -> None:
    first = gpu_group(service(), 2, [])
    second = gpu_group(service(), 2, [use("first", *first)])
    assert (first, second) == (("0",), ("1",))
    with pytest.raises(ServerError, match="needs 1 more GPU than the 2 here"):
        gpu_group(service(), 2, [use("first", "0"), use("second", "1")])


def test_side_by_side_keeps_groups_whole_and_away_from_strangers() -> None:
    parallel = (*WORDS, "--tensor-parallel-size", "2")
    assert gpu_group(service(count=2), 4, [use("first", "0", "1")]) == ("2", "3")
    assert gpu_group(service(ids=("4", "5", "6", "7"), words=parallel), None, [use("first", "4", "5")]) == ("6", "7")
    assert gpu_group(service(), 2, [], [use("stranger", "0")]) == ("1",)
    with pytest.raises(ServerError, match="needs 2 more GPUs than the 3 here"):
        gpu_group(service(count=2), 3, [use("first", "0", "1")])


def test_gpus_that_cannot_be_counted_must_be_named() -> None:
    with pytest.raises(ServerError, match="name them with GPU_IDS"):
        gpu_group(service(), None, [])
