"""A process that tokenizes chunks for another, and the messages between the two.

Started as ``python -m pellucid.text.corpus.tokenizing_process``.

Its arguments are a folder with the tokenizers, and the types and limits of the store as JSON. It
reads chunks from standard input, writes ids to standard output, and ends when its input does.
"""

import json
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pellucid.core.errors import DataError
from pellucid.text.corpus.chunks import Chunk, tokenize_chunk
from pellucid.text.corpus.store import StoreLayout
from pellucid.text.tokenizers.sentencepiece_tokenizer import set_thread_count
from pellucid.text.tokenizers.tokenizer import load_tokenizer

_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")


def send_message(file: IO[bytes], parts: Sequence[bytes]) -> None:
    """Write one message: the number of its parts, then each part with its size."""
    file.write(_COUNT.pack(len(parts)))
    for part in parts:
        file.write(_SIZE.pack(len(part)))
        file.write(part)
    file.flush()


def receive_message(file: IO[bytes]) -> list[bytes] | None:
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


FAILED = b"failed"
"""The first part of a message with an error instead of ids."""


def main() -> None:
    """Answer every chunk with its ids, or with what is wrong with it."""
    folder, arguments = Path(sys.argv[1]), json.loads(sys.argv[2])
    tokenizers = load_tokenizer(folder, "source"), load_tokenizer(folder, "target")
    layout = StoreLayout(*arguments["types"])
    set_thread_count(1)  # there is a process for every core

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    while message := receive_message(sys.stdin.buffer):
        chunk = Chunk.from_message(message)
        try:
            done = tokenize_chunk(chunk, tokenizers, layout, arguments["max_length"])
            answer = done.to_message()
        except DataError as error:
            answer = FAILED, str(error).encode(), error.hint.encode()
        send_message(answers, answer)


if __name__ == "__main__":
    main()
