"""Translates segments sentence by sentence, and puts their marks where they belong.

What is not translated (``protected``) stays in the sentence if the model copies it. Where it does
not, the sentence is translated again without it, and it is put back by the alignment. Where
placeholders such as ``%s`` then have another order than their arguments, or nothing can be aligned,
the text between them is translated by itself.
"""

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from pellucid.decoding.warnings import (
    TranslationWarning,
    WarningKind,
    WarningLog,
    Warnings,
    kinds_of,
    merged,
)
from pellucid.documents.assembly import Reading, assemble
from pellucid.documents.copies import (
    between_literals,
    cut_out,
    keeps_order,
    marked,
    unchanged,
    with_copies,
    with_insertions,
    with_stretches,
)
from pellucid.documents.folding import Folded
from pellucid.documents.placement import Aligned, Doubt
from pellucid.documents.protected import protect, unprotect
from pellucid.documents.segments import (
    STANDS_FOR_ALL,
    Alone,
    Piece,
    Segment,
    Span,
    all_nodes,
    overlapping,
    read_tree,
    segment_of,
)
from pellucid.text.scripts import is_wide
from pellucid.text.splitting import Sentence, split_sentences

_MOST_MARKS = 400
"""Marks and placeholders of one text that are placed by alignment, in quadratic time; a paragraph
has a few."""
_AT_ONCE = 512
"""Sentences that are translated before the progress is reported."""

_LEFT = (TranslationWarning("empty", "it stays as it was, as the model gave nothing for it"),)
_UNTRUSTED = (TranslationWarning("unsure", "it stays as it was, as its translation is doubtful"),)
NOT_ALIGNED = "what stands between two marks was translated by itself: no words can be aligned here"
"""The note on texts that were divided, as the model has no attention or PyTorch is missing."""
_BETWEEN_LABELS = re.compile(r"[\s,/|()\[\]]*")
_BEHIND_LABEL = re.compile(r"[)\]]?(?:\s*:|\s+(?:[-–—=→]|=>|->))\s+|[ \t]{2,}")
"""Between code and the text that explains it."""
_DASH = re.compile(r"\s[-–—]\s")
_SHOWN_OF_TEXT = 40
"""Characters of a sentence that a note repeats, so that its place is found."""


class SentenceTranslator(Protocol):
    """A translator of sentences that also aligns them."""

    @property
    def source_language(self) -> str:
        """The code of the language whose rules end sentences, such as ``de``."""
        ...

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
        """The translation of each sentence, in order."""
        ...


Progress = Callable[[int, int], None]
"""Called with the sentences that are translated, and how many there are."""

_Part = tuple[Segment, Reading | None]
"""A part of a segment, and what is read of it, if there is something to translate in it."""
_Key = tuple[str, tuple[Span, ...]]
"""A sentence and the spans of what is not translated in it."""


@dataclasses.dataclass
class Counts:
    """Notes on the document, and the numbers of warnings."""

    notes: list[str] = dataclasses.field(default_factory=list)
    """Notes for a reader of the translated document, a plain line each."""
    warnings: Counter[WarningKind] = dataclasses.field(default_factory=Counter)
    """How many segments have a warning of each kind; ``notes`` name the first few."""
    kinds: dict[int, set[WarningKind]] = dataclasses.field(default_factory=dict)
    """The kinds of each segment with a warning, by its number from 0."""


def translate_segments(
    segments: Sequence[Segment],
    translator: SentenceTranslator,
    *,
    keep_numbers: bool = False,
    progress: Progress | None = None,
    counts: Counts | None = None,
    split: bool = True,
    by_text: bool = False,
) -> list[Segment]:
    """The segments in the other language, with every mark exactly once and well nested.

    Without ``split`` each segment is one sentence. With ``by_text`` each text between two marks is
    translated by itself and nothing is aligned, which a model without attention needs. Sentences
    that repeat are translated once. A segment without a letter, and a sentence that the model has
    no translation for, stay as they are. The warnings of segments are counted in ``counts``, and
    the first few of each kind are its notes. Raises what the translator raises.
    """
    counts = counts or Counts()
    folded = [Folded(_without_soft_hyphens(segment)) for segment in segments]
    language = translator.source_language if split else None
    readings = [
        [
            _readings(part, language, keep_numbers=keep_numbers, by_text=by_text)
            for part in each.parts
        ]
        for each in folded
    ]
    _note_divided(readings, counts, by_text=by_text)
    warnings: dict[_Key, Warnings] = {}
    found = _translate_sentences(
        list(itertools.chain.from_iterable(map(_read_in, readings))),
        translator,
        progress,
        warnings,
        by_text=by_text,
    )
    _note_warnings(readings, warnings, counts)

    def translated(part: Sequence[_Part]) -> list[Piece]:
        """The pieces of a part with its sentences translated."""
        pieces: list[Piece] = []
        for each, reading in part:
            if reading is not None:
                answers = [found[_key(reading, sentence)] for sentence in reading.sentences]
                each = assemble(reading, answers)
            pieces += each.pieces
        return pieces

    def is_unchanged(of_segment: Sequence[Sequence[_Part]]) -> bool:
        return all(
            found[_key(reading, sentence)].text == sentence.text
            for reading in _read_in(of_segment)
            for sentence in reading.sentences
        )

    # What the model says again stays to the byte, also where its marks would be written otherwise.
    return [
        segment if is_unchanged(parts) else each.unfolded([translated(part) for part in parts])
        for segment, each, parts in zip(segments, folded, readings, strict=True)
    ]


def _without_soft_hyphens(segment: Segment) -> Segment:
    """The segment without the places where a line may break: they part words for a tokenizer."""
    if "\u00ad" not in segment.text:
        return segment
    return segment_of(
        each.replace("\u00ad", "") if isinstance(each, str) else each for each in segment.pieces
    )


def _read_in(of_segment: Sequence[Sequence[_Part]]) -> Iterator[Reading]:
    """The readings of a segment, in order."""
    for of_part in of_segment:
        for _, reading in of_part:
            if reading is not None:
                yield reading


def _note_divided(
    readings: Sequence[Sequence[Sequence[_Part]]], counts: Counts, *, by_text: bool
) -> None:
    """Note that texts are divided at their marks, and why."""
    divided = sum(any(len(part) > 1 for part in of_segment) for of_segment in readings)
    if divided and by_text:
        counts.notes.append(NOT_ALIGNED)
    elif divided:
        which = "1 text has" if divided == 1 else f"{divided:,} texts have"
        counts.notes.append(
            f"{which} more than {_MOST_MARKS} marks and placeholders: what stands between two of"
            " them is translated by itself"
        )


def _note_warnings(
    readings: Sequence[Sequence[Sequence[_Part]]],
    warnings: Mapping[_Key, Warnings],
    counts: Counts,
) -> None:
    """Note the warnings of each segment's sentences with their place."""
    log = WarningLog(counts.notes.append)
    for number, of_segment in enumerate(readings, start=1):
        places = [
            (_place(number, sentence.text), own)
            for reading in _read_in(of_segment)
            for sentence in reading.sentences
            if (own := warnings.get(_key(reading, sentence), ()))
        ]
        own = merged(own for _, own in places)
        if own:
            counts.kinds[number - 1] = kinds_of(own)
        log.note(own, places)
    log.end()
    counts.warnings.update(log.counts)


def _place(number: int, text: str) -> str:
    """A segment, from 1, and the beginning of a sentence of it."""
    words = " ".join(text.split())
    shown = words if len(words) <= _SHOWN_OF_TEXT else f"{words[:_SHOWN_OF_TEXT]}…"
    return f"segment {number}, “{shown}”"


def _readings(
    part: Segment, language: str | None, *, keep_numbers: bool, by_text: bool
) -> list[_Part]:
    """The part with what is read of it; of one with too many marks, or ``by_text``, each text
    between two of them by itself. Without a ``language`` a text is one sentence.
    """
    if not part.has_words:
        return [(part, None)]

    guarded, kept = protect(part, keep_numbers=keep_numbers)
    if by_text:
        runs = itertools.groupby(guarded.pieces, lambda piece: _stays_in_text(piece, kept))
        texts = [tuple(pieces) for _, pieces in runs]
        return [
            (unprotect(pieces, kept), _read(Segment(pieces), kept, language))
            if _stays_in_text(pieces[0], kept)
            else (unprotect(pieces, kept), None)
            for pieces in texts
        ]
    if len(guarded.marks) <= _MOST_MARKS:
        return [(part, _read(guarded, kept, language))]

    # With too many marks each text between two of them is read by itself.
    return [
        (unprotect([piece], kept), _read(Segment((piece,)), {}, language))
        for piece in guarded.pieces
    ]


def _stays_in_text(piece: Piece, kept: Mapping[int, str]) -> bool:
    """Whether nothing has to be aligned for a piece: a text, or what the model may copy in it."""
    is_word = isinstance(piece, Alone) and piece.number in kept and piece.text != ""
    return isinstance(piece, str) or is_word


def _read(guarded: Segment, kept: dict[int, str], language: str | None) -> Reading | None:
    """A segment as text and marks; None if there is nothing to translate in it."""
    if not guarded.has_words:
        return None
    text, root = read_tree(guarded.pieces)
    if language is None:
        words = text.strip()
        start = text.index(words)
        whole = Sentence(text[:start], words, text[start + len(words) :], start)
        return Reading(kept, text, root, [whole])

    # A sentence cannot end inside of an address or of code.
    blocked = [(n.start, n.end) for n in all_nodes(root) if n.mark and not n.mark.breaks]
    sentences = _rejoined(_split(text, language), text, blocked)
    literals = dict(each for each in blocked if each[0] < each[1])
    return Reading(kept, text, root, [_behind_label(each, literals) for each in sentences])


def _behind_label(sentence: Sentence, literals: Mapping[int, int]) -> Sentence:
    """The sentence without the code that it explains at its start: "`-q`, `--quiet`: say nothing".

    ``literals`` are the places of the text where what is not translated begins and ends.
    """
    start, text, label = sentence.start, sentence.text, 0
    at = 0
    while start + at in literals:
        label = literals[start + at] - start
        between = _BETWEEN_LABELS.match(text, label)
        at = between.end() if between else label
    divider = _BEHIND_LABEL.match(text, label) if label else None
    if divider is None or not _has_words(text, start, divider.end(), literals):
        return sentence
    at = divider.end()
    if _DASH.fullmatch(divider[0]) and _DASH.search(text, at):
        return sentence  # `git` – a program – is fast
    return Sentence(sentence.before + text[:at], text[at:], sentence.after, start + at)


def _has_words(text: str, start: int, at: int, literals: Mapping[int, int]) -> bool:
    """Whether a sentence has a letter of its own from a character on."""
    while at < len(text):
        if start + at in literals:
            at = literals[start + at] - start
        elif text[at].isalpha():
            return True
        else:
            at += 1
    return False


def _split(text: str, language: str) -> list[Sentence]:
    """The sentences of a text; a tab, which divides columns, ends one as a line end does."""
    sentences = split_sentences(text.replace("\t", "\n"), language)
    if "\t" not in text:
        return sentences

    # The white space around each is that of the text.
    found = []
    for each in sentences:
        start, end = each.start, each.start + len(each.text)
        before, after = text[start - len(each.before) : start], text[end : end + len(each.after)]
        found.append(Sentence(before, each.text, after, start))
    return found


def _rejoined(sentences: list[Sentence], text: str, blocked: Sequence[Span]) -> list[Sentence]:
    """The sentences, those joined again that were cut inside of a blocked span or of a name such as
    ``./configure`` or ``COPYING.LIB``.
    """
    groups: list[list[Sentence]] = []
    for sentence in sentences:
        if groups:
            last = groups[-1][-1]
            end = last.start + len(last.text)
            is_name = end == sentence.start and not (is_wide(text[end - 1]) or is_wide(text[end]))
            if is_name or any(overlapping(blocked, at, at) for at in (end, sentence.start)):
                groups[-1].append(sentence)
                continue
        groups.append([sentence])

    # Joined once: a text of a million dots is a million sentences to begin with.
    return [
        Sentence(
            group[0].before,
            text[group[0].start : group[-1].start + len(group[-1].text)],
            group[-1].after,
            group[0].start,
        )
        for group in groups
    ]


def _key(reading: Reading, sentence: Sentence) -> _Key:
    start = sentence.start
    spans = ((n.start - start, n.end - start) for n in reading.literals_in(sentence))
    return sentence.text, tuple(spans)


def _translate_sentences(
    readings: Sequence[Reading],
    translator: SentenceTranslator,
    progress: Progress | None,
    warnings: dict[_Key, Warnings],
    *,
    by_text: bool,
) -> dict[_Key, Aligned]:
    """Each sentence once, and aligned only where a mark needs it, not at all ``by_text``; fills
    ``warnings``.
    """
    needs_links: dict[_Key, bool] = {}
    for reading in readings:
        needs = reading.has_marks and not by_text
        for sentence in reading.sentences:
            key = _key(reading, sentence)
            needs_links[key] = needs_links.get(key, False) or needs

    found: dict[_Key, Aligned] = {}
    for key in needs_links:
        text, literals = key
        if not any(map(str.isalpha, cut_out(text, literals)[0] if literals else text)):
            found[key] = unchanged(*key)
    waiting = [key for key in needs_links if key not in found]

    if progress is not None:
        progress(0, len(waiting))
    for first in range(0, len(waiting), _AT_ONCE):
        keys = waiting[first : first + _AT_ONCE]
        for align in (False, True):
            some = [key for key in keys if needs_links[key] == align]
            if some:
                found |= _translate_some(some, translator, warnings, align=align, by_text=by_text)
        if progress is not None:
            progress(first + len(keys), len(waiting))
    return found


def _has_nothing(answer: Aligned) -> bool:
    """Whether the model gave no word: nothing, or a stop or an emoji alone, where that is odd."""
    if not answer.text.strip():
        return True
    return "empty" in kinds_of(answer.warnings) and not any(map(str.isalnum, answer.text))


def _translate_some(
    keys: Sequence[_Key],
    translator: SentenceTranslator,
    warnings: dict[_Key, Warnings],
    *,
    align: bool,
    by_text: bool,
) -> dict[_Key, Aligned]:
    found: dict[_Key, Aligned] = {}
    doubts: dict[_Key, Doubt] = {}

    # As they are written: a good model copies names, addresses and placeholders.
    whole = [key for key in keys if STANDS_FOR_ALL not in key[0]]
    answers = translator.translate([text for text, _ in whole], align=align)
    for key, answer in zip(whole, answers, strict=True):
        text, literals = key
        warnings[key], doubts[key] = answer.warnings, answer.doubt
        if _has_nothing(answer):
            # The original, so that a reader sees that something stands here.
            found[key] = unchanged(text, literals)
            warnings[key] = _LEFT
        elif (copied := with_copies(text, literals, answer)) is not None:
            found[key] = copied

    # What this model did not copy.
    again = [key for key in keys if key not in found and not by_text]
    cut = [cut_out(*key) for key in again]
    answers = translator.translate([text for text, _ in cut], align=True)
    for key, (rest, places), answer in zip(again, cut, answers, strict=True):
        text, literals = key
        warnings[key], doubts[key] = answer.warnings, answer.doubt
        if _has_nothing(answer):
            found[key] = unchanged(text, literals)
            warnings[key] = _LEFT
        else:
            found[key] = with_insertions(text, literals, rest, places, answer)

    # What would give a program its arguments in another order, or cannot be aligned.
    for key in (key for key in keys if key not in found or not keeps_order(key[0], found[key])):
        text, literals = key
        stretches = between_literals(text, literals)
        answers = translator.translate([text[start:end] for start, end in stretches], align=align)
        warnings[key] = merged(each.warnings for each in answers)
        doubts[key] = next((each.doubt for each in answers if each.doubt), None)
        found[key] = with_stretches(text, literals, stretches, answers)

    for key, doubt in doubts.items():
        if doubt == "mark" and found[key].text != key[0]:
            found[key] = marked(found[key])
        elif doubt == "leave":
            found[key], warnings[key] = unchanged(*key), _UNTRUSTED
    return found
