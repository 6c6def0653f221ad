"""Translates sentences with a ``Translator``, and says which characters come from which."""

import difflib
import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pellucid.decoding.requests import as_requests
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import merged
from pellucid.documents.placement import Aligned, Link
from pellucid.documents.segments import Span
from pellucid.text.edits import Offsets, moved
from pellucid.text.languages import language_of_code, with_code
from pellucid.text.normalization import normalize_with_positions
from pellucid.text.scripts import ends_wide, is_mark, is_wide
from pellucid.text.splitting import split_sentences
from pellucid.text.tokenizers.interface import Tokenizer

if TYPE_CHECKING:
    from pellucid.decoding.attention import AttentionWeights

_LEAST_WEIGHT = 0.01
"""The least share of a token's attention that is kept."""
_MOST_OF_LETTER = 8
"""Characters of a letter with its marks."""
_LONGEST_COMPARED = 2000
"""Characters of a sentence that are compared with their normalized form, in quadratic time."""
_NONCHARACTERS = "".join(
    chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
_CONTROLS = re.compile(rf"[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef{_NONCHARACTERS}]")
"""Named one by one: Unicode's category of unassigned characters also has the letters and emoji that
are newer than this Python."""


class Search(Protocol):
    """The model as a document needs it; a server has its own, which shares batches."""

    def translations(self, texts: list[str]) -> list[Translation]:
        """The translation of each sentence."""
        ...

    def attention(self, translations: Sequence[Translation]) -> "list[AttentionWeights]":
        """Return the attention of each translation, as ``Translator.attention`` does."""
        ...


class _DirectSearch:
    """The translator itself."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    def translations(self, texts: list[str]) -> list[Translation]:
        """The translation of each sentence."""
        return self._translator.translate(texts, split=False)

    def attention(self, translations: Sequence[Translation]) -> "list[AttentionWeights]":
        """The attention of each."""
        return self._translator.attention(translations)


class ModelTranslator:
    """Sentences through a ``Translator``; one too long for the model is translated in parts."""

    def __init__(self, translator: Translator, search: Search | None = None) -> None:
        """``search`` translates sentences and gives their attention; by default the translator."""
        # One translation is written and its scores are not read.
        # What is doubtful is marked or left as a whole, with the marks of the document in it.
        plain = {"n_best": 1, "align": False, "token_log_probs": False, "below": None}
        translator.check_settings(translator.settings)
        self._below, self._doubtful = translator.settings.below, translator.settings.doubtful
        changed = translator.with_settings(translator.settings.changed(plain))
        self._translator = changed.without_log()  # a line of a log is no place in a document
        self._search = search or _DirectSearch(self._translator)

    @property
    def source_language(self) -> str:
        """The source language of the model."""
        return self._translator.source_language

    @property
    def target_language(self) -> str:
        """The language of the translations: of a multilingual model, that of its code."""
        translator = self._translator
        return language_of_code(translator.settings.target_code) or translator.target_language

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
        """The translation of each sentence, in order; raises as ``Translator.translate`` does.

        To align needs a model with attention: ConfigError.
        """
        translator = self._translator
        tokenizer, limit = translator.source_tokenizer, translator.source_limit

        # The parts of each sentence, with the place of each in it.
        code = translator.settings.target_code
        room = limit - bool(code)
        parts = [parts_of(each, tokenizer, room, self.source_language) for each in sentences]
        texts = [with_code(part, code) for of_sentence in parts for _, part in of_sentence]
        found = self._search.translations(texts)
        linked = iter(self._links(found) if align else [[] for _ in found])

        answers = []
        translations = iter(found)
        for of_sentence in parts:
            text, links = "", []
            warnings = []
            is_doubtful = False
            for number, (start, part) in enumerate(of_sentence):
                # The model read the part behind the code of a language, which is no text.
                found_part = next(translations)
                text += _between(text, found_part.text) if number else ""
                at = len(text)
                shift = start - (len(found_part.source) - len(part))
                links += [
                    ((shift + a, shift + b), (at + c, at + d), weight)
                    for (a, b), (c, d), weight in next(linked)
                    if shift + a >= start
                ]
                text += found_part.text
                warnings.append(found_part.warnings)
                quality = found_part.quality
                if self._below is not None and quality is not None:
                    is_doubtful |= quality < self._below
            answers.append(
                Aligned(
                    _printable(text),
                    tuple(links),
                    warnings=merged(warnings),
                    doubt=self._doubtful if is_doubtful else None,
                )
            )
        return answers

    def _links(self, translations: Sequence[Translation]) -> list[list[Link]]:
        """The alignment of each translation in characters, by the attention of the model.

        How much a target token attends to a source token, times its share of all attention
        that the source token gets: what every token attends to a little is aligned with none.
        """
        translator = self._translator
        source, target = translator.source_tokenizer, translator.target_tokenizer
        with_words = [each for each in translations if each.token_ids and each.source.strip()]
        found = iter(self._search.attention(with_words) if with_words else [])

        all_links: list[list[Link]] = []
        for translation in translations:
            links: list[Link] = []
            if translation.token_ids and translation.source.strip():
                # (target, source), without the stops
                weights = next(found)[:-1, :-1]
                weights = weights * weights / weights.sum(dim=0, keepdim=True).clamp_min(1e-9)
                weights = weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-9)
                # The search may have read the line without its emoji, or in lower case.
                [request] = as_requests([translation.source], translator.settings, 1)
                odd = translator.odd_line(request)
                written = target.decode(translation.token_ids)
                # and its code is no part of what it read: the place of that is negative here
                added = len(odd.plain.read) - len(odd.plain.source)
                spans = _source_spans(odd.plain.read, source)
                sources = _moved([(a - added, b - added) for a, b in spans], odd.source_offsets())
                typed = len(translation.source) - len(odd.request.source)
                sources = [(a + typed, b + typed) for a, b in sources]
                targets = _moved(_spans(translation.token_ids, target), odd.target_offsets(written))
                links = [
                    (ours, theirs, weight)
                    for theirs, row in zip(targets, weights.tolist(), strict=True)
                    for ours, weight in zip(sources, row, strict=False)
                    if weight >= _LEAST_WEIGHT
                ]
            all_links.append(links)
        return all_links


def _moved(spans: list[Span], offsets: Offsets) -> list[Span]:
    """Spans of a text without emoji as those of the text with them."""
    if not offsets:
        return spans
    return [
        # the last character is moved and not the end, behind which an emoji may stand
        (moved(start, offsets), moved(end - 1, offsets) + 1) if end > start else (start, start)
        for start, end in spans
    ]


def _between(left: str, right: str) -> str:
    """The text between the translations of two parts: none in scripts without spaces."""
    if not left or not right:
        return ""
    return "" if is_wide(left[-1]) or is_wide(right[0]) else " "


def parts_of(text: str, tokenizer: Tokenizer, limit: int, language: str) -> list[tuple[int, str]]:
    """Parts of at most ``limit`` tokens and their places: the text as a whole, or its sentences, of
    which those that are too long are ``divided``.
    """
    parts = divided(text, tokenizer, limit)
    if len(parts) == 1:
        return parts
    return [
        (sentence.start + start, part)
        for sentence in split_sentences(text, language)
        for start, part in divided(sentence.text, tokenizer, limit)
    ]


def divided(text: str, tokenizer: Tokenizer, limit: int) -> list[tuple[int, str]]:
    """Parts of at most ``limit`` tokens and their places: halved, at white space or behind a mark
    such as 、 or 。 if there are any.
    """
    # A token has at least a byte, and a long text takes the tokenizer long.
    if len(text.encode()) <= max(limit, 1) or len(tokenizer.encode(text)) <= limit or len(text) < 2:
        return [(0, text)]

    middle = len(text) // 2
    outward = (at for far in range(middle + 1) for at in (middle - far, middle + far))
    # white space begins there, or what comes after a mark behind wide words
    places = (
        at
        for at in outward
        if 0 < at < len(text)
        and (text[at].isspace() or (ends_wide(text[at - 1]) and not ends_wide(text[at])))
    )
    cut = next(places, 0)
    if not cut:
        # a letter keeps its marks, unless it has more than any language writes
        before = range(middle, max(0, middle - _MOST_OF_LETTER), -1)
        cut = next((at for at in before if not is_mark(text[at])), middle)

    # The first part may be long enough to be divided: white space at its end would be a part.
    left, right = text[:cut].rstrip(), text[cut:].lstrip()
    start = len(text) - len(right)
    return [
        *divided(left, tokenizer, limit),
        *((start + place, part) for place, part in divided(right, tokenizer, limit)),
    ]


def _printable(text: str) -> str:
    """The text with spaces for control characters, which no document may hold."""
    return text if text.isprintable() else _CONTROLS.sub(" ", text)


def _spans(ids: Sequence[int], tokenizer: Tokenizer) -> list[Span]:
    """The characters of each token in the decoded text; every prefix is decoded, as in
    ``words_of_tokens``, so it works with every tokenizer.
    """
    ends = [len(tokenizer.decode(ids[:length])) for length in range(1, len(ids) + 1)]
    # A character that is spelled in bytes is longer before its last byte than with it.
    ends = list(itertools.accumulate(reversed(ends), min))[::-1]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _source_spans(text: str, tokenizer: Tokenizer) -> list[Span]:
    """The characters of each source token in ``text``, which the tokenizer may normalize."""
    ids = tokenizer.encode(text)
    spans, decoded = _spans(ids, tokenizer), tokenizer.decode(ids)
    if decoded == text:
        return spans

    # From the decoded text to the normalized one, and from there to the one that was given.
    read, given = text, None
    if tokenizer.normalization != "none":
        normalized = normalize_with_positions(text)
        read, given = normalized.text, normalized.positions
    place = range(len(read) + 1) if decoded == read else _places(decoded, read)
    if given is not None:
        place = [given[at] for at in place]
    return [(place[start], place[end]) for start, end in spans]


def _places(decoded: str, text: str) -> list[int]:
    """For each place in ``decoded`` that in ``text``."""
    if max(len(decoded), len(text)) > _LONGEST_COMPARED:
        return [round(at * len(text) / max(1, len(decoded))) for at in range(len(decoded) + 1)]

    places = [0] * (len(decoded) + 1)
    matcher = difflib.SequenceMatcher(None, decoded.casefold(), text.casefold(), autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        for at in range(start, min(end, len(decoded))):
            # Within a stretch that differs, such as an unknown word, in proportion.
            share = (at - start) / max(1, end - start)
            places[at] = other_start + round(share * (other_end - other_start))
    places[-1] = len(text)
    return places
