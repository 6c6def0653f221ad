"""Turns hypotheses into translations: ranks, aligns and detokenizes them."""

import dataclasses
from collections.abc import Sequence

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis, Translation


def write_translations(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[Translation]:
    """The best translation of each line, with all its n best.

    Raises ConfigError if alignment is asked of a model without attention.
    """
    if settings.coverage_penalty:
        from pellucid.decoding.attention import rank_by_coverage

        found = rank_by_coverage(lines, found, bundle, settings)
    if not settings.mbr:
        # Bayes risk is an expectation over all candidates, so with it none is dropped yet
        found = [hypotheses[: settings.n_best] for hypotheses in found]

    seen = None
    if settings.align or settings.replace_unknown:
        from pellucid.decoding.attention import aligned, look_at_lines

        seen = look_at_lines(lines, found, bundle, settings)

    results = []
    for number, (line, hypotheses) in enumerate(zip(lines, found, strict=True)):
        n_best = [write_hypothesis(line, each, bundle) for each in hypotheses]
        if seen is not None:
            n_best = [
                aligned(each, line, hypothesis, look, bundle, settings)
                for each, hypothesis, look in zip(n_best, hypotheses, seen[number], strict=True)
            ]
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
    )
    return dataclasses.replace(empty, n_best=(empty,))


def _rank_by_risk(
    n_best: Sequence[Translation], hypotheses: Sequence[Hypothesis], settings: DecodingConfig
) -> list[Translation]:
    """Sort by expected utility, highest first; ties keep the order of the search."""
    from pellucid.decoding.bayes_risk import expected_utilities, posterior

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
