"""The results of a search: hypotheses, and the translations that are made of them."""

import dataclasses
import math
import unicodedata
from collections.abc import Callable, Sequence

from pellucid.core.errors import PellucidError
from pellucid.core.special import EOS_ID
from pellucid.decoding.warnings import Warnings

OTHER_WAY_SHARE = 0.1
"""A tenth of the probability of the best. A beam always ends with as many hypotheses as it is wide;
those less likely than this are mostly leftovers of the beam, and mean something else."""


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One finished sequence of ids."""

    ids: tuple[int, ...]
    """Without the stop."""
    score: float
    """Summed log-probabilities over the length penalty; the length counts the stop."""
    token_log_probs: tuple[float, ...]
    """log p(token | prefix, source) under the model, in nats; the stop's comes last."""

    @property
    def mean_log_prob(self) -> float:
        """The mean log-probability of a token, the stop included."""
        return math.fsum(self.token_log_probs) / len(self.token_log_probs)


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
    theirs, and all that counts tokens has an ``[EOS]`` between two sentences."""
    warnings: Warnings = ()
    """Why this translation should not be trusted; of a split source, those of its sentences."""
    quality: float | None = None
    """How good it probably is, from 0 to 1: the chrF, divided by 100, of translations of the
    validation text that were as sure. Of a split source the lowest of its sentences. None where
    nothing was searched, with constraints and samples, and without a calibrated model."""

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

    def mean_log_prob(self, penalty: "Penalty") -> float | None:
        """The mean log-probability of a token, the stop included; None if nothing was searched.

        ``penalty`` is that of the score, by which it is known where the engine gave no tokens'.
        """
        if not self.source_tokens or not self.token_ids:
            return None
        length = len(self.token_ids) + 1
        total = math.fsum(self.token_log_probs) or self.score * penalty(length)
        return total / length

    def other_ways(self, share: float = OTHER_WAY_SHARE) -> list[tuple["Translation", float]]:
        """Return the likely members of ``n_best`` with other words, the likeliest first.

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
    """The token, written as in ``Translation.tokens``; ``[EOS]`` ends the translation."""
    probability: float
    """p(token | prefix, source) under the model."""
    translation: Translation
    """The best one that begins with the prefix and this token."""


def _words_of(text: str) -> tuple[str, ...]:
    """The words of a text as they count for its meaning; the text itself if it has none."""
    words = [word.strip("".join(filter(_is_mark, word))) for word in text.casefold().split()]
    return tuple(filter(None, words)) or (text,)


def _is_mark(character: str) -> bool:
    """Whether it is punctuation, which a sum of money and a formula are not."""
    return unicodedata.category(character)[0] == "P"


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
    assert ids[-1] == EOS_ID
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
