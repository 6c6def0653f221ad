"""A document's way to its model: through the queue, in batches with other requests' sentences."""

import asyncio
import concurrent.futures
import functools
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pellucid.core.errors import PellucidError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.result import Translation
from pellucid.serve.server.errors import DeadlineError, OverloadedError
from pellucid.serve.service import Served, Service
from pellucid.text.glossary import Glossary

if TYPE_CHECKING:
    from pellucid.decoding.attention import AttentionWeights

_Found = TypeVar("_Found")
_PAUSE_SECONDS = 0.5
"""Before a document asks a full queue again."""
_SENTENCES = 32
"""Sentences that share one turn in the queue of the model."""


class QueuedSearch:
    """Translates through the queue of a model, from a thread that is not the event loop's."""

    def __init__(
        self,
        service: Service,
        served: Served,
        settings: DecodingConfig,
        deadline: float,
        glossary: Glossary | None = None,
        *,
        waits_for_room: bool = False,
    ) -> None:
        """``deadline``: on ``time.monotonic``. To be made on the event loop.

        With ``waits_for_room`` sentences for which the queue has no room are queued later, until
        the deadline; otherwise OverloadedError is raised.
        """
        self._deadline, self._is_stopped = deadline, False
        self._waits_for_room = waits_for_room
        self._service, self._served = service, served
        # What is doubtful is marked or left by whoever joins the sentences, as a whole.
        self._settings, self._glossary = settings.model_copy(update={"below": None}), glossary
        self._loop = asyncio.get_running_loop()
        self._waits_for: concurrent.futures.Future[Any] | None = None

    def translations(self, texts: list[str]) -> list[Translation]:
        """The translation of each sentence, a few at a time, so that others have their turns."""
        found: list[Translation] = []
        for first in range(0, len(texts), _SENTENCES):
            some = texts[first : first + _SENTENCES]
            begin = functools.partial(self._service.sentences, self._served, some, self._settings)
            found += self._take_turn(functools.partial(begin, self._deadline, self._glossary))
        return found

    def attention(self, translations: Sequence[Translation]) -> "list[AttentionWeights]":
        """The attention of each."""
        found: list[AttentionWeights] = []
        for first in range(0, len(translations), _SENTENCES):
            some = translations[first : first + _SENTENCES]
            work = functools.partial(self._attention_of, some)
            found += self._take_turn(
                functools.partial(self._service.alone, self._served, work, self._deadline)
            )
        return found

    def stop(self) -> None:
        """Raise DeadlineError in the thread that translates, now or at its next turn."""
        self._is_stopped = True
        if self._waits_for is not None:
            self._waits_for.cancel()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Have the event loop call something, unless the server has stopped."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)

    def _attention_of(
        self, translations: Sequence[Translation], _watcher: SearchWatcher
    ) -> "list[AttentionWeights]":
        return self._served.model.translator.attention(translations)

    def _take_turn(self, begin: Callable[[], Coroutine[Any, Any, _Found]]) -> _Found:
        """The result of a coroutine that ``begin`` makes, again if the queue was full."""
        while True:
            try:
                return self._wait(begin())
            except OverloadedError:
                # One full moment must not cost a document that was translated for minutes.
                is_late = self._is_stopped or time.monotonic() > self._deadline
                if is_late or not self._waits_for_room:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _wait(self, work: Coroutine[Any, Any, _Found]) -> _Found:
        """Run a coroutine on the event loop, and wait for its result in this thread."""
        if self._loop.is_closed() or self._is_stopped:
            work.close()
            raise (
                PellucidError("the server has stopped")
                if self._loop.is_closed()
                else DeadlineError("it was given up")
            )

        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._waits_for = future
        if self._is_stopped:  # before there was something to cancel
            future.cancel()
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise DeadlineError("it was given up") from None
        finally:
            self._waits_for = None
