"""The results of a search: hypotheses, and the translations that are made of them."""

import dataclasses
import math
import string
from collections.abc import Callable, Sequence

from pellucid.core.errors import PellucidError
from pellucid.core.special import STOP_ID
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.suspicious import Warnings

OTHER_WAY_SHARE = 0.1
"""A tenth of the probability of the best. A beam always ends with as many hypotheses as it is wide;
those less likely than this are mostly leftovers of the beam, and mean something else."""
_MARKS = string.punctuation + "…“”„‘’«»‹›–—¡¿。、！？，．：；"


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One finished sequence of ids."""

    ids: tuple[int, ...]
    """Without the stop."""
    score: float
    """Summed log-probabilities over the length penalty; the length counts the stop."""
    token_log_probs: tuple[float, ...]
    """log p(token | prefix, source) under the model, in nats; the stop's comes last."""


@dataclasses.dataclass(frozen=True, repr=False)
class Translation:
    """A translation of a text, with the log-probabilities of the model; ``str()`` is the text."""

    text: str
    score: float
    """Summed log-probabilities over the length penalty, in nats; the length counts the stop."""
    tokens: tuple[str, ...]
    """The target pieces, without the stop."""
    token_log_probs: tuple[float, ...]
    """log p(token | prefix, source) under the model before any penalty; the stop's comes last.
    Empty if the settings' ``token_log_probs`` is off and the engine computed none."""
    n_best: tuple["Translation", ...]
    """Best first, this one included; empty in the translations it holds."""
    source: str
    token_ids: tuple[int, ...] = ()
    """The ids of ``tokens``; empty if the translator does not return them."""
    source_tokens: tuple[str, ...] = ()
    """The pieces of the source that the model read, without the stop."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """(source token, target token) by number, from 0, in order; None unless ``align`` is set."""
    word_alignment: tuple[tuple[int, int], ...] | None = None
    """The same between the words of ``source`` and ``text``, as white space separates them."""
    expected_utility: float | None = None
    """Mean chrF2 against all candidates, in percent; None unless ranked by Bayes risk."""
    truncated: bool = False
    """Whether the source was longer than the model, or the settings, can take."""
    sentences: tuple["Translation", ...] = ()
    """The translation of each sentence, if the source was split. Then ``score`` is the sum of
    theirs, and all that counts tokens has a ``[STOP]`` between two sentences."""
    warnings: Warnings = ()
    """Why this translation should not be trusted; of a split source, those of its sentences."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        # The fields that people look at; all others have names to ask for.
        kinds = sorted({each.kind for each in self.warnings})
        warnings = f", warnings={kinds}" if kinds else ""
        return f"Translation(text={self.text!r}, score={self.score:.4g}{warnings})"

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability of a token, the stop included; 1 if empty.

        NaN where there are no log-probabilities.
        """
        if not self.token_log_probs:
            return math.nan if self.tokens else 1.0
        # the stop counts as a token, as in training
        mean = math.fsum(self.token_log_probs) / len(self.token_log_probs)
        return math.exp(min(-mean, 709.0))  # exp(710) is beyond a double

    def other_ways(self, share: float = OTHER_WAY_SHARE) -> list[tuple["Translation", float]]:
        """Those of ``n_best`` with other words that are likely enough, the likeliest first.

        Each comes with its probability divided by that of this translation, at least ``share``.
        Words that differ in case or in punctuation around them are the same. Probabilities are
        those of whole sentences, without the length penalty. None is given where
        there are no log-probabilities.
        """
        if not self.token_log_probs:
            return []
        own = math.fsum(self.token_log_probs)

        found = [
            # clipped at 709, as exp(710) is beyond a double
            (each, math.exp(min(math.fsum(each.token_log_probs) - own, 709.0)))
            for each in self.n_best
            if each.token_log_probs
        ]

        seen = {_words_of(self.text)}
        ways = []
        for each, ratio in sorted(found, key=lambda way: -way[1]):
            words = _words_of(each.text)
            if ratio >= share and words not in seen:
                seen.add(words)
                ways.append((each, ratio))

        return ways


@dataclasses.dataclass(frozen=True)
class Alternative:
    """A token that may come next, and the best translation with it."""

    token: str
    """As in ``Translation.tokens``; ``[STOP]`` ends the translation."""
    probability: float
    """p(token | prefix, source) under the model."""
    translation: Translation
    """The best one that begins with the prefix and this token."""


def _words_of(text: str) -> tuple[str, ...]:
    """The words of a text as they count for its meaning; the text itself if it has none."""
    words = tuple(word.strip(_MARKS) for word in text.casefold().split())
    return tuple(word for word in words if word) or (text,)


Penalty = Callable[[int], float]
"""Maps the length of a sequence, with its stop, to the divisor of its log-probability."""


def make_hypothesis(
    ids: Sequence[int], token_log_probs: Sequence[float], penalty: Penalty
) -> Hypothesis:
    """Score a sequence; ``ids`` and ``token_log_probs`` end with the stop.

        score = Σ log p / penalty(length)

    Every search computes its scores here, so equal tokens have equal scores. Raises PellucidError
    if the model gave NaN or infinity.
    """
    assert len(ids) == len(token_log_probs) >= 1
    assert ids[-1] == STOP_ID
    # exact, so the order in which a search summed makes no difference
    total = math.fsum(token_log_probs)
    if not math.isfinite(total):
        raise PellucidError(
            f"the model must give each token a finite log-probability, got {total} in sum",
            hint="its weights may hold NaN or infinity, or its output rules out every token",
        )

    return Hypothesis(
        ids=tuple(ids[:-1]),
        score=total / penalty(len(ids)),
        token_log_probs=tuple(token_log_probs),
    )


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

    attention = None
    if settings.align or settings.replace_unknown:
        from pellucid.decoding.attention import aligned, attention_of_lines

        attention = attention_of_lines(lines, found, bundle, settings)

    results = []
    for number, (line, hypotheses) in enumerate(zip(lines, found, strict=True)):
        n_best = [write_hypothesis(line, each, bundle) for each in hypotheses]
        if attention is not None:
            n_best = [
                aligned(each, line, hypothesis, weights, bundle, settings)
                for each, hypothesis, weights in zip(
                    n_best, hypotheses, attention[number], strict=True
                )
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
