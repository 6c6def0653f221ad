"""Minimum Bayes risk with chrF2."""

import math

import pytest
from sacrebleu.metrics.chrf import CHRF
from small_bundle import SENTENCES, small_bundle

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.translator import Translator
from pellucid.decoding.writing import expected_utilities, posterior


def test_the_candidate_that_is_most_like_the_others_wins_over_the_likeliest():
    """The likeliest (.4) is like nothing else; the two others (.3 each) are nearly the same."""
    texts = ["zzzz", "the cat sleeps", "the cat sleep"]
    utilities = expected_utilities(texts, [0.4, 0.3, 0.3])
    assert utilities[0] == pytest.approx(40.0)
    alike = CHRF().sentence_score("the cat sleeps", ["the cat sleep"]).score
    assert utilities[1] == pytest.approx(30.0 + 0.3 * alike)
    assert utilities[1] > utilities[0]


def test_a_candidate_drawn_twice_counts_twice():
    assert expected_utilities(["aaaa", "aaaa", "bbbb"], [1 / 3] * 3) == pytest.approx(
        [200 / 3, 200 / 3, 100 / 3]
    )


def test_the_weights_of_a_list_are_its_probabilities():
    """.3 and .1 of all sentences are three quarters and one quarter of the list."""
    found = [
        Hypothesis((4,), 0.0, (math.log(0.6), math.log(0.5))),
        Hypothesis((5,), 0.0, (math.log(0.1), 0.0)),
    ]
    assert posterior(found) == pytest.approx([0.75, 0.25])
    unlikely = [Hypothesis((4,), 0.0, (-1e30,)), Hypothesis((5,), 0.0, (-1e31,))]
    assert posterior(unlikely) == [1.0, 0.0]


@pytest.mark.parametrize("sampling", [None, {"seed": 3}])
def test_of_all_candidates_the_n_best_by_expected_utility_are_given(sampling):
    bundle = small_bundle()
    base = {"beam_size": 6, "max_length": 6, "sampling": sampling}
    ranked = DecodingConfig.parse({**base, "n_best": 3, "mbr": True})
    candidates = DecodingConfig.parse({**base, "n_best": 6})
    for sentence in SENTENCES[:3]:
        everything = Translator(bundle, candidates).translate(sentence).n_best
        found = Translator(bundle, ranked).translate(sentence)
        log_probs = [math.fsum(t.token_log_probs) for t in everything]
        weights = [1 / 6] * 6 if sampling else [math.exp(p - max(log_probs)) for p in log_probs]
        weights = [weight / sum(weights) for weight in weights]
        metric = CHRF()
        expected = [
            sum(
                weight * metric.sentence_score(one.text, [other.text]).score
                for weight, other in zip(weights, everything, strict=True)
            )
            for one in everything
        ]
        best = sorted(expected, reverse=True)[:3]
        assert [t.expected_utility for t in found.n_best] == pytest.approx(best)
        # two samples may have the same utility but for rounding
        best_texts = {
            t.text
            for t, each in zip(everything, expected, strict=True)
            if each == pytest.approx(best[0])
        }
        assert found.text == found.n_best[0].text
        assert found.text in best_texts
        assert {t.text for t in found.n_best} <= {t.text for t in everything}
