"""`simulate --truth`: wrong settings are one sentence, and no difference is no gain."""

import pytest
from typer.testing import CliRunner

from loadgen.cli import app
from loadgen.errors import UsageError

TRUTH = ("simulate", "--truth", "--levels", "1", "--workload", "code-edit", "--config")


@pytest.mark.parametrize(
    ("profile", "more", "words"),
    [
        ("ngram", ("--vllm-version", "0.9"), "knows vLLM from 0.10.0 on"),
        ("suffix", ("--vllm-version", "0.10"), "method suffix came with"),
        ("ngram", ("--max-model-len", "10"), "max_model_len is 10"),
        ("ngram", ("--noise", "loud"), "no noise 'loud'"),
        ("ngram", ("--fault", "nothing"), "nothing"),
        ("ngram", ("--bug", "nothing"), "nothing"),
        ("ngram", ("--bug", "bonus-shift"), "--truth starts none"),
    ],
)
def test_what_no_truth_can_be_told_of_is_one_sentence(profile: str, more: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        CliRunner().invoke(app, [*TRUTH, profile, *more], catch_exceptions=False)
    assert "\n" not in str(caught.value)


def test_a_profile_against_itself_makes_no_difference() -> None:
    done = CliRunner().invoke(app, [*TRUTH, "baseline"], catch_exceptions=False)
    assert "Speculation makes no difference at these levels." in done.stdout
    assert "pays" not in done.stdout
