"""Forced decoding says of a translation what the search said when it found it."""

import math

import pytest
from small_bundle import SENTENCES, small_bundle, tokenizer

from pellucid.core.errors import DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.translator import Translator


@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_search_gives_the_models_own_log_probabilities(beam_size):
    """Cached, batched and reordered, the search must agree with one pass over the true prefix."""
    small = Translator(
        small_bundle(kind="word"),
        DecodingConfig(beam_size=beam_size, n_best=beam_size, max_length=8),
    )
    found = small.translate([s for s in SENTENCES if s.strip()])
    pairs = [(t, n) for t in found for n in t.n_best if "[UNK]" not in n.tokens]
    assert len(pairs) >= 3
    scored = small.score([t.source for t, _ in pairs], [n.text for _, n in pairs])
    for (_, found), forced in zip(pairs, scored, strict=True):
        assert forced.tokens == found.tokens
        assert forced.token_log_probs == pytest.approx(found.token_log_probs, abs=1e-10)
        assert forced.score == pytest.approx(found.score, abs=1e-10)
        assert forced.text == found.text


def test_scores_do_not_depend_on_neighbors():
    small = Translator(small_bundle(), DecodingConfig())
    targets = list(SENTENCES[::-1])
    together = small.score(SENTENCES, targets)
    for source, target, scored in zip(SENTENCES, targets, together, strict=True):
        [alone] = small.score([source], [target])
        assert alone.token_log_probs == pytest.approx(scored.token_log_probs, abs=1e-10)
        assert scored.text == target
        assert len(scored.token_log_probs) == len(scored.tokens) + 1
        assert scored.perplexity == pytest.approx(
            math.exp(-sum(scored.token_log_probs) / len(scored.token_log_probs))
        )


def test_nothing_to_score_gives_nothing():
    assert Translator(small_bundle(), DecodingConfig()).score([], []) == []


def test_unequal_counts_and_targets_that_are_too_long_are_refused():
    small = Translator(small_bundle(positions="learned"), DecodingConfig())
    with pytest.raises(
        DataError, match="each source needs one target, got 1 sources and 2 targets"
    ):
        small.score(["a"], ["b", "c"])
    count = len(tokenizer().encode("chat " * 30))
    with pytest.raises(
        DataError, match=f"a target must have at most 23 tokens for this model, got {count}"
    ):
        small.score(["a"], ["chat " * 30])
    with pytest.raises(DataError, match="line 1 must be a string, got NoneType"):
        small.score(["a"], [None])
