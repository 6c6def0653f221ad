"""Builds answers: from translations of sentences to answers for sentences and for whole texts."""

import heapq
import math
from collections.abc import Sequence

from pellucid.decoding.result import Translation
from pellucid.decoding.sentences import space_between
from pellucid.serve.reading import ReadSentence
from pellucid.serve.schema import (
    Candidate,
    OtherWay,
    SentenceAnswer,
    TextAnswer,
    TranslateRequest,
    WarningAnswer,
)

_NOTHING = Translation("", 0.0, (), (), (), "")
"""The translation of a blank sentence."""


def answer_sentence(
    sentence: ReadSentence,
    translation: Translation | None,
    request: TranslateRequest,
    following: Translation | None = None,
) -> SentenceAnswer:
    """The answer for one sentence; ``translation`` is None for a blank one.

    ``following`` is the translation of the next sentence, which may be one of another text.
    """
    translation = translation or _NOTHING
    text = translation.text
    after = sentence.place.after
    if sentence.next_source and text:
        right = "" if following is None else following.text
        after = space_between(after, (sentence.place.text, sentence.next_source), text, right)
    elif sentence.next_source and "\n" not in after:
        after = ""  # the space in front of nothing suffices

    n_best = alternatives = None
    if request.n_best is not None:
        n_best = [Candidate(text=each.text, score=each.score) for each in translation.n_best]
        n_best = n_best or [Candidate(text=text, score=0.0)]

    if request.alternatives:
        ways = translation.other_ways(request.alternatives_share)[: request.alternatives]
        alternatives = [OtherWay(text=each.text, share=share) for each, share in ways]

    return SentenceAnswer(
        source=sentence.place.text,
        source_start=sentence.place.start,
        before=sentence.place.before,
        text=text,
        after=after,
        score=translation.score,
        truncated=translation.truncated,
        tokens=list(translation.tokens),
        source_tokens=sentence.tokens,
        warnings=warnings_of(translation),
        quality=translation.quality,
        confidences=confidences_of(translation) if request.confidences else None,
        alignment=list(translation.alignment or ()) if request.alignment else None,
        n_best=n_best,
        alternatives=alternatives,
    )


def warnings_of(translation: Translation) -> list[WarningAnswer]:
    """Why a translation should not be trusted, as an answer has it."""
    return [WarningAnswer(kind=each.kind, message=each.message) for each in translation.warnings]


def answer_text(sentences: Sequence[SentenceAnswer], request: TranslateRequest) -> TextAnswer:
    """The answer for a text: its sentences joined by the white space around them."""
    n_best = _joined_candidates(sentences)[: request.n_best] if request.n_best else None
    alternatives = _other_ways(sentences, request.alternatives) if request.alternatives else None
    qualities = [each.quality for each in sentences if each.quality is not None]
    return TextAnswer(
        text="".join(f"{each.before}{each.text}{each.after}" for each in sentences),
        score=math.fsum(each.score for each in sentences),
        truncated=any(each.truncated for each in sentences),
        tokens=[token for each in sentences for token in each.tokens],
        source_tokens=[token for each in sentences for token in each.source_tokens],
        warnings=list(dict.fromkeys(each for sentence in sentences for each in sentence.warnings)),
        quality=min(qualities, default=None),
        confidences=[p for each in sentences for p in each.confidences or ()]
        if request.confidences
        else None,
        alignment=_joined_alignment(sentences) if request.alignment else None,
        n_best=n_best,
        alternatives=alternatives,
        sentences=list(sentences),
    )


def confidences_of(translation: Translation) -> list[float]:
    """p(token | earlier tokens, source) of each token, without the stop."""
    log_probs = translation.token_log_probs[: len(translation.tokens)]
    return [math.exp(min(value, 0.0)) for value in log_probs]  # rounding may give log p above 0


def _joined_alignment(sentences: Sequence[SentenceAnswer]) -> list[tuple[int, int]]:
    found = []
    source_start = target_start = 0
    for each in sentences:
        # A sentence's links count from its own first token; the text's from the first of the text.
        for source, target in each.alignment or ():
            found.append((source + source_start, target + target_start))
        source_start += len(each.source_tokens)
        target_start += len(each.tokens)
    return found


def _other_ways(sentences: Sequence[SentenceAnswer], count: int) -> list[str]:
    """The ``count`` likeliest alternative translations of a text; each changes one sentence.

    The other sentences stay the same, so the share of the changed sentence is that of the text.
    """
    # Two changed sentences would be less likely than either alone, because shares multiply.
    ways = [(index, way) for index, each in enumerate(sentences) for way in each.alternatives or ()]
    likeliest = heapq.nlargest(count, ways, key=lambda found: found[1].share)

    # Only these are joined: a text of thousands of sentences has far more ways than are asked for.
    pieces = [f"{each.before}{each.text}{each.after}" for each in sentences]
    found = []
    for index, way in likeliest:
        changed = f"{sentences[index].before}{way.text}{sentences[index].after}"
        found.append("".join([*pieces[:index], changed, *pieces[index + 1 :]]))
    return found


def _joined_candidates(sentences: Sequence[SentenceAnswer]) -> list[Candidate]:
    """The k-th candidates of all sentences joined; a sentence with fewer uses its last one."""
    ranked = [each.n_best or [] for each in sentences]
    found = []
    for rank in range(max(map(len, ranked), default=0)):
        chosen = [several[min(rank, len(several) - 1)] for several in ranked]
        pairs = zip(sentences, chosen, strict=True)
        text = "".join(f"{each.before}{candidate.text}{each.after}" for each, candidate in pairs)
        found.append(Candidate(text=text, score=math.fsum(each.score for each in chosen)))
    return found
