"""Tokenizes the chunks of a corpus, in this process or in several; results keep their order.

The other processes are ``python -m pellucid.text.corpus.tokenizing``, whose arguments are a folder
with the tokenizers, and the types and limits of the store as JSON. They read chunks from standard
input, write ids to standard output, and end when their input does.
"""

import contextlib
import functools
import itertools
import json
import os
import queue
import struct
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pellucid.core.errors import DataError, PellucidError
from pellucid.core.system import usable_cores
from pellucid.text.corpus.chunks import (
    CHUNK,
    Chunk,
    InOrder,
    TokenizedChunk,
    read_chunks,
    tokenize_chunk,
)
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.store import StoreLayout
from pellucid.text.tokenizers.interface import Tokenizer
from pellucid.text.tokenizers.sentencepiece_tokenizer import set_thread_count
from pellucid.text.tokenizers.tokenizer import load_tokenizer

_MOST_WORKERS = 8
"""One process reads and writes for all of them; more than this number were not measured."""
_WORTH_A_PROCESS = 1 << 24
"""Bytes of text for each process; with less, starting it takes longer than it saves."""
_AHEAD = 2
"""Chunks for each process that are waiting or being tokenized."""

_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_FAILED = b"failed"
"""The first part of a message with an error instead of ids."""


@dataclass(frozen=True)
class Tokenizing:
    """The files to tokenize, and how."""

    files: PairFiles
    tokenizers: tuple[Tokenizer, Tokenizer]
    layout: StoreLayout
    max_length: int
    chunk_bytes: int = CHUNK
    """Source text that a process tokenizes at a time."""

    def chunks(
        self, workers: int | None = None, in_order: InOrder | None = None
    ) -> Generator[TokenizedChunk, None, None]:
        """Every chunk of the files, tokenized, in order.

        ``workers`` processes share the work; by default one for each core, up to eight, if there
        is enough text. ``in_order`` does the work instead if it is given, on Ray for example.
        The result does not depend on who does it. Raises as ``iterate_pairs``
        does, PellucidError if a process ends early.
        """
        if in_order is not None:
            task = TokenizeChunk.of(self)
            yield from in_order(task, read_chunks(self.files, self.chunk_bytes))
            return

        count = self._useful_workers() if workers is None else workers
        if count < 2:
            for chunk in read_chunks(self.files, self.chunk_bytes):
                yield tokenize_chunk(chunk, self.tokenizers, self.layout, self.max_length)
            return

        with _Workers(self, count) as at_work:
            yield from at_work.in_order(read_chunks(self.files, self.chunk_bytes))

    def _useful_workers(self) -> int:
        size = sum(path.stat().st_size for path in self.files.all if path.is_file())
        return min(usable_cores(), _MOST_WORKERS, size // _WORTH_A_PROCESS)


@dataclass(frozen=True)
class TokenizeChunk:
    """Tokenizes a chunk on a machine that need not have the tokenizers' files."""

    tokenizers: tuple[tuple[str, bytes], ...]
    """The files of both tokenizers, by name."""
    layout: StoreLayout
    max_length: int

    @classmethod
    def of(cls, task: Tokenizing) -> "TokenizeChunk":
        """Return a callable that tokenizes chunks as ``task`` asks, and can be sent to another
        process."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for side, tokenizer in zip(("source", "target"), task.tokenizers, strict=True):
                tokenizer.save(folder, side)
            files = tuple((path.name, path.read_bytes()) for path in sorted(folder.iterdir()))
        return cls(files, task.layout, task.max_length)

    def __call__(self, chunk: Chunk) -> TokenizedChunk:
        """Tokenize a chunk. Raises as ``tokenize_chunk``."""
        return tokenize_chunk(chunk, _unpacked(self.tokenizers), self.layout, self.max_length)


@functools.lru_cache(maxsize=2)
def _unpacked(files: tuple[tuple[str, bytes], ...]) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers from the bytes of their files, read once in each process."""
    set_thread_count(1)  # there is a process for every core
    with tempfile.TemporaryDirectory() as name:
        for file, content in files:
            (Path(name) / file).write_bytes(content)
        return load_tokenizer(Path(name), "source"), load_tokenizer(Path(name), "target")


class _Workers:
    """Processes that tokenize, with one thread here for each, which waits for its answers."""

    def __init__(self, task: Tokenizing, count: int) -> None:
        self._task = task
        self._count = count
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "_Workers":
        with contextlib.ExitStack() as opening:
            folder = Path(opening.enter_context(tempfile.TemporaryDirectory()))
            for name, tokenizer in zip(("source", "target"), self._task.tokenizers, strict=True):
                tokenizer.save(folder, name)

            for _ in range(self._count):
                process = _start(folder, self._task)
                opening.callback(_end, process)
                self._idle.put(process)

            # Undone in the opposite order: the threads stop asking before the processes end.
            threads = ThreadPoolExecutor(self._count, thread_name_prefix="pellucid-tokenizing")
            opening.callback(threads.shutdown, wait=True, cancel_futures=True)
            self._threads = threads
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def in_order(self, chunks: Iterator[Chunk]) -> Iterator[TokenizedChunk]:
        """The tokenized chunks in the order of ``chunks``, however long each takes."""
        # A bounded number is submitted: reading must not run ahead of tokenizing and fill memory.
        futures = self._submitted(chunks)
        waiting = deque(itertools.islice(futures, self._count * _AHEAD))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(itertools.islice(futures, 1))

    def _submitted(self, chunks: Iterator[Chunk]) -> Iterator[Future[TokenizedChunk]]:
        try:
            for chunk in chunks:
                yield self._threads.submit(self._ask, chunk)
        except PellucidError as error:
            # Problems of the lines before come first, as with one process.
            failed: Future[TokenizedChunk] = Future()
            failed.set_exception(error)
            yield failed

    def _ask(self, chunk: Chunk) -> TokenizedChunk:
        """Let an idle process tokenize ``chunk``; runs in one of the threads."""
        process = self._idle.get()
        assert process.stdin is not None
        assert process.stdout is not None

        try:
            _send(process.stdin, chunk.to_message())
            answer = _receive(process.stdout)
        except OSError:
            answer = None
        self._idle.put(process)

        if answer is None:
            raise PellucidError(
                f"a process that tokenizes ended early (exit code {process.wait()})",
                hint="its own message says why; data.workers=1 does without such processes",
            )

        if answer[0] == _FAILED:
            message, hint = json.loads(answer[1])
            raise DataError(message, hint=hint)
        return TokenizedChunk.from_message(answer, self._task.layout)


def _start(folder: Path, task: Tokenizing) -> "subprocess.Popen[bytes]":
    layout = task.layout
    types = [layout.source_type, layout.target_type, layout.length_type]
    arguments = json.dumps({"types": types, "max_length": task.max_length})

    return subprocess.Popen(  # noqa: S603  (this program, with arguments of our own)
        [sys.executable, "-m", __name__, str(folder), arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C reaches this process only, which ends the others
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.close()
    process.wait()


def _send(file: IO[bytes], parts: Sequence[bytes]) -> None:
    """Write one message: the number of its parts, then each part with its size."""
    file.write(_COUNT.pack(len(parts)))
    for part in parts:
        file.write(_SIZE.pack(len(part)))
        file.write(part)
    file.flush()


def _receive(file: IO[bytes]) -> list[bytes] | None:
    """Read one message; None if the other process has ended."""
    head = file.read(_COUNT.size)
    if len(head) < _COUNT.size:
        return None

    parts = []
    for _ in range(_COUNT.unpack(head)[0]):
        size = file.read(_SIZE.size)
        if len(size) < _SIZE.size:
            return None
        part = file.read(_SIZE.unpack(size)[0])
        if len(part) < _SIZE.unpack(size)[0]:
            return None
        parts.append(part)

    return parts


def main() -> None:
    """Answer every chunk with its ids, or with what is wrong with it."""
    folder, arguments = Path(sys.argv[1]), json.loads(sys.argv[2])
    tokenizers = load_tokenizer(folder, "source"), load_tokenizer(folder, "target")
    layout = StoreLayout(*arguments["types"])
    set_thread_count(1)  # there is a process for every core

    # Whatever a library prints goes to standard error, not between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while message := _receive(sys.stdin.buffer):
        chunk = Chunk.from_message(message)
        try:
            done = tokenize_chunk(chunk, tokenizers, layout, arguments["max_length"])
            answer = done.to_message()
        except DataError as error:
            # JSON writes any text in ASCII, also the name of a file that is not UTF-8.
            answer = _FAILED, json.dumps([str(error), error.hint]).encode()
        _send(answers, answer)


if __name__ == "__main__":
    main()
