"""Forced decoding says of a translation what the search said when it found it."""

import math

import pytest
from small_bundle import SENTENCES, small_bundle, tokenizer

from pellucid.core.errors import DataError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.ensemble import EnsembleBundle
from pellucid.decoding.translator import Translator
from pellucid.model.ensemble import Ensemble

SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "n_best": 4},
    "diverse": {"beam_size": 4, "n_best": 4, "diverse_groups": 2, "diversity_strength": 2.0},
    "sampling": {"n_best": 4, "sampling": {"temperature": 2.0, "top_k": 30, "top_p": 0.9}},
    "must": {"beam_size": 4, "n_best": 4, "must": ("chat noir", "train")},
    "constrained": {
        "beam_size": 3, "n_best": 3, "banned": ("le", "dort"), "prefix": "un train",
        "no_repeat_ngram": 2, "min_length": 4,
    },
    "coverage": {"beam_size": 4, "n_best": 4, "coverage_penalty": 0.5},
    "bayes risk": {"beam_size": 4, "n_best": 4, "mbr": True},
}  # fmt: skip
"""Every way to search."""


def ensemble_bundle() -> EnsembleBundle:
    one, other = small_bundle(seed=1, kind="word"), small_bundle(seed=2, kind="word")
    cutter = tokenizer("word")
    return EnsembleBundle(Ensemble([one.model, other.model]), cutter, cutter)


@pytest.mark.parametrize("bundle", [small_bundle(kind="word"), ensemble_bundle()], ids=type)
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_gives_the_models_own_log_probabilities(name, bundle):
    """log p(token | prefix, source), before any penalty or constraint: cached, batched and
    reordered, a search must agree with one pass over the true prefix."""
    # Copied symbols would be in the text, and not among the tokens that the search found.
    settings = DecodingConfig.parse({"max_length": 8, "copy_symbols": False, **SEARCHES[name]})
    small = Translator(bundle, settings)
    found = small.translate([s for s in SENTENCES if s.strip()])
    pairs = [(t, n) for t in found for n in t.n_best if "[UNK]" not in n.tokens]
    assert len(pairs) >= 3
    scored = small.score([t.source for t, _ in pairs], [n.text for _, n in pairs])
    for (_, found), forced in zip(pairs, scored, strict=True):
        assert forced.tokens == found.tokens
        assert forced.token_log_probs == pytest.approx(found.token_log_probs, abs=1e-10)
        assert forced.text == found.text
        if not settings.coverage_penalty:
            assert forced.score == pytest.approx(found.score, abs=1e-10)


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
