"""From translations to what a client is given."""

import math
from collections.abc import Sequence

from pellucid.decoding.result import Translation
from pellucid.serve.reading import ReadSentence
from pellucid.serve.schema import Candidate, SentenceAnswer, TextAnswer, TranslateRequest


def answer_sentence(
    sentence: ReadSentence, translation: Translation | None, request: TranslateRequest
) -> SentenceAnswer:
    """One sentence; without a translation it had no word to translate."""
    text = "" if translation is None else translation.text
    tokens = [] if translation is None else list(translation.tokens)
    n_best = None
    if wants_n_best(request):
        several = () if translation is None else translation.n_best
        n_best = [Candidate(text=each.text, score=each.score) for each in several]
        n_best = n_best or [Candidate(text=text, score=0.0)]
    return SentenceAnswer(
        source=sentence.place.text,
        source_start=sentence.place.start,
        before=sentence.place.before,
        text=text,
        after=sentence.place.after,
        score=0.0 if translation is None else translation.score,
        truncated=sentence.is_truncated,
        tokens=tokens,
        source_tokens=sentence.tokens,
        confidences=confidences_of(translation) if request.confidences else None,
        alignment=_alignment(translation) if request.alignment else None,
        n_best=n_best,
    )


def answer_text(sentences: Sequence[SentenceAnswer], request: TranslateRequest) -> TextAnswer:
    """A text from its sentences, with the white space that stood between them."""
    n_best = _joined_candidates(sentences) if wants_n_best(request) else None
    alternatives = None
    if request.alternatives:
        others = n_best[1 : request.alternatives + 1] if n_best else []
        alternatives = [each.text for each in others]
    return TextAnswer(
        text="".join(f"{each.before}{each.text}{each.after}" for each in sentences),
        score=math.fsum(each.score for each in sentences),
        truncated=any(each.truncated for each in sentences),
        tokens=[token for each in sentences for token in each.tokens],
        source_tokens=[token for each in sentences for token in each.source_tokens],
        confidences=[p for each in sentences for p in each.confidences or ()]
        if request.confidences
        else None,
        alignment=_joined_alignment(sentences) if request.alignment else None,
        n_best=n_best[: request.n_best] if n_best and request.n_best else None,
        alternatives=alternatives,
        sentences=list(sentences),
    )


def wants_n_best(request: TranslateRequest) -> bool:
    """Whether more than the best translation is asked for."""
    return request.n_best is not None or request.alternatives > 0


def confidences_of(translation: Translation | None) -> list[float]:
    """p(token | those before it, source) of each token, the stop left out."""
    if translation is None:
        return []
    log_probs = translation.token_log_probs[: len(translation.tokens)]
    return [math.exp(min(value, 0.0)) for value in log_probs]


def _alignment(translation: Translation | None) -> list[tuple[int, int]]:
    if translation is None or translation.alignment is None:
        return []
    return list(translation.alignment)


def _joined_alignment(sentences: Sequence[SentenceAnswer]) -> list[tuple[int, int]]:
    found = []
    source_start = target_start = 0
    for each in sentences:
        for source, target in each.alignment or ():
            found.append((source + source_start, target + target_start))
        source_start += len(each.source_tokens)
        target_start += len(each.tokens)
    return found


def _joined_candidates(sentences: Sequence[SentenceAnswer]) -> list[Candidate]:
    """The k-th of each sentence in a row; one that has fewer gives its last."""
    count = max((len(each.n_best or ()) for each in sentences), default=0)
    found = []
    for rank in range(count):
        chosen = [(each.n_best or [])[min(rank, len(each.n_best or []) - 1)] for each in sentences]
        found.append(
            Candidate(
                text="".join(
                    f"{each.before}{candidate.text}{each.after}"
                    for each, candidate in zip(sentences, chosen, strict=True)
                ),
                score=math.fsum(candidate.score for candidate in chosen),
            )
        )
    return found
