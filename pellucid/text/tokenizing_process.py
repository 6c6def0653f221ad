"""A process that tokenizes chunks for another: ``python -m pellucid.text.tokenizing_process``.

Its arguments are a folder with the tokenizers and what a store needs to know; chunks come in on
standard input, ids go out on standard output, and it ends when its input does.
"""

import json
import os
import sys
from pathlib import Path

from pellucid.core.errors import DataError
from pellucid.text.chunks import Chunk, tokenize_chunk
from pellucid.text.messages import receive_message, send_message
from pellucid.text.sentencepiece_tokenizer import set_thread_count
from pellucid.text.store import StoreLayout
from pellucid.text.tokenizer import load_tokenizer

FAILED = b"failed"
"""The first part of a message that says what is wrong with a chunk."""


def main() -> None:
    """Answer every chunk by its ids, or by what is wrong with it."""
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
