"""What a server's command line says, in each form that vLLM takes."""

import pytest

from loadgen.analysis.server_words import largest, oldest_version, whole
from loadgen.store.model import ServerFacts


def server(*command: str, version: str | None = None, **effective: object) -> ServerFacts:
    return ServerFacts("p", 0, "http://h", "m", version, 1.0, ("vllm", "serve", "m", *command), effective)


@pytest.mark.parametrize(
    "words",
    [
        ("-dp", "2"),
        ("-dp=2",),
        ("--data_parallel_size", "2"),
        ("--data-parallel-size=2",),
        ("--data_parallel_size=2", "--port", "8000"),
        ("--data-parallel-size", "4", "-dp", "2"),
    ],
)
def test_data_parallel_in_every_form(words: tuple[str, ...]) -> None:
    assert whole([server(*words)], "data_parallel_size") == 2


@pytest.mark.parametrize("words", [("--max-num-seqs", "64"), ("--max_num_seqs=64",), ("--max_num_seqs", "64")])
def test_max_num_seqs_in_every_form(words: tuple[str, ...]) -> None:
    assert whole([server(*words)], "max_num_seqs") == 64


@pytest.mark.parametrize(
    "words",
    [
        ("--max-cudagraph-capture-size", "256"),
        ("--max_cudagraph_capture_size=256",),
        ("--cudagraph-capture-sizes", "1", "2", "256"),
        ("--compilation-config", '{"cudagraph_capture_sizes": [1, 256]}'),
        ("-cc", '{"max_cudagraph_capture_size": 256}'),
        ("-cc.max_cudagraph_capture_size=256",),
    ],
)
def test_the_largest_graph_in_every_form(words: tuple[str, ...]) -> None:
    assert whole([server(*words)], "max_graph_size") == 256


@pytest.mark.parametrize("words", [(), ("-dp",), ("-dp", "x"), ("-dpl", "2"), ("-cc", "{"), ("-cc", "[1]"), ("-O3",)])
def test_what_is_not_said_is_unknown(words: tuple[str, ...]) -> None:
    assert whole([server(*words)], "data_parallel_size") is None
    assert whole([server(*words)], "max_graph_size") is None


def test_the_server_knows_better_than_its_command_and_any_server_counts() -> None:
    assert whole([server("-dp", "2", data_parallel_size=1)], "data_parallel_size") == 1
    assert largest([server(data_parallel_size=1), server("-dp", "2")], "data_parallel_size") == 2


def test_the_oldest_version_decides() -> None:
    servers = [server(version="0.26.0"), server(version="0.9.2"), server(version="0.32.0rc1"), server()]
    assert oldest_version(servers) == "0.9.2"
    assert oldest_version([server(version="dev")]) == "dev"
    assert oldest_version([server()]) is None
