"""Expectations of a run before it begins, and a verdict on its model when it has ended.

Both are rules of thumb with a reason beside each number; only reading translations tells more.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

from pellucid.evaluation.scoring import TITLES

Level = Literal["useless", "rough", "usable"]

_BOUNDS: Mapping[str, tuple[float, float]] = {
    "bleu": (10.0, 30.0),
    "chrf": (30.0, 50.0),
    "exact_match": (10.0, 50.0),
}
"""Below the first figure a model is useless, from the second on usable; in percent. BLEU: above 30
translations are understandable, above 50 good and fluent (Lavie 2010, "Evaluating the output of
machine translation systems", tutorial at AMTA), and below 10 the gist is missed. chrF: on Tatoeba
48.9 went with a BLEU of 33.3 and 55.6 with one of 39.9 (docs/figures.md). Exact matches: more lines
right than wrong."""

_MEANS: Mapping[Level, str] = {
    "useless": "hardly a sentence says what its source says",
    "rough": "the gist with many errors; to be read beside the source",
    "usable": "understandable on text of the kind it was trained on",
}
_FEW_PASSES = 10.0
"""Over the text: with fewer a longer run helps most, with more only more text does
(docs/training.md, section 6)."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How good a model is by the figure that decided in its run."""

    level: Level
    figure: str
    """A name of ``METRICS``."""
    score: float
    """The best value of the figure, in percent."""
    advice: str
    """Advice; empty for a model that is usable, and where it is not known how often it read its
    text."""

    def __str__(self) -> str:
        unit = "%" if self.figure == "exact_match" else ""
        shown = f"{TITLES[self.figure]} {self.score:.1f}{unit}"
        line = f"{self.level}: {_MEANS[self.level]} (validation {shown})"
        return f"{line}; {self.advice}" if self.advice else line


def level_of(figure: str, score: float) -> Level:
    """The level of a validation figure."""
    useless, usable = _BOUNDS[figure]
    if score < useless:
        return "useless"
    return "rough" if score < usable else "usable"


def verdict(
    figure: str | None,
    score: float | None,
    passes: float | None = None,
    pairs: float = math.inf,
) -> Verdict | None:
    """How good a model is whose best validation has this score.

    ``passes`` is how often the text was read; without it there is no advice. ``pairs`` is how many
    it has. None where nothing was validated, or only the loss, which says nothing of translations,
    and for a score of NaN.
    """
    if figure is None or figure not in _BOUNDS or score is None or math.isnan(score):
        return None
    level = level_of(figure, score)
    if level == "usable" or passes is None:
        return Verdict(level, figure, score, "")
    read = f"the text was read {passes:.1f} times"
    is_enough = pairs >= _FEWEST_PAIRS or figure == "exact_match"
    first = (
        f"a longer run would help ({read}), then more text of the same kind"
        if passes < _FEW_PASSES and is_enough
        else f"more text of the same kind would help, a longer run hardly ({read})"
    )
    return Verdict(
        level, figure, score, f"{first}, or fine-tuning an imported model (pellucid import)"
    )


@dataclasses.dataclass(frozen=True)
class Expectation:
    """The probable quality of a run's model."""

    level: Level
    why: str

    def __str__(self) -> str:
        return f"expect a model that is {self.level} ({_MEANS[self.level]}): {self.why}"


FINE_TUNED = (
    "expect a model about as good as the one it begins with, and better on text of this kind; the"
    " first validation shows how good that is"
)
"""The expectation of a run with ``--init``."""
_LONG_WORDS = 18.0
"""Words a line, on the target side. Captions and everyday sentences have 7 to 11, Europarl 25."""
_ENOUGH_PAIRS = 15_000
"""6,000 captions gave 31.0 BLEU after forty passes and 70 minutes, 29,000 gave 40.3 in thirty
minutes, and 19,500 pairs of Europarl 16.6 (benchmarks/results/auto.md). With fewer pairs nothing
usable was measured, of no kind of text; nor was it of long sentences, with however many."""
_FEWEST_PAIRS = 300
"""From 29,000 captions with 42.4 BLEU to 6,000 with 31.0 each halving costs 5 (docs/figures.md), so
that 300 would have less than 10. What is spelled, or has no new words, needs fewer."""
_LEAST_TOKENS = 20_000
"""With fewer nothing is learned of any text: they are some tens of updates."""
_ROUGH_TOKENS, _USABLE_TOKENS, _LONG_TOKENS = 400_000, 1_500_000, 2_000_000
"""Target tokens learned from, with repetitions, after which short sentences are rough and usable,
and long ones rough. 20,000 short sentences had a BLEU of 0.2 after about 150,000. After 1.6 million
captions had 35, everyday sentences 40, and after 2.1 million Europarl had 13, all greedily and
before the end of a run (benchmarks/results/auto.md)."""
MORE_TOKENS = _ROUGH_TOKENS, _USABLE_TOKENS, _LONG_TOKENS
"""The amounts at which another quality may be expected."""


def expectation(
    pairs: int,
    words: float,
    tokens: float,
    *,
    is_exact: bool,
    is_closed: bool,
    lacks: str = "more minutes",
    has_copies: bool = False,
) -> Expectation:
    """Predict the quality of a model from so much text and time.

    ``words`` is the mean number in a target line, ``tokens`` how many target tokens will be learned
    from, or infinity if only a clock limits them. ``is_exact`` says that the target is no natural
    language, ``is_closed`` that new text has no new words. ``lacks`` is what would give more
    tokens. ``has_copies`` says that the text has more than these ``pairs``, copies of them.
    """
    text = f"{pairs:,} {'different ' if has_copies else ''}pairs of {words:.0f} words"
    amount = f"about {tokens:,.0f} target tokens learned from {text}"

    if math.isinf(tokens):
        amount = f"{text}, given minutes enough"

    if pairs < _FEWEST_PAIRS and not (is_closed or is_exact):
        return Expectation(
            "useless",
            f"{amount}, which is too little text, whatever the minutes: give it thousands of pairs,"
            " or fine-tune an imported model (pellucid import)",
        )
    if is_closed and _LEAST_TOKENS <= tokens < _ROUGH_TOKENS:
        return Expectation("rough", f"{amount} without new words; so little was not measured")
    if tokens < _ROUGH_TOKENS:
        return Expectation("useless", f"{amount}, which is too little: give it {lacks}")

    is_enough = pairs >= _ENOUGH_PAIRS
    if is_closed:
        return Expectation(
            "usable" if is_enough else "rough",
            f"{amount} without new words; 20,000 such had 99.2% exactly right in 5 minutes",
        )

    if is_exact:
        return Expectation(
            "usable" if is_enough and tokens >= _USABLE_TOKENS else "rough",
            f"{amount}; 114,000 pronunciations had 61.2% exactly right after 30 minutes",
        )

    if words > _LONG_WORDS:
        level: Level = "rough" if is_enough and tokens >= _LONG_TOKENS else "useless"
        return Expectation(
            level,
            f"{amount}; 19,500 pairs of 25 words had BLEU 16.6 after 30 minutes. For long sentences"
            " of a free kind fine-tune an imported model, or take hundreds of thousands of pairs"
            " and hours",
        )

    if not is_enough or tokens < _USABLE_TOKENS:
        return Expectation(
            "rough",
            f"{amount}; 6,000 captions had BLEU 31.0 after 70 minutes, 29,000 had 40.3 after 30",
        )

    return Expectation(
        "usable",
        f"{amount}; 29,000 captions had BLEU 40.3 after 30 minutes, 164,000 everyday sentences"
        " 46.7, and 52.1 after two hours",
    )
