"""The steps that a line goes through before its search, and its translation afterwards.

Each step turns requests into the requests that the next one receives, and knows the way back for
their translations. ``Translator`` names the steps in one line, and ``run`` goes through them:

    lines -> Codes -> Sentences -> Doubt        -> Terms -> Judgement -> OddLines -> TermMarks ->
    lines <- typed <- joined    <- marked, left <-       <- warnings  <- restored <- unmarked  <-

The search stands at their right.

A step where nothing matches passes requests and translations on as they are. A step may make
several requests of one; ``origins`` then says which line each belongs to, for warnings that name
the line.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.odd_lines import OddLine, copies_symbols, has_no_letter_beside
from pellucid.decoding.quality import MARK, Points, quality_of
from pellucid.decoding.requests import Request
from pellucid.decoding.result import Translation
from pellucid.decoding.sentences import SplitLine
from pellucid.decoding.suspicious import judged, unsure_message
from pellucid.text.glossary import Glossary
from pellucid.text.normalization import check_text
from pellucid.text.seen_words import SeenWords
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.marian import own_code

Translations = list[Translation]


@dataclasses.dataclass(frozen=True)
class Rewritten:
    """The requests that a step hands on, and the way back for their translations."""

    requests: list[Request]
    back: Callable[[Translations], Translations]
    """Makes the translations of what the step received from those of ``requests``."""
    origins: list[int] | None = None
    """For each of ``requests`` the index of the request it was made of; None if it is its own."""


LiteralsIn = Callable[[str], list[tuple[int, int]]]
"""Finds where each part of a text that is not translated begins and ends."""


class Step(Protocol):
    """One rewriting of requests, with its way back."""

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Rewrite the requests of one batch, in order."""
        ...


Search = Callable[[list[Request], list[int]], Translations]
"""Finds the translation of each request; the second list holds the numbers of their lines."""


def run(
    steps: Sequence[Step], requests: Sequence[Request], first_line: int, search: Search
) -> Translations:
    """Translate requests: through all steps, the search, and back through all steps.

    The requests are lines numbered from ``first_line``. Returns one translation for each.
    """
    wanted = list(requests)
    numbers = list(range(first_line, first_line + len(wanted)))

    ways_back = []
    for step in steps:
        rewritten = step(wanted)
        wanted = rewritten.requests
        if rewritten.origins is not None:
            numbers = [numbers[origin] for origin in rewritten.origins]
        ways_back.append(rewritten.back)

    found = search(wanted, numbers)
    for back in reversed(ways_back):
        found = back(found)
    return found


@dataclasses.dataclass(frozen=True)
class Codes:
    """Takes the code of a target language from the text of a line, so that no step reads it."""

    tokenizer: Tokenizer
    """The tokenizer of the sources, which tells whether a line may begin with such a code, as
    ``>>fra<<``."""

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Each request with its code beside its text; its translation has the text as typed."""
        uncoded = [self.read(each) for each in requests]

        def typed(found: Translations) -> Translations:
            return [
                each if own is plain else _with_code(each, own)
                for each, own, plain in zip(found, requests, uncoded, strict=True)
            ]

        return Rewritten(uncoded, typed)

    def read(self, request: Request) -> Request:
        """A request without the code that its text begins with; the code is a part of it."""
        code = own_code(request.source, self.tokenizer)
        # one behind white space is not known to the model, and has its warning
        if not code or not request.source.startswith(code):
            return request
        text = request.source.removeprefix(code).removeprefix(" ")
        return dataclasses.replace(request, source=text, code=code)


def _with_code(found: Translation, request: Request) -> Translation:
    """The translation of a line that was typed with a code, which is a word of its own."""

    def typed(each: Translation) -> Translation:
        links = each.word_alignment
        # a code without a space behind it is a part of the first word
        added = len(request.source.split()) - len(each.source.split())
        if links is not None:
            links = tuple((source + added, target) for source, target in links)
        return dataclasses.replace(each, source=request.source, word_alignment=links)

    return dataclasses.replace(typed(found), n_best=tuple(map(typed, found.n_best)))


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Splits lines into sentences, and joins their translations."""

    language: str | None
    """The language whose rules split; None leaves each line whole."""

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """One request for each sentence."""
        lines = [SplitLine.of(each, self.language) for each in requests]
        parts = [line.requests for line in lines]

        def joined(found: Translations) -> Translations:
            left = iter(found)
            return [
                line.joined([next(left) for _ in own])
                for line, own in zip(lines, parts, strict=True)
            ]

        origins = [index for index, own in enumerate(parts) for _ in own]
        return Rewritten(list(itertools.chain(*parts)), joined, origins)


@dataclasses.dataclass(frozen=True)
class Terms:
    """Adds the terms of a glossary that a source has; a request's own terms go first."""

    glossary: Glossary | None

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Each request with its terms; its translation stays as it is."""
        return Rewritten([self._with_terms(each) for each in requests], _unchanged)

    def _with_terms(self, request: Request) -> Request:
        if self.glossary is None or request.terms:
            return request
        terms = self.glossary.required(request.source)
        return dataclasses.replace(request, terms=terms) if terms else request


@dataclasses.dataclass(frozen=True)
class Doubt:
    """Marks a translation whose quality is too low, or leaves its source in its place."""

    settings: DecodingConfig

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Requests stay as they are; the texts of doubtful translations change."""
        below = self.settings.below
        if below is None:
            return Rewritten(list(requests), _unchanged)

        change = _marked if self.settings.doubtful == "mark" else _left

        def back(found: Translations) -> Translations:
            return [
                dataclasses.replace(change(each), n_best=tuple(map(change, each.n_best)))
                if each.quality is not None and each.quality < below
                else each
                for each in found
            ]

        return Rewritten(list(requests), back)


def _marked(found: Translation) -> Translation:
    """The translation behind a mark, which is a word of its own."""
    links = found.word_alignment
    if links is not None:
        links = tuple((source, target + 1) for source, target in links)
    return dataclasses.replace(found, text=f"{MARK} {found.text}", word_alignment=links)


def _left(found: Translation) -> Translation:
    """The source in the place of its translation, each word aligned with itself."""
    links = found.word_alignment
    if links is not None:
        links = tuple((number, number) for number in range(len(found.source.split())))
    return dataclasses.replace(found, text=found.source.strip(), word_alignment=links)


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Gives a translation its warnings: that it is empty, repeats itself, lost a number, ..."""

    usual: frozenset[str]
    """Kinds of warnings that mean nothing with this model."""
    seen: SeenWords | None
    """The words of the training text, if they are known."""
    unsure_below: float | None = None
    """The mean log-probability of a token below which a translation is unsure, if it is known."""
    settings: DecodingConfig | None = None
    """The settings of the search, by which a translation is judged as unsure."""
    literals_in: LiteralsIn | None = None
    """Finds what is not translated, such as addresses and placeholders."""
    points: Points | None = None
    """The scale of the model's quality, if it was calibrated."""

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Requests stay as they are; each translation is judged, and each of its n best."""

        def back(found: Translations) -> Translations:
            return [self._judged(each, own) for each, own in zip(found, requests, strict=True)]

        return Rewritten(list(requests), back)

    def _judged(self, found: Translation, request: Request) -> Translation:
        demanded = [request.prefix, *request.must, *itertools.chain(*request.terms)]
        unsure = quality = None
        # What was demanded or drawn is not what the model is surest of.
        if self.settings and not any(demanded) and self.settings.sampling is None:
            mean = found.mean_log_prob(self.settings.penalty)
            unsure = unsure_message(mean, self.unsure_below)
            quality = quality_of(mean, self.points)

        judge = functools.partial(
            judged,
            usual=self.usual,
            demanded=demanded,
            seen=self.seen,
            literals=self._literals(request.source),
        )
        best = dataclasses.replace(judge(found, unsure=unsure), quality=quality)

        # The first of the n best is the best; the others are less likely by what they are.
        first, others = found.n_best[:1], found.n_best[1:]
        n_best = (
            *(dataclasses.replace(judge(each, unsure=unsure), quality=quality) for each in first),
            *(judge(each, unsure=None) for each in others),
        )
        return dataclasses.replace(best, n_best=n_best)

    def _literals(self, text: str) -> list[str]:
        """Addresses, placeholders and tags of a text; dashes and sums of money may change."""
        found = [] if self.literals_in is None else self.literals_in(text)
        parts = (text[start:end] for start, end in found)
        return [each for each in parts if re.search(r"[^\W\d_]|[{%<]", each)]


@dataclasses.dataclass(frozen=True)
class OddLines:
    """Takes out emoji, lowers capitals, reads unknown signs as others, copies lines of no word."""

    settings: DecodingConfig
    copies_numbers: bool
    """Whether a line of numbers and marks is its own translation too."""
    literals_in: LiteralsIn | None
    """Finds what is not translated; a text that has no letter beside it is its own translation."""
    tokenizer: Tokenizer | None = None
    """The tokenizer of the source, which knows words in upper case, or does not."""
    seen: SeenWords | None = None
    """The words of the training text, if they are known."""
    languages: tuple[str, str] = ("", "")
    """Source and target, which decide what the lower case of I is."""

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Each request as the model should read it."""
        # Lines often repeat, and looking for emoji and capitals takes time.
        known = {each: self.read(each) for each in dict.fromkeys(requests)}
        lines = [known[each] for each in requests]

        def restored(found: Translations) -> Translations:
            return [line.restored(each) for line, each in zip(lines, found, strict=True)]

        return Rewritten([line.plain for line in lines], restored)

    def read(self, request: Request) -> OddLine:
        """A request as the model should read it, and the way back for its translation."""
        is_own = (
            self.literals_in is not None
            and copies_symbols(request, self.settings)
            and not (request.must or request.terms)
            and any(map(str.isalpha, request.source))
            and has_no_letter_beside(request.source, self.literals_in(request.source))
        )

        if is_own:
            check_text(request.source)  # as the tokenizer, which does not see it, would
            return OddLine(request, Request(""), is_copied=True)
        return OddLine.of(
            request,
            self.settings,
            self.tokenizer,
            self.seen,
            copies_numbers=self.copies_numbers,
            languages=self.languages,
        )


@dataclasses.dataclass(frozen=True)
class TermMarks:
    """Marks the terms in the source, for a model that was trained with such marks."""

    glossary: Glossary | None
    settings: DecodingConfig

    def __call__(self, requests: Sequence[Request]) -> Rewritten:
        """Each request with its terms marked; its translation has the source without marks."""

        def unmarked(found: Translations) -> Translations:
            return [_with_source(each, own) for each, own in zip(found, requests, strict=True)]

        return Rewritten([self._marked(each) for each in requests], unmarked)

    def _marked(self, request: Request) -> Request:
        settings = self.settings
        # Links of an alignment would point at the marks.
        if self.glossary is None or not request.terms or not settings.mark_terms or settings.align:
            return request
        # a request's own terms may not be those of the glossary
        source = self.glossary.marked(
            request.source, lambda phrases: tuple(phrases) in request.terms
        )
        return dataclasses.replace(request, source=source)


def _unchanged(found: Translations) -> Translations:
    return found


def _with_source(found: Translation, request: Request) -> Translation:
    """The translation as one of the source of ``request``."""
    if found.source == request.source:
        return found
    n_best = tuple(dataclasses.replace(each, source=request.source) for each in found.n_best)
    return dataclasses.replace(found, source=request.source, n_best=n_best)
