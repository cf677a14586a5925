"""Model drafts keep their rates; suffix decoding learns; noise is what it says."""

import statistics

import pytest

from loadgen.simulator.acceptance import conditional_rates, drawn_table, survival
from loadgen.simulator.config import EngineConfig
from loadgen.simulator.noise import Noise, NoiseSource
from loadgen.simulator.suffix import SuffixIndex, SuffixProposer
from loadgen.simulator.text import TextModel


def test_synthetic_rates_are_unconditional_and_exact() -> None:
    config = EngineConfig("p", method="eagle3", k=3, synthetic_rates=(0.7, 0.49, 0.343))
    text = TextModel()
    accepted = []
    for prompt in range(40):
        answer = text.continuation((1000 + prompt, 77, 78))
        accepted += drawn_table(answer, config, until=1000).accepted
    for position, rate in enumerate((0.7, 0.49, 0.343)):
        assert sum(a > position for a in accepted) / len(accepted) == pytest.approx(rate, abs=0.008)


def test_zero_synthetic_rates_accept_nothing() -> None:
    config = EngineConfig("p", method="draft_model", k=4, synthetic_rates=(0.0,) * 4)
    assert set(drawn_table(TextModel().continuation((500,)), config, until=500).accepted) == {0}


def test_prompts_differ_in_their_rates_only_if_asked() -> None:
    config = EngineConfig("p", method="eagle", k=3)
    assert len({conditional_rates(config, key, per_prompt=True) for key in range(20)}) == 20
    assert len({conditional_rates(config, key, per_prompt=False) for key in range(20)}) == 1
    assert survival((0.5, 0.5)) == (0.5, 0.25)


def proposer() -> SuffixProposer:
    return SuffixProposer(factor=1.0, min_prob=0.1, depth=24, kept=100)


def test_suffix_drafts_grow_with_the_match() -> None:
    index = SuffixIndex()
    index.extend([1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3])
    assert proposer().propose(index, 11, 8) == (4, 5, 6)  # three matched tokens, factor 1
    assert proposer().propose(index, 11, 2) == (4, 5)
    assert proposer().propose(index, 8, 8) == ()


def test_suffix_follows_the_more_frequent_continuation() -> None:
    index = SuffixIndex()
    index.extend([1, 2, 5, 1, 2, 6, 1, 2, 6, 9, 1, 2])
    assert proposer().propose(index, 12, 1) == (6,)


def test_suffix_learns_from_earlier_responses() -> None:
    learner = proposer()
    index = SuffixIndex()
    index.extend([50, 51, 52, 53])
    assert learner.propose(index, 4, 4) == ()
    learner.learn([51, 52, 53, 54, 55, 56, 57])
    assert learner.propose(index, 4, 4) == (54, 55, 56)


def test_noise_off_is_exactly_one() -> None:
    assert {NoiseSource(Noise()).factor(t) for t in (0.0, 1.0, 50.0)} == {1.0}


def test_noise_has_the_spread_it_names_and_follows_its_seed() -> None:
    jitter = [NoiseSource(Noise(jitter=0.02, seed=1))]
    values = [jitter[0].factor(0.0) for _ in range(2000)]
    assert statistics.pstdev(values) == pytest.approx(0.02, rel=0.1)
    starts = [NoiseSource(Noise(start_effect=0.01, seed=s)).start_factor for s in range(500)]
    assert statistics.pstdev(starts) == pytest.approx(0.01, rel=0.15)
    assert starts[3] == NoiseSource(Noise(start_effect=0.01, seed=3)).start_factor
    slow = NoiseSource(Noise(slow_share=0.3, slow_factor=1.5, slow_phase_s=2.0))
    phases = [slow.factor(2.0 * i + 1.0) for i in range(1000)]
    assert set(phases) == {1.0, 1.5}
    assert phases.count(1.5) / 1000 == pytest.approx(0.3, abs=0.05)
