"""Documents that are translated while their clients wait: a bounded number, in turns.

What is read and written of a document is done in a process of its own, which ends when the document
is dropped, is late or takes too much. Its sentences go through the queue of the model, in batches
with those of other requests.
"""

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pydantic

from pellucid.core.errors import DataError, WriteError, place_of
from pellucid.decoding.warnings import WarningKind
from pellucid.documents.aligned import ModelTranslator
from pellucid.documents.child import (
    SIZE,
    TOO_LARGE,
    DocumentTask,
    answer_of,
    frame_of,
    message_of,
    too_much_memory,
)
from pellucid.documents.names import TABLES, WITH_COLUMNS, format_of
from pellucid.serve.queued import QueuedSearch
from pellucid.serve.schema import TranslateRequest
from pellucid.serve.server.errors import (
    DeadlineError,
    FieldProblem,
    InvalidError,
    NotFoundError,
    OverloadedError,
    ServiceError,
    UnavailableError,
)
from pellucid.serve.server.strict_json import shown
from pellucid.serve.service import Service, glossary_of, require_quality, search_settings
from pellucid.serve.shelf import Order, Record, Remarks, Shelf

_LOG = logging.getLogger("pellucid.serve")
_AT_ONCE = 4
"""Documents that are translated at a time; the others wait."""
_OF_CLIENT = 2
"""The share of one client in these: the others keep turns for those who come later."""
_LONGEST_NAME = 200
_LOOK_SECONDS = 0.5
"""How often other workers are looked at: for what they dropped, and for what they left."""
_MODULE = "pellucid.documents.child"
_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME")
"""The environment variables that a process that reads a document gets."""
_PART_BYTES = 1 << 20
"""The bytes of a message that are read at a time."""
_ASK_SECONDS = 0.05
"""How often a client that waits for its document looks whether it is done."""


class DocumentState(pydantic.BaseModel):
    """How far a document is."""

    model_config = pydantic.ConfigDict(use_attribute_docstrings=True)

    id: str
    state: Literal["waiting", "running", "done", "failed"]
    sentences_done: int
    sentences: int
    """The number of sentences of the whole document; 0 until it is read."""
    name: str
    """The name of the translated file."""
    detail: str | None = None
    """Why it failed."""
    warnings: dict[WarningKind, int] = {}
    """How many segments have a warning of each kind; ``notes`` name the first few."""
    notes: list[str] = []
    """Notes for a reader of the translation, such as text that stayed as it was."""


class Documents:
    """The documents of one server; used from its event loop."""

    def __init__(self, service: Service, shelf: Shelf) -> None:
        self._service = service
        self._shelf = shelf
        self._running: dict[str, asyncio.Task[None]] = {}
        self._wakes = asyncio.Event()
        self._tending: asyncio.Task[None] | None = None
        # Threads of its own: those of asyncio also read models, which a document may wait for.
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pellucid-document")

    async def add(self, order: Order, data: bytes) -> DocumentState:
        """Take a document.

        Raises InvalidError, NotFoundError, OverloadedError and UnavailableError.
        """
        served = self._service.find(order.model)
        glossary_of(served, order.glossary)
        require_quality(served, order.below, order.doubtful)
        # A name of the client's: its letters are shown, and it is no path.
        name = order.name.replace("\\", "/").rpartition("/")[2][-_LONGEST_NAME:]
        name = "".join(each for each in name if each.isprintable())
        try:
            kind = format_of(name)
        except DataError as error:
            raise InvalidError(
                [FieldProblem("file", f"cannot be translated: {error}", name)]
            ) from None
        for field, given, formats in (
            ("columns", ",".join(order.columns), WITH_COLUMNS),
            ("guard_cells", order.guard_cells, TABLES),
        ):
            if given and kind not in formats:
                rule = f"is for {', '.join(sorted(formats))}, not {kind}"
                raise InvalidError([FieldProblem(field, rule, shown(given))])

        order = dataclasses.replace(order, model=served.model.place.name, name=name)
        try:
            is_kept = await asyncio.to_thread(self._shelf.add, order, data)
        except WriteError:
            raise UnavailableError("there is no room to keep a document") from None
        if not is_kept:
            most = self._service.limits.max_documents
            raise OverloadedError(f"{most} documents are kept; try again later")
        return self.state(order.key)

    def state(self, key: str) -> DocumentState:
        """How far a document is. Raises NotFoundError."""
        return self._described(self._find(key))

    async def ended(self, key: str) -> DocumentState:
        """Wait until a document is translated or has failed. Raises NotFoundError."""
        while not (record := self._find(key)).has_ended:
            await asyncio.sleep(_ASK_SECONDS)
        return self._described(record)

    async def file(self, key: str) -> tuple[str, bytes]:
        """Name and bytes of a translated document. Raises NotFoundError unless it is done."""
        record = self._find(key)
        if record.state != "done":
            raise NotFoundError(f"the document is {record.state}")
        try:
            data = await asyncio.to_thread(self._shelf.data, key)
        except FileNotFoundError:  # it has just been dropped
            raise _no_document() from None
        with contextlib.suppress(WriteError):  # the file is there all the same
            self._shelf.note_fetched(key)
        return self._described(record).name, data

    def drop(self, key: str) -> None:
        """Forget a document, and end its translation. Raises NotFoundError."""
        self._find(key)
        self._shelf.remove(key)
        if key in self._running:
            self._running[key].cancel()

    def _find(self, key: str) -> Record:
        self._tend_on()
        record = self._shelf.get(key)
        if record is None:
            raise _no_document()
        return record

    def _described(self, record: Record) -> DocumentState:
        stem, _, end = record.order.name.rpartition(".")
        model = self._service.find(record.order.model).model
        return DocumentState(
            id=record.order.key,
            state=record.state,
            sentences_done=record.done,
            sentences=record.total,
            name=f"{stem}.{model.target_language}.{end}",
            detail=record.detail,
            warnings=record.warnings,
            notes=record.notes,
        )

    def _tend_on(self) -> None:
        """Give turns from now on, and at once if there are any."""
        if self._tending is None or self._tending.done():
            self._tending = asyncio.create_task(self._tend())
        self._wakes.set()

    async def _tend(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._wakes.wait()
            self._wakes.clear()
            try:
                await self._give_turns()
            except Exception as error:  # such as a full disk: the next time it may have room
                _LOG.error("documents have to wait: %s", place_of(error))
                await asyncio.sleep(_LOOK_SECONDS)

    async def _give_turns(self) -> None:
        while len(self._running) < _AT_ONCE:
            taken = await asyncio.to_thread(self._shelf.take, _OF_CLIENT)
            if taken is None:
                break
            order, data = taken
            self._running[order.key] = asyncio.create_task(self._take_turn(order, data))
        await asyncio.to_thread(self._shelf.sweep)
        for key, task in self._running.items():
            if self._shelf.get(key) is None:  # another worker has dropped it
                task.cancel()

    async def _take_turn(self, order: Order, data: bytes) -> None:
        """Translate a document whose turn it is; its time begins now."""
        seconds = self._service.limits.max_document_seconds

        try:
            try:
                async with asyncio.timeout(seconds):
                    translation, remarks = await self._translated(order, data)
                await asyncio.to_thread(self._shelf.finish, order.key, translation, remarks)
            except (DeadlineError, TimeoutError):
                detail = f"it was not translated within {seconds:g} seconds"
                self._shelf.fail(order.key, detail)
            except WriteError:
                self._shelf.fail(order.key, "there was no room to keep its translation")
            except (DataError, ServiceError) as error:
                self._shelf.fail(order.key, str(error))
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise  # it was dropped, or the server stops
            except BaseException as error:  # also the panic of a library, which is no Exception
                # Not its message, which may hold a path: the log has the place.
                _LOG.error("a document failed: %s", place_of(error))
                detail = "an unexpected error occurred; see the server log"
                self._shelf.fail(order.key, detail)
        except WriteError:
            self._shelf.remove(order.key)  # a full disk takes no reason; its client gets a 404
        finally:
            del self._running[order.key]
            self._wakes.set()

    async def _translated(self, order: Order, data: bytes) -> tuple[bytes, Remarks]:
        """The translated file, and what its reader must know."""
        limits = self._service.limits
        served = self._service.find(order.model)
        request = TranslateRequest(text="", below=order.below, doubtful=order.doubtful)
        settings = search_settings(served.model, request, limits)
        search = QueuedSearch(
            self._service,
            served,
            settings.model_copy(update={"token_log_probs": False}),
            time.monotonic() + limits.max_document_seconds,
            glossary_of(served, order.glossary),
            waits_for_room=True,
        )
        translator = ModelTranslator(served.model.translator.with_settings(settings), search)
        task = DocumentTask(
            kind=format_of(order.name),
            language=translator.source_language,
            target_language=translator.target_language,
            columns=order.columns,
            keep_numbers=order.keep_numbers,
            guard_cells=order.guard_cells,
            by_text=not served.model.translator.can_align,
            most_chars=limits.max_document_chars,
            most_bytes=limits.max_document_memory_bytes,
            most_seconds=limits.max_document_cpu_seconds,
        )

        child = _Child(task, data)

        def answers(message: dict[str, Any]) -> bytes | None:
            """The answer to a question of the child; None for a report of how far it is."""
            if "total" in message:
                self._shelf.note_progress(order.key, message["done"], message["total"])
                return None
            return answer_of(translator.translate(message["sentences"], align=message["align"]))

        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, child.run, answers)
        finally:
            search.stop()
            child.end()


class _Child:
    """The process that reads and writes one document; a thread starts it and talks to it.

    It is no process of asyncio's, whose start must not be cancelled: the pipes would stay open, or
    the cancelled task would wait for ever.
    """

    def __init__(self, task: DocumentTask, data: bytes) -> None:
        self._task, self._data = task, data
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def run(self, answers: Callable[[dict[str, Any]], bytes | None]) -> tuple[bytes, Remarks]:
        """The translated file, and what its reader must know.

        Raises DataError for what cannot be read or written, and where the process ends early.
        """
        with self._lock:
            if self._is_ended:
                raise DataError("it was given up")
            process = self._process = _start()

        try:
            _send(process, message_of(dataclasses.asdict(self._task)), frame_of(self._data))
            while True:
                message = json.loads(_receive(process))
                if "detail" in message:
                    raise DataError(message["detail"])
                if "failure" in message:
                    _LOG.error("a document failed: %s", message["failure"])
                    raise DataError("an unexpected error occurred; see the server log")
                if "warnings" in message:
                    remarks = Remarks(message["warnings"], message["notes"])
                    return _receive(process), remarks
                answer = answers(message)
                if answer is not None:
                    _send(process, answer)
        except EOFError:
            raise DataError(reason_of_end(process.wait(), self._task)) from None
        finally:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):  # closing writes what was left
                    pipe.close()
            process.wait()

    def end(self) -> None:
        """End the process; the thread that waits for it goes on at once."""
        with self._lock:
            self._is_ended = True
            if self._process is not None:
                self._process.kill()


def _start() -> "subprocess.Popen[bytes]":
    # It imports from where this process does, and has none of its secrets.
    path = os.pathsep.join(str(Path(each).absolute()) for each in sys.path)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return subprocess.Popen(  # noqa: S603  (this program, with arguments of our own)
        (sys.executable, "-P", "-m", _MODULE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it could hold the text of a user
        env={**environment, "PYTHONPATH": path},
        start_new_session=True,  # Ctrl-C is for the server, which then ends it
    )


def _send(process: "subprocess.Popen[bytes]", *messages: bytes) -> None:
    assert process.stdin is not None
    # A process that ended without reading all of it has answered why.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.writelines(messages)
        process.stdin.flush()


def _receive(process: "subprocess.Popen[bytes]") -> bytes:
    """The next message of the process. Raises EOFError if it has ended."""
    [size] = SIZE.unpack(_read(process, SIZE.size))
    return _read(process, size)


def _read(process: "subprocess.Popen[bytes]", size: int) -> bytes:
    assert process.stdout is not None
    received = bytearray()
    while len(received) < size:  # in parts: a size that is none takes no memory
        part = process.stdout.read(min(size - len(received), _PART_BYTES))
        if not part:
            raise EOFError
        received += part
    return bytes(received)


def reason_of_end(code: int, task: DocumentTask) -> str:
    """Why a process ended before it was done."""
    if code == -signal.SIGXCPU:
        return (
            f"the document must be read and written within {task.most_seconds} seconds of CPU time,"
            " needs more"
        )
    if code == TOO_LARGE:
        return too_much_memory(task)
    return f"the document could not be read: what read it ended with code {code}"


def _no_document() -> NotFoundError:
    return NotFoundError("there is no such document, or no longer")
