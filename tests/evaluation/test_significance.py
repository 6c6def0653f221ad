"""Chance and difference: against sacrebleu's tests, and where the answer is known beforehand."""

import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from pellucid.core.errors import ConfigError, DataError
from pellucid.evaluation import significance
from pellucid.evaluation.metrics import corpus_score
from pellucid.evaluation.significance import Comparison, PairedScores

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "mat",
    "house",
    "sat",
    "ran",
    "on",
    "in",
    "under",
    "red",
    "big",
    "small",
    "and",
]


def paired_bootstrap(*texts, samples=1000, seed=12345, **options) -> Comparison:
    return PairedScores.of(*texts, **options).bootstrap(samples, seed)


def approximate_randomization(*texts, samples=10_000, seed=12345, **options) -> Comparison:
    return PairedScores.of(*texts, **options).randomization(samples, seed)


def lines(seed: int, count: int = 60) -> list[str]:
    source = random.Random(seed)
    return [" ".join(source.choices(WORDS, k=source.randint(5, 12))) for _ in range(count)]


def spoil(text: list[str], share: float, seed: int) -> list[str]:
    source = random.Random(seed)
    return [
        " ".join(w if source.random() > share else source.choice(WORDS) for w in line.split())
        for line in text
    ]


REFERENCES = lines(0)
GOOD = spoil(REFERENCES, 0.1, seed=1)
ALIKE = spoil(REFERENCES, 0.12, seed=2)
BAD = spoil(REFERENCES, 0.5, seed=3)
REFEREES = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
TESTS = [paired_bootstrap, approximate_randomization]


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize("system", [ALIKE, BAD], ids=["alike", "bad"])
def test_p_values_are_sacrebleus_where_nothing_ties(system, name, monkeypatch):
    """Same seed, same draws; sacrebleu counts one case less for every tie."""
    monkeypatch.setenv("SACREBLEU_SEED", "77")
    named = [("baseline", GOOD), ("system", system)]
    referee = PairedTest(named, {name: REFEREES[name]()}, [REFERENCES], "ar", n_samples=300)
    _, results = referee()
    first, second = next(row for title, row in results.items() if title != "System")
    ours = approximate_randomization(GOOD, system, REFERENCES, metric=name, samples=300, seed=77)
    assert ours.baseline == pytest.approx(first.score)
    assert ours.system == pytest.approx(second.score)
    ties = ours.p_value - second.p_value
    if name == "ter":  # edits are few and whole, so that many samples tie
        assert ties >= 0
    else:
        assert ties == pytest.approx(0)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_both_tests_give_one_p_where_there_are_sentences_enough(name):
    """They count both directions: one that counts one would give half of the other."""
    one, other = spoil(REFERENCES, 0.10, seed=4), spoil(REFERENCES, 0.14, seed=5)
    ours = [test(one, other, REFERENCES, metric=name, samples=400).p_value for test in TESTS]
    assert 0.02 < ours[1] < 0.5
    assert ours[0] == pytest.approx(ours[1], rel=0.3)


@pytest.mark.parametrize("count", [1, 3])
def test_sentences_that_all_differ_alike_tell_nothing_of_chance(count):
    """Every sample has the same difference, so none says how much another text would have."""
    said, worse = ["a b c d"] * count, ["x x x x"] * count
    found = paired_bootstrap(said, worse, said, metric="ter", samples=100)
    assert (found.difference, found.interval, found.p_value) == (100.0, (100.0, 100.0), 1.0)


def test_one_of_two_sentences_resampled_by_hand():
    """It is drawn twice, once or never: the difference is 2δ, δ or 0 with p 1/4, 1/2, 1/4, and its
    distance from the mean δ is as large as δ in half of all samples."""
    said, worse = ["a b c d", "a b c d"], ["x x x x", "a b c d"]
    found = paired_bootstrap(said, worse, said, metric="ter", samples=1000)
    assert 0.45 < found.p_value < 0.55


@pytest.mark.parametrize("test", TESTS)
def test_a_large_difference_is_no_chance_and_a_small_one_may_be(test):
    assert test(GOOD, BAD, REFERENCES, samples=200).p_value == pytest.approx(1 / 201)
    assert test(GOOD, ALIKE, REFERENCES, samples=200).p_value > 0.05


@pytest.mark.parametrize("test", TESTS)
def test_systems_that_say_the_same_do_not_differ(test):
    result = test(GOOD, GOOD, REFERENCES, samples=20)
    assert result.difference == 0
    assert result.p_value == 1


def test_one_different_sentence_proves_nothing():
    """Exchanged or not, the difference is as large: p = 1 by the definition of the test."""
    other = [*GOOD[:-1], "under"]
    assert approximate_randomization(GOOD, other, REFERENCES, samples=50).p_value == 1


def test_all_four_exchanges_of_two_sentences_by_hand():
    """δ is as large when both or neither is exchanged, and 0 otherwise: p near 1/2."""
    said, right = ["a b c d", "x x x x"], ["a b c d", "a b c d"]
    worse = ["x x x x", "x x x x"]
    equal = approximate_randomization(said, worse, right, metric="ter", samples=1000)
    assert equal.p_value == 1  # only the first sentence differs
    both = approximate_randomization(
        ["a b c d", "a b c d"], worse, right, metric="ter", samples=1000
    )
    assert 0.45 < both.p_value < 0.55


def test_the_interval_holds_the_difference_of_resampled_sets():
    result = paired_bootstrap(GOOD, BAD, REFERENCES, samples=200)
    assert result.interval is not None
    low, high = result.interval
    assert low < result.difference < high < 0
    assert approximate_randomization(GOOD, BAD, REFERENCES, samples=5).interval is None


def test_the_interval_holds_95_of_100_samples():
    """One sentence of two is better by 1: a sample of 100 has Bin(100, ½) such sentences."""
    better = np.arange(100.0)[:, None] % 2
    paired = PairedScores(np.zeros_like(better), better, lambda total: float(total[0]), "")
    assert paired.bootstrap(samples=4000).interval == (40.0, 60.0)


@pytest.mark.parametrize("test", TESTS)
def test_the_seed_decides_everything(test):
    first = test(GOOD, ALIKE, REFERENCES, samples=50, seed=0)
    assert test(GOOD, ALIKE, REFERENCES, samples=50, seed=0) == first
    other = test(GOOD, ALIKE, REFERENCES, samples=50, seed=5)
    assert (other.p_value, other.interval) != (first.p_value, first.interval)


@pytest.mark.parametrize("test", TESTS)
def test_drawing_in_parts_changes_nothing(test, monkeypatch):
    """An even number of draws in each part, as the generator hands booleans out by the word."""
    whole = test(GOOD, ALIKE, REFERENCES, samples=64)
    monkeypatch.setattr(significance, "_DRAWS_AT_A_TIME", 16 * len(REFERENCES))
    assert test(GOOD, ALIKE, REFERENCES, samples=64) == whole


@pytest.mark.parametrize(("test", "kind"), [(paired_bootstrap, "bs"), (TESTS[1], "ar")])
def test_the_signature_names_metric_test_samples_and_seed(test, kind):
    result = test(GOOD, BAD, REFERENCES, metric="bleu_lc_tok", language="en", samples=7, seed=9)
    scored = corpus_score("bleu_lc_tok", GOOD, REFERENCES, "en")
    assert result.baseline == pytest.approx(scored.score)
    assert result.signature == f"{scored.signature}|{kind}:7|seed:9"


@pytest.mark.parametrize("test", TESTS)
def test_problems_are_refused(test):
    with pytest.raises(DataError) as error:
        test(["a"], ["a", "b"], ["a", "b"])
    assert str(error.value) == (
        "there must be as many baseline lines as system lines as references,"
        " got 1 baseline lines and 2 system lines and 2 references"
    )
    with pytest.raises(ConfigError, match="samples must be at least 1, got 0"):
        test(["a"], ["a"], ["a"], samples=0)
    with pytest.raises(ConfigError, match="seed must be at least 0, got -1"):
        test(["a"], ["a"], ["a"], seed=-1)


@pytest.mark.parametrize("test", TESTS)
def test_no_global_generator_is_touched(test):
    np.random.seed(4)
    state = np.random.get_state()[1].copy()
    test(GOOD, ALIKE, REFERENCES, samples=3)
    assert (np.random.get_state()[1] == state).all()
