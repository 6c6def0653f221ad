"""Hypotheses of ids written as translations: text, alignment, order of the n best."""

import dataclasses
import math
from collections.abc import Sequence

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis, Translation


def write_translations(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[Translation]:
    """The best translation of each line, with all its n best.

    Raises ConfigError if a setting needs attention and the model has none.
    """
    if settings.coverage_penalty:
        from pellucid.decoding.attention import rank_by_coverage

        found = rank_by_coverage(lines, found, bundle, settings)
    if not settings.mbr:
        # Bayes risk is an expectation over all candidates, so with it none is dropped yet
        found = [hypotheses[: settings.n_best] for hypotheses in found]

    translations = [
        [write_hypothesis(line, each, bundle) for each in hypotheses]
        for line, hypotheses in zip(lines, found, strict=True)
    ]
    if settings.align or settings.replace_unknown:
        from pellucid.decoding.attention import align_lines

        translations = align_lines(translations, lines, found, bundle, settings)

    results = []
    for n_best, hypotheses in zip(translations, found, strict=True):
        # last, as it ranks texts and not ids
        if settings.mbr:
            n_best = _rank_by_risk(n_best, hypotheses, settings)
        results.append(dataclasses.replace(n_best[0], n_best=tuple(n_best)))
    return results


def write_hypothesis(line: ReadLine, hypothesis: Hypothesis, bundle: Translatable) -> Translation:
    """One hypothesis as text."""
    tokenizer = bundle.target_tokenizer
    return Translation(
        text=tokenizer.decode(hypothesis.ids),
        score=hypothesis.score,
        tokens=tuple(tokenizer.tokens(hypothesis.ids)),
        token_log_probs=hypothesis.token_log_probs,
        n_best=(),
        source=line.request.source,
        token_ids=hypothesis.ids,
        source_tokens=tuple(bundle.source_tokenizer.tokens(line.source_ids)),
        truncated=line.truncated,
        warnings=line.warnings,
    )


def blank_translation(line: ReadLine, settings: DecodingConfig) -> Translation:
    """The translation of an empty line."""
    links = () if settings.align else None
    empty = Translation(
        text="",
        score=0.0,
        tokens=(),
        token_log_probs=(),
        n_best=(),
        source=line.request.source,
        alignment=links,
        word_alignment=links,
        truncated=line.truncated,
        warnings=line.warnings,
    )
    return dataclasses.replace(empty, n_best=(empty,))


def _rank_by_risk(
    n_best: Sequence[Translation], hypotheses: Sequence[Hypothesis], settings: DecodingConfig
) -> list[Translation]:
    """Sort by expected utility, highest first; ties keep the order of the search."""
    if settings.sampling is None:
        weights = posterior(hypotheses)
    else:  # samples are weighted by being drawn from the distribution
        weights = [1.0 / len(hypotheses)] * len(hypotheses)
    utilities = expected_utilities([each.text for each in n_best], weights)

    rated = [
        dataclasses.replace(each, expected_utility=utility)
        for each, utility in zip(n_best, utilities, strict=True)
    ]
    return sorted(rated, key=lambda each: -(each.expected_utility or 0.0))[: settings.n_best]


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
    # imported here, as it takes long and few translations need it
    from sacrebleu.metrics.chrf import CHRF

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
