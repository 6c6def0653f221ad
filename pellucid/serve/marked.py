"""Texts as clients of other servers send them, translated as documents are.

Tags stand on the aligned words. Addresses, placeholders and what else no document has translated
stay in plain texts too.
"""

import asyncio
import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pellucid.decoding.result import Translation
from pellucid.documents.aligned import ModelTranslator, Search
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.html_rules import TagRules
from pellucid.documents.markup import Counts, translate_segments
from pellucid.documents.messages import Message, has_forms
from pellucid.documents.plurals import categories_of
from pellucid.documents.protected import has_literals
from pellucid.documents.segments import Segment
from pellucid.serve.queued import QueuedSearch
from pellucid.serve.schema import TextAnswer, TranslateRequest
from pellucid.serve.server.errors import DeadlineError
from pellucid.serve.service import Served, Service, glossary_of, search_settings
from pellucid.text.sentence_ends import hard_lines

if TYPE_CHECKING:
    from pellucid.decoding.attention import AttentionWeights

WARNINGS_HEADER = "X-Pellucid-Warnings"
_MOST_IN_HEADER = 50
"""Warnings that a header names: proxies take some kilobytes of headers."""
_AT_ONCE = 16
"""Requests that are read and written at a time, each in a thread; the others wait."""


@dataclasses.dataclass(frozen=True)
class AnsweredText:
    """The translation of a text."""

    text: str
    alternatives: list[str]
    warnings: set[str]
    """The kinds of its warnings."""

    @classmethod
    def of(cls, answer: TextAnswer) -> "AnsweredText":
        """The same of an answer in the form of our own interface."""
        kinds: set[str] = {warning.kind for warning in answer.warnings}
        return cls(answer.text, answer.alternatives or [], kinds)


def warnings_header(answers: Sequence[AnsweredText]) -> dict[str, str]:
    """The warnings as a header, for answers whose form has no place for them.

    ``X-Pellucid-Warnings: loop;text=0, unknown;text=2``: kinds, and numbers of texts from 0.
    """
    named = [f"{kind};text={n}" for n, each in enumerate(answers) for kind in sorted(each.warnings)]
    shown = named[:_MOST_IN_HEADER]
    if len(named) > len(shown):
        shown.append(f"more;count={len(named) - len(shown)}")
    return {WARNINGS_HEADER: ", ".join(shown)} if shown else {}


class MarkedTexts:
    """Translates texts with tags or placeholders for one server; used from its event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # Threads of its own: those of asyncio also read models, which such a request may wait for.
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pellucid-marked")

    async def translate(
        self,
        served: Served,
        texts: Sequence[str],
        rules: TagRules | None,
        *,
        alternatives: int = 0,
        split: bool = True,
        glossary: str | None = None,
    ) -> list[AnsweredText]:
        """The translation of each text, and its alternatives. Without ``rules`` texts are plain.

        A text is translated in one way, whatever others are beside it: what has tags or
        placeholders as documents are, any other as by our own interface. Raises as
        ``Service.translate`` does. Cancelling the task cancels the work.
        """
        is_marked = [rules is not None or has_literals(text) for text in texts]
        marked = [text for text, is_one in zip(texts, is_marked, strict=True) if is_one]
        plain = [text for text, is_one in zip(texts, is_marked, strict=True) if not is_one]
        request = TranslateRequest(
            text=plain,
            model=served.model.place.name,
            alternatives=alternatives,
            split=split,
            glossary=glossary,
        )
        try:
            async with asyncio.TaskGroup() as both:
                of_plain = both.create_task(self._service.translate(request, whole=True))
                of_marked = both.create_task(
                    self._marked(served, marked, rules, alternatives, split, glossary)
                )
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        answers = iter(map(AnsweredText.of, of_plain.result().translations))
        others = iter(of_marked.result())
        return [next(others if is_one else answers) for is_one in is_marked]

    async def _marked(
        self,
        served: Served,
        texts: Sequence[str],
        rules: TagRules | None,
        alternatives: int,
        split: bool,
        glossary: str | None,
    ) -> list[AnsweredText]:
        """The translations of texts with tags or placeholders, and alternatives, in each of which
        every sentence that has another translation has that one.
        """
        if not texts:
            return []
        seconds = self._service.limits.max_request_seconds
        terms = glossary_of(served, glossary)
        request = TranslateRequest(text="", alternatives=alternatives)
        settings = search_settings(served.model, request, self._service.limits)
        if not alternatives:
            settings = settings.model_copy(update={"token_log_probs": False})
        deadline = time.monotonic() + seconds
        search = QueuedSearch(self._service, served, settings, deadline, terms)

        def work() -> list[AnsweredText]:
            """The answer to all texts; runs on a thread of its own."""
            documents = [
                _WithForms(text, rules, split=split, language=served.model.target_language)
                for text in texts
            ]
            translator = served.model.translator.with_settings(settings)
            warnings: list[set[str]] = []

            def write(by: Search) -> list[str]:
                """The translated texts, whose sentences ``by`` translates."""
                translated, found = _translated(
                    documents,
                    ModelTranslator(translator, by),
                    split=split and served.model.splits,
                    by_text=not translator.can_align,
                )
                warnings[:] = warnings or found  # those of the best, which is written first
                return translated

            if alternatives:
                best, others = _with_alternatives(search, write, alternatives)
            else:
                best, others = write(search), [[] for _ in texts]
            return list(map(AnsweredText, best, others, warnings))

        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError:
            raise DeadlineError(f"the answer was not ready within {seconds:g} seconds") from None
        finally:
            search.stop()


class _PlainText:
    """A text without tags: each line is a segment, or without ``split`` all of it is one."""

    def __init__(self, text: str, *, split: bool) -> None:
        self._around: list[tuple[str, str]] = []
        self.segments: list[Segment] = []
        for line in hard_lines(text) if split else [text]:
            words = line.strip()
            start = line.index(words)
            self._around.append((line[:start], line[start + len(words) :]))
            self.segments.append(Segment((words,)))

    def text_with(self, segments: Sequence[Segment]) -> str:
        """The text with other segments."""
        return "".join(
            f"{before}{segment.text}{after}"
            for (before, after), segment in zip(self._around, segments, strict=True)
        )


class _WithForms:
    """A text in which each plural or select form of ICU is a segment; a message that cannot be read
    has none, and stays."""

    def __init__(self, text: str, rules: TagRules | None, *, split: bool, language: str) -> None:
        """``language`` is that of the translation, whose plurals may have more forms."""
        # the lines of a message are layout
        is_message = has_forms(text) and not Message(Segment((text,)), is_icu=True).is_unread
        split = split and not is_message
        self._document = (
            _PlainText(text, split=split) if rules is None else HtmlDocument(text, rules)
        )
        categories = categories_of(language)
        self._messages = [
            Message(each, is_icu=True, categories=categories) if has_forms(each.text) else None
            for each in self._document.segments
        ]
        self.segments = [
            each
            for whole, message in zip(self._document.segments, self._messages, strict=True)
            for each in (message.segments if message else [whole])
        ]

    def text_with(self, segments: Sequence[Segment]) -> str:
        """The text with other segments."""
        left = iter(segments)
        return self._document.text_with(
            [
                message.joined([next(left) for _ in message.segments]) if message else next(left)
                for message in self._messages
            ]
        )


def _translated(
    documents: Sequence[_WithForms],
    translator: ModelTranslator,
    *,
    split: bool,
    by_text: bool,
) -> tuple[list[str], list[set[str]]]:
    """All documents at once, so that their sentences share batches; and their warnings."""
    segments = [segment for document in documents for segment in document.segments]
    counts = Counts()
    found = iter(
        translate_segments(segments, translator, split=split, by_text=by_text, counts=counts)
    )
    texts, first = [], 0
    warnings: list[set[str]] = []
    for document in documents:
        count = len(document.segments)
        own = (counts.kinds.get(number, ()) for number in range(first, first + count))
        warnings.append(set(itertools.chain.from_iterable(own)))
        texts.append(document.text_with([next(found) for _ in range(count)]))
        first += count
    return texts, warnings


def _with_alternatives(
    search: Search, write: Callable[[Search], list[str]], count: int
) -> tuple[list[str], list[list[str]]]:
    known: dict[str, Translation] = {}
    best = write(_Ranked(search, 0, known))
    others: list[list[str]] = [[] for _ in best]
    for rank in range(1, count + 1):
        ranked = _Ranked(search, rank, known)
        found = write(ranked)
        if not ranked.has_other:
            break
        for text, own, into in zip(found, best, others, strict=True):
            if text != own and text not in into:
                into.append(text)
    return best, others


class _Ranked:
    """Gives another translation of each sentence, where there is one of this rank."""

    def __init__(self, search: Search, rank: int, known: dict[str, Translation]) -> None:
        self._search, self._rank, self._known = search, rank, known
        self.has_other = False

    def translations(self, texts: list[str]) -> list[Translation]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, self._search.translations(new), strict=True))
        return [self._ranked(self._known[text]) for text in texts]

    def attention(self, translations: Sequence[Translation]) -> "list[AttentionWeights]":
        return self._search.attention(translations)

    def _ranked(self, translation: Translation) -> Translation:
        ways = translation.other_ways()
        if not 0 < self._rank <= len(ways):
            return translation
        self.has_other = True
        return ways[self._rank - 1][0]
