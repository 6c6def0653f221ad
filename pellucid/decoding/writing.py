"""From what a search found to translations: ranked, aligned, spelled."""

import dataclasses
from collections.abc import Sequence

from pellucid.core.special import UNK_ID
from pellucid.decoding.alignment import (
    align_tokens,
    align_words,
    replace_unknown,
    words_of_tokens,
)
from pellucid.decoding.attention import Look, looks
from pellucid.decoding.batching import inference
from pellucid.decoding.bayes_risk import expected_utilities, posterior
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis, Translation
from pellucid.equations.search import coverage_penalty


def write_translations(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[Translation]:
    """The n best of each line as text, the first carrying all.

    Raises ConfigError if alignment is asked of a model without attention.
    """
    if settings.coverage_penalty:
        found = _rank_by_coverage(lines, found, bundle, settings)
    if not settings.mbr:
        found = [hypotheses[: settings.n_best] for hypotheses in found]
    seen = _look(lines, found, bundle, settings) if _needs_looks(settings) else None
    results = []
    for number, (line, hypotheses) in enumerate(zip(lines, found, strict=True)):
        n_best = [write_hypothesis(line, each, bundle) for each in hypotheses]
        if seen is not None:
            n_best = [
                _aligned(each, line, hypothesis, look, bundle, settings)
                for each, hypothesis, look in zip(n_best, hypotheses, seen[number], strict=True)
            ]
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
    """The translation of a line that holds nothing."""
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


def _needs_looks(settings: DecodingConfig) -> bool:
    return settings.align or settings.replace_unknown


def _look(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[list[Look]]:
    pairs = [
        (line.source_ids, hypothesis.ids)
        for line, hypotheses in zip(lines, found, strict=True)
        for hypothesis in hypotheses
    ]
    with inference(bundle.model):
        flat = iter(looks(bundle.model, pairs, settings.align_layer, settings.align_head))
    return [[next(flat) for _ in hypotheses] for hypotheses in found]


def _rank_by_coverage(
    lines: Sequence[ReadLine],
    found: Sequence[Sequence[Hypothesis]],
    bundle: Translatable,
    settings: DecodingConfig,
) -> list[list[Hypothesis]]:
    """Scores with the coverage of the source's words added, its stop left out; best first."""
    seen = _look(lines, found, bundle, settings)
    ranked = []
    for hypotheses, sentence_looks in zip(found, seen, strict=True):
        scored = []
        for hypothesis, look in zip(hypotheses, sentence_looks, strict=True):
            penalty = float(coverage_penalty(look[:, :-1], settings.coverage_penalty))
            scored.append(dataclasses.replace(hypothesis, score=hypothesis.score + penalty))
        ranked.append(sorted(scored, key=lambda hypothesis: -hypothesis.score))
    return ranked


def _aligned(
    translation: Translation,
    line: ReadLine,
    hypothesis: Hypothesis,
    look: Look,
    bundle: Translatable,
    settings: DecodingConfig,
) -> Translation:
    links = align_tokens(look)
    source_words = words_of_tokens(line.source_ids, bundle.source_tokenizer)
    if settings.align:
        target_words = words_of_tokens(hypothesis.ids, bundle.target_tokenizer)
        translation = dataclasses.replace(
            translation,
            alignment=links,
            word_alignment=align_words(links, source_words, target_words),
        )
    if settings.replace_unknown and UNK_ID in hypothesis.ids:
        words = line.request.source.split()
        source_words = [min(word, len(words) - 1) for word in source_words]
        text = replace_unknown(translation.text, hypothesis.ids, links, words, source_words)
        translation = dataclasses.replace(translation, text=text)
    return translation


def _rank_by_risk(
    n_best: Sequence[Translation], hypotheses: Sequence[Hypothesis], settings: DecodingConfig
) -> list[Translation]:
    """Highest expected utility first; of equal ones the one that the search ranked higher."""
    if settings.sampling is None:
        weights = posterior(hypotheses)
    else:  # samples stand for the distribution by being drawn from it
        weights = [1.0 / len(hypotheses)] * len(hypotheses)
    utilities = expected_utilities([each.text for each in n_best], weights)
    rated = [
        dataclasses.replace(each, expected_utility=utility)
        for each, utility in zip(n_best, utilities, strict=True)
    ]
    return sorted(rated, key=lambda each: -(each.expected_utility or 0.0))[: settings.n_best]
