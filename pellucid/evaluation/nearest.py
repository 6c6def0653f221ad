"""Which of several translations is most like the reference."""

from collections.abc import Sequence
from typing import Literal, assert_never

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

SentenceMetric = Literal["chrf", "bleu"]


def nearest(texts: Sequence[str], reference: str, metric: BLEU | CHRF) -> int:
    """The number of the text with the highest score; of equal ones the first.

    Source: Kim and Rush (2016), §3.3, "sequence-level interpolation".
    """
    scores = [metric.sentence_score(text, [reference]).score for text in texts]
    return max(range(len(texts)), key=scores.__getitem__)


def sentence_metric(name: SentenceMetric) -> BLEU | CHRF:
    """chrF2, or BLEU (13a) that counts only the n-grams a sentence is long enough for."""
    match name:
        case "chrf":
            return CHRF()
        case "bleu":
            return BLEU(tokenize="13a", effective_order=True)
        case _:
            assert_never(name)
