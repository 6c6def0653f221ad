"""Translations of words that are learned from pairs of sentences."""

import itertools
import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from pellucid.text import lexicon
from pellucid.text.lexicon import learn_lexicon

THE, HOUSE, BOOK, A = 10, 11, 12, 13
DAS, HAUS, BUCH, EIN = 4, 5, 6, 7


def test_the_translation_of_a_word_is_what_its_sentences_share():
    learned = learn_lexicon(
        [((DAS, HAUS), (THE, HOUSE)), ((DAS, BUCH), (THE, BOOK)), ((EIN, BUCH), (A, BOOK))]
    )
    best = [learned.best(word, 1).tolist() for word in (DAS, HAUS, BUCH, EIN)]
    assert best == [[THE], [HOUSE], [BOOK], [A]]
    assert learned.best(HAUS, 5).tolist() == [HOUSE, THE]
    assert learned.best(99, 5).tolist() == []


Pairs = list[tuple[Sequence[int], Sequence[int]]]


def by_definition(pairs: Pairs, rounds: int) -> dict[tuple[int, int], float]:
    """IBM Model 1 as Brown et al. write it, one word after another."""
    links = [({-1, *source}, target) for source, target in pairs]
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in links:
            for f in target:
                total = sum(t[f, e] for e in source)
                for e in source:
                    counts[f, e] += t[f, e] / total
        totals: dict[int, float] = defaultdict(float)
        for (_, e), count in counts.items():
            totals[e] += count
        t = {(f, e): count / totals[e] for (f, e), count in counts.items()}
    return {(f, e): p for (f, e), p in t.items() if e != -1}


@pytest.mark.parametrize("seed", range(5))
def test_the_probabilities_are_those_of_the_definition(seed: int):
    draw = random.Random(seed)
    pairs: Pairs = [
        (
            [draw.randrange(9) for _ in range(draw.randrange(6))],
            [draw.randrange(7) for _ in range(draw.randrange(6))],
        )
        for _ in range(40)
    ]
    learned = learn_lexicon(pairs)
    entries = zip(learned.targets.tolist(), learned.sources.tolist(), strict=True)
    found = dict(zip(entries, learned.probabilities.tolist(), strict=True))
    expected = by_definition(pairs, rounds=5)
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(p, rel=1e-12) for pair, p in expected.items())
    sums = np.bincount(learned.sources, learned.probabilities)
    assert np.allclose(sums[np.unique(learned.sources)], 1.0)
    assert (np.diff(learned.sources) >= 0).all()


@pytest.mark.parametrize("pairs", [[], [((), ())], [((1, 2), ())], [((), (1, 2))]])
def test_nothing_is_learned_of_pairs_with_an_empty_side(pairs: Pairs):
    assert learn_lexicon(pairs).best(1, 9).tolist() == []


def test_of_too_long_a_text_evenly_spaced_pairs_are_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lexicon, "_MOST_LINKS", 20)
    learned = learn_lexicon(((number,), (number + 100,)) for number in range(64))
    kept = learned.sources.tolist()
    assert 5 <= len(kept) <= 10
    assert len({later - earlier for earlier, later in itertools.pairwise(kept)}) == 1
    assert kept[0] == 0
    assert (learned.targets == learned.sources + 100).all()
