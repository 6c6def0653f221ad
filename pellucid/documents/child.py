"""One document read, translated and written in a process of its own, which can be ended any time.

    python -m pellucid.documents.child

Its parent writes a task and the file to standard input and answers the questions on standard
output: the sentences to translate, which need the model. A file that takes too much time or memory,
or that crashes a parser, ends this process and nothing else.
"""

import dataclasses
import json
import os
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from pellucid.core import system
from pellucid.core.errors import ConfigError, DataError, place_of
from pellucid.decoding.warnings import TranslationWarning
from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts, translate_segments
from pellucid.documents.names import Format
from pellucid.documents.placement import Aligned

SIZE = struct.Struct(">Q")
"""The length in bytes of a message, which precedes it."""
_NICENESS = 5
"""Reading a document gives way to the process that answers requests."""
TOO_LARGE = 71
"""The exit code of a process that took too much memory, where the system does not hold it to less
(sysexits.h, EX_OSERR)."""
_LOOK_SECONDS = 0.05
"""Pause between two looks at the memory in use."""
_LEEWAY_SECONDS = 5
"""The seconds of CPU time between the signal that ends this process and the one that kills it."""


@dataclasses.dataclass(frozen=True)
class DocumentTask:
    """A document to translate, and the limits of the work on it."""

    kind: Format
    language: str
    """The code of the source language, whose rules end sentences."""
    target_language: str = ""
    """The target language, as in ``ReadOptions``."""
    columns: tuple[str, ...] = ()
    keep_numbers: bool = False
    guard_cells: bool = False
    by_text: bool = False
    """Whether each text between two marks is translated by itself, as in ``translate_segments``."""
    most_chars: int = 1_000_000
    """Characters of text to translate."""
    most_bytes: int = 512 << 20
    """Bytes of memory beyond those of the interpreter and its libraries."""
    most_seconds: int = 60
    """CPU seconds."""


def message_of(content: dict[str, Any]) -> bytes:
    """A message as it is sent in both directions: its length, and JSON."""
    return frame_of(json.dumps(content).encode())


def frame_of(content: bytes) -> bytes:
    """Bytes as they are sent in both directions."""
    return SIZE.pack(len(content)) + content


def too_much_memory(task: DocumentTask) -> str:
    """The words for a client whose document takes too much memory."""
    most = task.most_bytes >> 20
    return f"the document must be read and written within {most} MiB of memory, needs more"


def answer_of(found: Sequence[Aligned]) -> bytes:
    """The parent's answer to a question."""
    return message_of(
        {
            "answers": [
                [each.text, each.links, [[w.kind, w.message] for w in each.warnings], each.doubt]
                for each in found
            ]
        }
    )


class _Parent:
    """The process that started this one."""

    def __init__(self, reads: BinaryIO, writes: BinaryIO, language: str = "") -> None:
        self._reads, self._writes = reads, writes
        self.source_language = language

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
        """The translation of each sentence, in order."""
        if not sentences:
            return []
        self.send(message_of({"sentences": list(sentences), "align": align}))
        answers = json.loads(self.receive())["answers"]
        return [
            Aligned(
                text,
                tuple((tuple(ours), tuple(theirs), w) for ours, theirs, w in links),
                warnings=tuple(TranslationWarning(*each) for each in warnings),
                doubt=doubt,
            )
            for text, links, warnings, doubt in answers
        ]

    def receive(self) -> bytes:
        """The next message."""
        [size] = SIZE.unpack(self._reads.read(SIZE.size))
        return self._reads.read(size)

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._writes.write(message)
        self._writes.flush()


def main() -> None:
    """Translate the document on standard input."""
    # What a library prints must not be read as a message.
    parent = _Parent(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()

    table = json.loads(parent.receive())
    task = DocumentTask(**{**table, "columns": tuple(table["columns"])})
    data = parent.receive()
    parent.source_language = task.language
    _bound(task)
    try:
        translation, remarks = _translated(task, data, parent)
    except (DataError, ConfigError) as error:
        parent.send(message_of({"detail": str(error)}))
    except MemoryError:
        # Room for the message itself.
        system.limit_memory(None)
        parent.send(message_of({"detail": too_much_memory(task)}))
    except BaseException as error:  # also the panic of a library, which is no Exception
        parent.send(message_of({"failure": place_of(error)}))
    else:
        parent.send(message_of(remarks) + frame_of(translation))


def _translated(task: DocumentTask, data: bytes, parent: _Parent) -> tuple[bytes, dict[str, Any]]:
    options = ReadOptions(
        task.columns, task.target_language, task.guard_cells, source_language=task.language
    )
    read = read_document(data, task.kind, "the document", options)

    size = sum(len(segment.text) for segment in read.segments)
    if size > task.most_chars:
        raise DataError(
            f"the document must have at most {task.most_chars:,} characters, has {size:,}"
        )

    counts = Counts()
    translated = translate_segments(
        read.segments,
        parent,
        keep_numbers=task.keep_numbers,
        progress=lambda done, total: parent.send(message_of({"done": done, "total": total})),
        counts=counts,
        by_text=task.by_text,
    )

    written = read.write(translated)
    notes = [*counts.notes, *read.notes]
    return written, {"warnings": dict(counts.warnings), "notes": notes}


def _bound(task: DocumentTask) -> None:
    """Limit the memory and CPU time of this process."""
    os.nice(_NICENESS)
    system.limit_cpu_time(task.most_seconds, _LEEWAY_SECONDS)
    if not system.limit_memory(task.most_bytes):
        threading.Thread(target=_end_when_large, args=(task.most_bytes,), daemon=True).start()


def _end_when_large(most_bytes: int) -> None:
    """End this process once it has taken so much more memory than at the beginning of this call.

    For macOS, which has no bound that holds. A call of a library that does not let other threads
    run ends first.
    """
    most = system.peak_memory() + most_bytes
    while system.peak_memory() <= most:
        time.sleep(_LOOK_SECONDS)
    os._exit(TOO_LARGE)


def _end_with_parent() -> None:
    """End this process when the other end of standard input is closed: its parent has ended."""
    ends = select.poll()
    ends.register(0, 0)  # no event but the hang-up, which is always reported
    ends.poll()
    os._exit(128 + signal.SIGHUP)


if __name__ == "__main__":
    main()
