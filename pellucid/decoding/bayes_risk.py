"""Minimum Bayes risk: the candidate that is most like all the others."""

import math
from collections.abc import Sequence

from sacrebleu.metrics.chrf import CHRF

from pellucid.decoding.result import Hypothesis


def posterior(hypotheses: Sequence[Hypothesis]) -> list[float]:
    """The probabilities of an n-best list, normalized to sum to one."""
    log_probs = [math.fsum(hypothesis.token_log_probs) for hypothesis in hypotheses]
    # subtracted first, as exp of a long sentence's log-probability underflows
    largest = max(log_probs)
    shares = [math.exp(log_prob - largest) for log_prob in log_probs]
    return [share / math.fsum(shares) for share in shares]


def expected_utilities(texts: Sequence[str], weights: Sequence[float]) -> list[float]:
    """The mean chrF2 of each text against all of them, in percent.

        u(h) = Σᵣ p(r) chrF2(h, r)

    Source: Kumar and Byrne (2004), eq. (2); Eikema and Aziz (2020), §5, with samples of weight
    1/n. chrF2 is sacrebleu's (Popović 2015).
    """
    metric = CHRF()
    scores: dict[tuple[str, str], float] = {}
    # repeated texts, which sampling often draws, are scored once
    for hypothesis in dict.fromkeys(texts):
        for reference in dict.fromkeys(texts):
            score = metric.sentence_score(hypothesis, [reference]).score
            scores[hypothesis, reference] = score

    return [
        math.fsum(
            weight * scores[text, reference]
            for weight, reference in zip(weights, texts, strict=True)
        )
        for text in texts
    ]
