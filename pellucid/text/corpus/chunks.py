"""Chunks of whole lines of a corpus, as bytes, and their tokenization.

A chunk is what one process tokenizes at a time. Chunks and their ids are sent between processes as
a line of JSON and plain arrays.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar, assert_never

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import DataError
from pellucid.text.config import file_format
from pellucid.text.corpus.lines import (
    BYTE_ORDER_MARK,
    decode_block,
    invalid_lines,
    open_raw_lines,
    refuse_foreign,
)
from pellucid.text.corpus.pairs import (
    PairFiles,
    TextNames,
    count_mismatch,
    is_blank_pair,
    parse_jsonl,
    parse_text,
    parse_tsv,
    text_names,
)
from pellucid.text.corpus.readers import refuse_pipe
from pellucid.text.corpus.rows import Ids
from pellucid.text.corpus.store import StoreLayout
from pellucid.text.tokenizers.interface import Tokenizer

CHUNK = 1 << 19
"""Bytes of source text in a chunk, some thousands of pairs."""

_LONGEST_TEXT = 1 << 20
"""Characters; a longer side counts as too long without being tokenized."""

_Layout = Literal["plain", "tsv", "jsonl", "text"]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class InOrder(Protocol):
    """Runs a function on chunks, anywhere; gives the results in their order, as ``map`` does."""

    def __call__(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item], /
    ) -> Iterator[_Result]:
        """The result for each item."""
        ...


@dataclass(frozen=True)
class Chunk:
    """Some lines of a source file and, if that does not hold both sides, of its partner."""

    part: int
    """The number of the source file, from 0."""
    layout: _Layout
    names: tuple[str, str]
    first: int
    """Number of the first line, from 1."""
    source: bytes
    target: bytes
    text_names: TextNames | None = None
    """The names of the texts in lines of JSON."""

    def to_message(self) -> tuple[bytes, ...]:
        """The parts of a message for ``from_message``."""
        # No pickle: what comes through a pipe is data, and cannot run code.
        texts = self.text_names and dataclasses.astuple(self.text_names)
        head = [self.part, self.layout, self.names, self.first, texts]
        return json.dumps(head).encode(), self.source, self.target

    @classmethod
    def from_message(cls, message: list[bytes]) -> "Chunk":
        """A chunk that another process sent."""
        part, layout, (source_name, target_name), first, texts = json.loads(message[0])
        names = source_name, target_name
        text_names = texts and TextNames(*texts)
        return cls(part, layout, names, first, message[1], message[2], text_names)

    def without_invalid(self) -> tuple["Chunk", list[int]]:
        """The chunk with blank lines for pairs that are not UTF-8, and the rows of these, from 0.

        Raises DataError if the file is in a format that is not text.
        """
        invalid = sorted({*invalid_lines(self.source), *invalid_lines(self.target)})
        if not invalid:
            return self, invalid

        if self.first == 1:
            for block, name in zip((self.source, self.target), self.names, strict=True):
                refuse_foreign(block.partition(b"\n")[0], name)
        source, target = (_blanked(side, invalid) for side in (self.source, self.target))
        return dataclasses.replace(self, source=source, target=target), invalid

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs, blank ones too. Raises DataError for lines that are not pairs."""
        # Lines are decoded by the process that tokenizes, so that the one that reads keeps up with
        # several.
        lines = decode_block(self.source, self.names[0], self.first)
        match self.layout:
            case "plain":
                partners = decode_block(self.target, self.names[1], self.first)
                return list(zip(lines, partners, strict=True))
            case "text":
                parse = parse_text
            case "tsv":
                parse = parse_tsv
            case "jsonl":
                parse = functools.partial(parse_jsonl, names=self.text_names)
            case _:
                assert_never(self.layout)

        return [parse(line, self.names[0], number) for number, line in enumerate(lines, self.first)]


@dataclass(frozen=True)
class TokenizedChunk:
    """The ids of the pairs that were kept, and which those are."""

    part: int
    empty: int
    """Pairs dropped because a side was blank."""
    is_kept: npt.NDArray[np.bool_]
    """For every pair that was read."""
    sides: tuple[tuple[Ids, Ids], tuple[Ids, Ids]]
    """Ids and lengths of each side."""

    def to_message(self) -> tuple[bytes, ...]:
        """The parts of a message for ``from_message``."""
        head = [self.part, self.empty, len(self.is_kept)]

        # One bit for each pair read; the ids are sent in the type that they have on the disk.
        arrays = (array.tobytes() for side in self.sides for array in side)
        return json.dumps(head).encode(), np.packbits(self.is_kept).tobytes(), *arrays

    @classmethod
    def from_message(cls, message: list[bytes], layout: StoreLayout) -> "TokenizedChunk":
        """A tokenized chunk that another process sent."""
        part, empty, count = json.loads(message[0])

        # Views of the message's bytes, without a copy.
        bits = np.frombuffer(message[1], np.uint8)
        source, target = (
            (np.frombuffer(ids, id_type), np.frombuffer(lengths, layout.length_type))
            for ids, lengths, id_type in (
                (message[2], message[3], layout.source_type),
                (message[4], message[5], layout.target_type),
            )
        )
        is_kept = np.unpackbits(bits, count=count).astype(np.bool_)
        return cls(part, empty, is_kept, (source, target))


def read_chunks(files: PairFiles, chunk_bytes: int = CHUNK) -> Iterator[Chunk]:
    """All lines of all files, in order, in chunks of about ``chunk_bytes`` of source text.

    Raises as ``iterate_pairs`` does, but does not check the text, which tokenizing does.
    """
    for part, source in enumerate(files.sources):
        # Each file by its own suffix: a corpus may mix TSV and JSONL.
        layout = _layout(files, source)
        target = files.targets[part] if layout == "plain" else source
        is_empty = True

        with contextlib.ExitStack() as opened:
            source_lines = opened.enter_context(contextlib.closing(open_raw_lines(source)))
            if layout == "plain":
                target_lines = opened.enter_context(contextlib.closing(open_raw_lines(target)))
                chunks = _beside(part, (source, target), source_lines, target_lines, chunk_bytes)
                for chunk in chunks:
                    is_empty = False
                    yield chunk
            else:
                names = None
                for first, lines in _numbered(source_lines, chunk_bytes):
                    is_empty = False
                    if layout == "jsonl" and names is None:
                        names = _first_names(lines, first, str(source))
                    content = b"".join(lines)
                    yield Chunk(part, layout, (str(source), ""), first, content, b"", names)

        # Most likely a download that failed, so it is an error and not a corpus of nothing.
        if is_empty:
            refuse_pipe(source)  # a pipe that was read before is empty
            raise DataError(f"{source} is empty", hint="a corpus needs at least one sentence pair")


def tokenize_chunk(
    chunk: Chunk, tokenizers: tuple[Tokenizer, Tokenizer], layout: StoreLayout, max_length: int
) -> TokenizedChunk:
    """The ids of every pair of a chunk with text, and at most ``max_length`` tokens, on both sides.

    Raises DataError if a line is not a pair or not UTF-8.
    """
    pairs = chunk.pairs()
    is_kept = np.array([not is_blank_pair(*pair) for pair in pairs], dtype=np.bool_)

    # Blank pairs are counted apart from long ones: the warnings differ.
    empty = len(pairs) - int(is_kept.sum())
    full = list(itertools.compress(pairs, is_kept.tolist())) if empty else pairs

    # Very long texts become empty ones, which are dropped below: tokenizing megabytes takes fifty
    # times their memory.
    is_short = np.array([max(map(len, pair)) <= _LONGEST_TEXT for pair in full], dtype=np.bool_)
    if not is_short.all():
        full = [pair if short else ("", "") for pair, short in zip(full, is_short, strict=True)]

    rows = [
        tokenizer.encode_batch([pair[side] for pair in full])
        for side, tokenizer in enumerate(tokenizers)
    ]

    # A text can have no tokens although it has characters, such as one of zero-width spaces: it
    # counts as blank.
    lengths = [np.fromiter(map(len, side), np.int64, len(side)) for side in rows]
    fits = (np.minimum(*lengths) > 0) & (np.maximum(*lengths) <= max_length)
    is_kept[is_kept] = fits  # over all pairs, not only those that are not blank
    empty += int(((np.minimum(*lengths) == 0) & is_short).sum())

    sides = []
    for side, id_type in zip(range(2), (layout.source_type, layout.target_type), strict=True):
        # Straight into the type of the store: Python's integers take far more memory.
        kept = itertools.chain.from_iterable(itertools.compress(rows[side], fits.tolist()))
        counts = lengths[side][fits]
        ids: Ids = np.fromiter(kept, id_type, int(counts.sum()))
        sides.append((ids, counts.astype(layout.length_type)))

    return TokenizedChunk(chunk.part, empty, is_kept, (sides[0], sides[1]))


def _layout(files: PairFiles, source: Path) -> _Layout:
    if files.is_text:
        return "text"
    given = file_format(str(source), files.format)
    return "plain" if given == "auto" else given


def _first_names(lines: list[bytes], first: int, name: str) -> TextNames | None:
    """The names of the texts in the first line of JSON that is not blank."""
    for number, line in enumerate(lines, first):
        try:
            text = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).decode()
        except UnicodeDecodeError:
            continue  # an error when the chunk is decoded, or a line that ``prepare`` drops
        if text.strip():
            return text_names(text, name)
    return None


def _blanked(block: bytes, rows: list[int]) -> bytes:
    """A block of lines with blank ones at these rows; an empty block stays empty."""
    lines = block.split(b"\n")
    for row in rows if block else []:
        lines[row] = b" "  # an empty last line would be none
    return b"\n".join(lines)


def _beside(
    part: int,
    paths: tuple[Path, Path],
    source_lines: Iterator[bytes],
    target_lines: Iterator[bytes],
    chunk_bytes: int,
) -> Iterator[Chunk]:
    """Chunks of two parallel files, each with the same lines of both."""
    names = str(paths[0]), str(paths[1])
    for first, lines in _numbered(source_lines, chunk_bytes):
        # By number and not by size, so that both sides of a chunk are the same pairs.
        partners = list(itertools.islice(target_lines, len(lines)))
        if len(partners) != len(lines):
            raise count_mismatch(*paths)
        yield Chunk(part, "plain", names, first, b"".join(lines), b"".join(partners))

    # The target file must have ended as well.
    if next(target_lines, None) is not None:
        raise count_mismatch(*paths)


def _numbered(lines: Iterator[bytes], chunk_bytes: int) -> Iterator[tuple[int, list[bytes]]]:
    """Groups of lines of about ``chunk_bytes``, each with the number of its first line, from 1."""
    first, size = 1, 0
    chunk: list[bytes] = []

    for line in lines:
        chunk.append(line)
        size += len(line)

        # Whole lines: a chunk can be decoded and split without its neighbors.
        if size >= chunk_bytes:
            yield first, chunk
            first, size, chunk = first + len(chunk), 0, []

    if chunk:
        yield first, chunk
