"""Texts with tags, as clients of other servers send them: tags stand on the aligned words."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pellucid.decoding.result import Translation
from pellucid.documents.aligned import ModelTranslator, Search
from pellucid.documents.html_files import HtmlDocument, TagRules
from pellucid.documents.markup import translate_segments
from pellucid.serve.queued import QueuedSearch
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.errors import DeadlineError
from pellucid.serve.service import Served, Service, glossary_of, search_settings

if TYPE_CHECKING:
    from pellucid.decoding.attention import AttentionWeights

_AT_ONCE = 16
"""Requests that are read and written at a time, each in a thread; the others wait."""


class MarkedTexts:
    """Translates texts with tags for one server; used from its event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        # Threads of its own: those of asyncio also read models, which such a request may wait for.
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pellucid-marked")

    async def translate(
        self,
        served: Served,
        texts: Sequence[str],
        rules: TagRules,
        *,
        alternatives: int = 0,
        split: bool = True,
        glossary: str | None = None,
    ) -> tuple[list[str], list[list[str]]]:
        """The translation of each text, and its alternatives, in each of which every sentence that
        has another translation has that one.

        Raises as ``Service.translate`` does. Cancelling the task cancels the work.
        """
        seconds = self._service.limits.max_request_seconds
        terms = glossary_of(served, glossary)
        request = TranslateRequest(text="", alternatives=alternatives)
        settings = search_settings(served.model, request, self._service.limits)
        if not alternatives:
            settings = settings.model_copy(update={"token_log_probs": False})
        deadline = time.monotonic() + seconds
        search = QueuedSearch(self._service, served, settings, deadline, terms)

        def work() -> tuple[list[str], list[list[str]]]:
            documents = [HtmlDocument(text, rules) for text in texts]
            translator = served.model.translator.with_settings(settings)

            def write(by: Search) -> list[str]:
                return _translated(
                    documents,
                    ModelTranslator(translator, by),
                    split=split,
                    by_text=not served.model.has_attention,
                )

            if not alternatives:
                return write(search), [[] for _ in texts]
            return _with_alternatives(search, write, alternatives)

        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError:
            raise DeadlineError(f"the answer was not ready within {seconds:g} seconds") from None
        finally:
            search.stop()


def _translated(
    documents: Sequence[HtmlDocument], translator: ModelTranslator, *, split: bool, by_text: bool
) -> list[str]:
    """All documents at once, so that their sentences share batches."""
    segments = [segment for document in documents for segment in document.segments]
    found = iter(translate_segments(segments, translator, split=split, by_text=by_text))
    return [document.text_with([next(found) for _ in document.segments]) for document in documents]


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
