import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\.PHONY: (\S+)$", text, re.MULTILINE)
    assert len(targets) > 8
    shown = make("help").stdout
    for target in targets:
        assert f"make {target} " in shown, target


@pytest.mark.parametrize("word", ["LEVEL=1,2", "PROFIL=ngram", "profile=ngram"])
def test_an_unknown_variable_fails_with_the_known_ones(word: str) -> None:
    found = make("-n", "sweep", word)
    assert found.returncode == 2
    assert "PROFILE" in found.stderr


def test_variables_become_flags() -> None:
    line = make(
        "-n", "sweep", "PROFILE=ngram,suffix", "LEVELS=1,2", "QUICK=1", "WORKLOAD=my file.jsonl", "ARGS=--seed 3"
    ).stdout
    assert "--profile 'ngram,suffix'" in line
    assert "--levels '1,2'" in line
    assert "--quick" in line
    assert "--workload 'my file.jsonl'" in line
    assert "--seed 3" in line


def test_lossless_takes_its_flags_and_refuses_those_of_a_sweep() -> None:
    line = make("-n", "lossless", "PROFILE=ngram", "WORKLOAD=my file.jsonl", "ARGS=--seeds on").stdout
    assert "loadgen lossless --profile 'ngram'" in line
    assert "--workload 'my file.jsonl' --seeds on" in line
    assert "exit 2" not in line
    assert "exit 2" in make("-n", "lossless", "LEVELS=1,2").stdout


def test_quick_can_be_switched_off() -> None:
    assert "--quick" not in make("-n", "sweep", "QUICK=0").stdout
