"""Documents that are translated while their clients wait: a bounded number, each in a thread.

The sentences of a document go through the queue of the model, in batches with those of other
requests; what is read and written of the document itself is done in the thread.
"""

import asyncio
import contextlib
import dataclasses
import functools
import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Literal

import pydantic

from pellucid.core.errors import ConfigError, DataError, WriteError
from pellucid.decoding.suspicious import WarningKind
from pellucid.documents.aligned import ModelTranslator
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts, translate_segments
from pellucid.documents.names import format_of
from pellucid.documents.segments import notes_of
from pellucid.serve.queued import QueuedSearch
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.errors import (
    DeadlineError,
    Fault,
    InvalidError,
    NotFoundError,
    OverloadedError,
    ServiceError,
    UnavailableError,
    place_of,
)
from pellucid.serve.service import Served, Service, glossary_of, search_settings
from pellucid.serve.shelf import Shelf

_LOG = logging.getLogger("pellucid.serve")
_AT_ONCE = 2
"""Documents that are read or written at a time; the others wait."""
_LONGEST_NAME = 200
_LOOK_SECONDS = 0.5
"""How often a document that waits looks whether it was dropped."""


class DocumentState(pydantic.BaseModel):
    """How far a document is."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True)

    id: str
    state: Literal["waiting", "running", "done", "failed"]
    sentences_done: int
    sentences: int
    """Of the whole document; 0 until it is read."""
    name: str
    """The name of the translated file."""
    detail: str | None = None
    """Why it failed."""
    warnings: dict[WarningKind, int] = {}
    """How many segments have a warning of each kind; ``notes`` name the first few."""
    notes: list[str] = []
    """What stayed as it was, and what else a reader of the translation must know."""


@dataclasses.dataclass
class _Document:
    """A document that was uploaded."""

    id: str
    name: str
    data: bytes
    """The file, then its translation; empty while it is translated and if that failed."""
    deadline: float
    """Of its translation, once that has begun, and then of its download."""
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    done: int = 0
    total: int = 0
    detail: str | None = None
    warnings: dict[WarningKind, int] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    search: QueuedSearch | None = None
    """What translates it."""
    is_fetched: bool = False
    is_dropped: bool = False
    ended: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    @property
    def gives_way(self) -> bool:
        """Whether it may be forgotten when there is no room for another."""
        return self.state == "failed" or self.is_fetched

    def described(self) -> DocumentState:
        """How far it is."""
        return DocumentState(
            id=self.id,
            state=self.state,
            sentences_done=self.done,
            sentences=self.total,
            name=self.name,
            detail=self.detail,
            warnings=self.warnings,
            notes=self.notes,
        )


class Documents:
    """The documents of one server; used from its event loop.

    With a ``shelf`` other workers find those of this one, and this one those of the others.
    """

    def __init__(self, service: Service, shelf: Shelf | None = None) -> None:
        self._service = service
        self._shelf = shelf
        self._documents: dict[str, _Document] = {}
        self._turns = threading.Semaphore(_AT_ONCE)

    def add(
        self,
        served: Served,
        name: str,
        data: bytes,
        *,
        columns: str = "",
        keep_numbers: bool = False,
        glossary: str | None = None,
    ) -> DocumentState:
        """Take a document, and begin. Raises InvalidError, OverloadedError, UnavailableError."""
        self._drop_old()
        terms = glossary_of(served, glossary)
        limits = self._service.limits
        # A name of the client's: its letters are shown, and it is no path.
        name = name.replace("\\", "/").rpartition("/")[2][-_LONGEST_NAME:]
        name = "".join(each for each in name if each.isprintable())
        try:
            format_of(name)
        except DataError as error:
            raise InvalidError([Fault("file", f"cannot be translated: {error}", name)]) from None

        stem, _, end = name.rpartition(".")
        document = _Document(
            id=secrets.token_urlsafe(24),
            name=f"{stem}.{served.model.target_language}.{end}",
            data=data,
            deadline=time.monotonic() + limits.max_document_seconds,
        )
        if not self._has_room(document):
            raise OverloadedError(f"{limits.max_documents} documents are kept; try again later")
        self._documents[document.id] = document
        options = ReadOptions(tuple(each.strip() for each in columns.split(",") if each.strip()))
        settings = search_settings(served.model, TranslateRequest(text=""), limits)
        settings = settings.model_copy(update={"token_log_probs": False})
        search = QueuedSearch(
            self._service, served, settings, document.deadline, terms, waits_for_room=True
        )
        document.search = search
        work = functools.partial(
            self._take_turn, document, served, name, options, keep_numbers, search
        )
        # A daemon: a server that stops does not wait for a book.
        arguments = (document, search, work)
        threading.Thread(target=self._wait_for_turn, args=arguments, daemon=True).start()
        return self.state(document.id)

    def state(self, key: str) -> DocumentState:
        """How far a document is. Raises NotFoundError."""
        if (there := self._of_others(key)) is not None:
            return there
        return self._find(key).described()

    async def ended(self, key: str) -> DocumentState:
        """Wait until a document is translated or has failed. Raises NotFoundError."""
        document = self._find(key)
        await document.ended.wait()
        # Of what was waited for: it may have given way to another one since.
        return document.described()

    def file(self, key: str) -> tuple[str, bytes]:
        """Name and bytes of a translated document. Raises NotFoundError unless it is done."""
        there = self._of_others(key)
        if self._shelf is not None and there is not None and there.state == "done":
            with contextlib.suppress(FileNotFoundError):  # it may just have been dropped
                data = self._shelf.file(key)
                self._note_fetched(key)
                return there.name, data
        if there is not None:
            raise NotFoundError("No document", f"the document is {there.state}")
        document = self._find(key)
        if document.state != "done":
            raise NotFoundError("No document", f"the document is {document.state}")
        document.is_fetched = True
        self._note_fetched(key)
        return document.name, document.data

    def _note_fetched(self, key: str) -> None:
        if self._shelf is not None:
            with contextlib.suppress(WriteError):  # the file is there all the same
                self._shelf.note_fetched(key)

    def drop(self, key: str) -> None:
        """Forget a document; if it is being translated, that ends at its next batch."""
        if self._shelf is not None and self._of_others(key) is not None:
            self._shelf.remove(key)
            return
        document = self._find(key)
        self._forget(key)
        if document.search is not None:
            document.search.stop()

    def _find(self, key: str) -> _Document:
        self._drop_old()
        if key not in self._documents:
            raise NotFoundError("No document", "there is no such document, or no longer")
        return self._documents[key]

    def _has_room(self, document: _Document) -> bool:
        most = self._service.limits.max_documents
        if self._shelf is None:
            # The oldest first, as a dictionary has them.
            old = [key for key, each in self._documents.items() if each.gives_way]
            for key in old[: max(0, len(self._documents) - most + 1)]:
                self._forget(key)
            return len(self._documents) < most
        seconds = self._service.limits.max_document_seconds
        try:
            return self._shelf.add(document.id, document.described().model_dump(), seconds, most)
        except WriteError:
            raise UnavailableError("there is no room to keep a document") from None

    def _of_others(self, key: str) -> DocumentState | None:
        """How far a document of another worker is; None if it is none of another one."""
        if self._shelf is None or key in self._documents:
            return None
        found = self._shelf.get(key)
        return None if found is None else DocumentState(**found)

    def _publish(self, document: _Document, translation: bytes | None = None) -> None:
        """Tell the other workers how far a document is, unless one of them has dropped it.

        With its ``translation`` it is done.
        """
        if self._shelf is None or not self._shelf.holds(document.id):
            return
        reported = document.described().model_dump()
        if translation is not None:
            self._shelf.put_file(document.id, translation)
            reported["state"] = "done"
        self._shelf.put(document.id, reported, self._service.limits.max_document_seconds)

    def _forget(self, key: str) -> None:
        document = self._documents.pop(key)
        document.is_dropped, document.data = True, b""
        if self._shelf is not None:
            self._shelf.remove(key)

    def _drop_old(self) -> None:
        now = time.monotonic()
        old = [
            key
            for key, each in self._documents.items()
            if (each.state in ("done", "failed") and now > each.deadline)
            or (self._shelf is not None and not self._shelf.holds(key))
        ]
        for key in old:
            self._forget(key)

    def _wait_for_turn(
        self, document: _Document, search: QueuedSearch, work: Callable[[], None]
    ) -> None:
        """The thread of one document: waits for its turn and does ``work``, unless dropped."""
        while not self._turns.acquire(timeout=_LOOK_SECONDS):
            if self._is_dropped(document):
                break
        else:
            try:
                work()
            finally:
                self._turns.release()
        search.call_soon(document.ended.set)

    def _take_turn(
        self,
        document: _Document,
        served: Served,
        name: str,
        options: ReadOptions,
        keep_numbers: bool,
        search: QueuedSearch,
    ) -> None:
        """Translate a document whose turn has come; its time begins now."""
        seconds = self._service.limits.max_document_seconds
        document.deadline = search.deadline = time.monotonic() + seconds
        # Looked at after the deadline is set: one that is dropped later has it taken away.
        if self._is_dropped(document):
            return
        try:
            document.state = "running"
            self._publish(document)
            data, document.data = document.data, b""
            translation = self._translated(
                document, data, served, name, options, keep_numbers, search
            )
            # The other workers first: whoever hears from this one that it is done may ask
            # another one for the file.
            with contextlib.suppress(WriteError):  # then it stays "running" to the others
                self._publish(document, translation)
            # From now on until it is fetched.
            document.deadline = time.monotonic() + seconds
            document.data = translation
            document.state = "done"
            return
        except DeadlineError:
            document.detail = f"it was not translated within {seconds:g} seconds"
        except (DataError, ConfigError, ServiceError) as error:
            document.detail = str(error)
        except Exception as error:
            # Not its message, which may hold a path: the log has the place.
            _LOG.error("a document failed: %s", place_of(error))
            document.detail = "an unexpected error occurred; see the server log"

        # Its client has as long to ask for the reason.
        document.deadline = time.monotonic() + seconds
        document.state = "failed"
        with contextlib.suppress(WriteError):
            self._publish(document)

    def _is_dropped(self, document: _Document) -> bool:
        """Whether nobody waits for a document: here, or by another worker."""
        return document.is_dropped or (
            self._shelf is not None and not self._shelf.holds(document.id)
        )

    def _translated(
        self,
        document: _Document,
        data: bytes,
        served: Served,
        name: str,
        options: ReadOptions,
        keep_numbers: bool,
        search: QueuedSearch,
    ) -> bytes:
        options = dataclasses.replace(options, target_language=served.model.target_language)
        read = read_document(data, format_of(name), "the document", options)
        most = self._service.limits.max_document_chars
        size = sum(len(segment.text) for segment in read.segments)
        if size > most:
            raise DataError(f"the document must have at most {most:,} characters, has {size:,}")

        def progress(done: int, total: int) -> None:
            document.done, document.total = done, total
            if self._shelf is not None and not self._shelf.holds(document.id):
                raise DeadlineError("it was dropped")
            self._publish(document)

        sentences = ModelTranslator(served.model.translator, search)
        counts = Counts()
        translated = translate_segments(
            read.segments,
            sentences,
            keep_numbers=keep_numbers,
            progress=progress,
            counts=counts,
            by_text=not served.model.has_attention,
        )
        written = read.write(translated)
        document.warnings = dict(counts.warnings)
        document.notes = [*counts.notes, *notes_of(read)]
        return written
