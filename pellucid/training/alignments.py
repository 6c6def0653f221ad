"""Given word alignments of a corpus, as links between the tokens of its pairs."""

import contextlib
import dataclasses
import hashlib
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from pellucid.core.errors import DataError
from pellucid.core.texts import counted
from pellucid.decoding.attention import align_tokens, align_words, words_of_text
from pellucid.decoding.requests import as_requests
from pellucid.decoding.result import Translation
from pellucid.decoding.translator import Translator
from pellucid.text.corpus.lines import iterate_lines
from pellucid.text.corpus.pairs import PairFiles, is_blank_pair, iterate_pairs
from pellucid.text.corpus.rows import Indices
from pellucid.text.corpus.store import TokenStore
from pellucid.text.scripts import length_of_no_words
from pellucid.text.tokenizers.interface import Tokenizer

_log = logging.getLogger("pellucid")
_LINES_AT_ONCE = 4096
_SAMPLED_LINES = 2000
"""The first lines of a text, by which its script is judged."""
_LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")


@dataclasses.dataclass(frozen=True)
class Alignments:
    """The links between the tokens of each row of a store."""

    links: npt.NDArray[np.int32]
    """(link, 2): position in the target and in the source, row after row."""
    begins: Indices
    """How many links the rows before each one have; (row + 1)."""
    fingerprint: str
    """SHA-256 over all links."""

    def of(self, rows: Indices) -> torch.Tensor:
        """The links of these rows as ``Batch.links``: sentence, target and source position."""
        found = [
            np.insert(self.links[self.begins[row] : self.begins[row + 1]], 0, place, axis=1)
            for place, row in enumerate(rows.tolist())
        ]
        return torch.from_numpy(np.concatenate(found).astype(np.int64))

    def check(self, store: TokenStore) -> None:
        """Raise DataError unless there is a row for each of ``store``."""
        if len(self.begins) - 1 != len(store):
            raise DataError(
                f"the word alignments are of {len(self.begins) - 1:,} pairs, and the tokenized text"
                f" has {len(store):,}"
            )


@dataclasses.dataclass(frozen=True)
class AlignedPairs:
    """Some rows of a store, with the links of all of them."""

    store: TokenStore
    rows: Indices
    alignments: Alignments


def read_alignments(
    files: PairFiles, names: Sequence[str], tokenizers: tuple[Tokenizer, Tokenizer], longest: int
) -> Alignments:
    """The alignments in the files ``names`` of the pairs that a store of ``files`` has.

    Each token of a word gets the links of its word. Warns as ``warn_of_no_words``. Raises
    DataError for a line that is no list of links, a link to a word that is not there, or another
    number of lines than the text has, and as reading the files does.
    """
    links: list[npt.NDArray[np.int32]] = []
    counts: list[int] = []
    with contextlib.closing(iterate_pairs(files)) as pairs:
        warn_of_no_words(pairs)
    for number, name in enumerate(names):
        here = slice(number, number + 1)
        text = dataclasses.replace(files, sources=files.sources[here], targets=files.targets[here])
        for some in _lines(text, Path(name)):
            for found in _tokens_of(some, name, tokenizers, longest):
                links.append(found)
                counts.append(len(found))

    flat = np.concatenate([np.empty((0, 2), dtype=np.int32), *links])
    begins = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    digest = hashlib.sha256(flat.astype("<i4").tobytes())
    digest.update(begins.astype("<i8").tobytes())
    return Alignments(flat, begins, digest.hexdigest())


def warn_of_no_words(pairs: Iterable[tuple[str, str]]) -> None:
    """Warn if a side of ``pairs``, of which the first are read, has no spaces between its words: a
    link is then one of whole sentences."""
    some = list(itertools.islice(pairs, _SAMPLED_LINES))
    for side, name in enumerate(("source", "target")):
        mean = length_of_no_words([word for pair in some for word in pair[side].split()])
        if mean is not None:
            _log.warning(
                "word alignments link what white space separates, which in the %s are %.0f"
                " characters on average, not words: links of sentences teach nothing; give text"
                " with a space after each word, or leave the alignments out",
                name,
                mean,
            )


def aligned_lines(translator: Translator, source: Path, target: Path) -> Iterator[str]:
    """The alignment of each line of two files by a model's attention, in the form that is read.

    As in documents, a token's attention counts by its share of all attention to the source token.
    A line that the model reads with other words, without its emoji for example, has no links.
    Raises as reading the files does, DataError if they differ in lines, ConfigError for a model
    without attention.
    """
    with contextlib.closing(iterate_pairs(PairFiles((source,), (target,)))) as pairs:
        while some := list(itertools.islice(pairs, _LINES_AT_ONCE)):
            yield from _aligned(translator, some)


def _aligned(translator: Translator, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    given = [
        Translation(target, 0.0, (), (), (), source, token_ids=tuple(tokenizers[1].encode(target)))
        for source, target in pairs
    ]
    requests = as_requests([source for source, _ in pairs], translator.settings, 1)
    read = [translator.odd_line(request).plain.read for request in requests]

    for translation, seen, weights in zip(given, read, translator.attention(given), strict=True):
        source, target = translation.source, translation.text
        ids = tokenizers[0].encode(seen)[: weights.shape[1] - 1]
        if len(seen.split()) != len(source.split()) or not ids or not translation.token_ids:
            yield ""
            continue

        shares = weights / weights[:-1].sum(dim=0, keepdim=True).clamp_min(1e-9)
        links = align_words(
            align_tokens(weights * shares),
            words_of_text(source, ids, tokenizers[0]),
            words_of_text(target, translation.token_ids, tokenizers[1]),
        )
        yield " ".join(f"{one}-{two}" for one, two in links)


_Line = tuple[int, tuple[str, str], str]
"""The number of a line, its texts and its links."""


def _lines(files: PairFiles, path: Path) -> Iterator[list[_Line]]:
    """All lines with text on both sides, some at a time."""
    with (
        contextlib.closing(iterate_pairs(files)) as pairs,
        contextlib.closing(iterate_lines(path)) as given,
    ):
        both = enumerate(itertools.zip_longest(pairs, given), start=1)
        while some := list(itertools.islice(both, _LINES_AT_ONCE)):
            for number, (pair, links) in some:
                if pair is None or links is None:
                    text, other = files.sources[0], "more" if pair is None else "fewer"
                    raise DataError(
                        f"{path} must have a line for each of {text}, and has {other}: they part at"
                        f" line {number}"
                    )
            yield [
                (number, pair, links) for number, (pair, links) in some if not is_blank_pair(*pair)
            ]


def _tokens_of(
    lines: Sequence[_Line], name: str, tokenizers: tuple[Tokenizer, Tokenizer], longest: int
) -> Iterator[npt.NDArray[np.int32]]:
    """The links of each line whose pair a store keeps, between tokens."""
    sides = [
        tokenizer.encode_batch([pair[side] for _, pair, _ in lines])
        for side, tokenizer in enumerate(tokenizers)
    ]
    for (number, pair, text), source, target in zip(lines, *sides, strict=True):
        linked = _links(text, f"{name}, line {number}", [len(each.split()) for each in pair])
        if not 0 < min(len(source), len(target)) <= max(len(source), len(target)) <= longest:
            continue
        words = [
            np.array(words_of_text(each, ids, tokenizer))
            for each, ids, tokenizer in zip(pair, (source, target), tokenizers, strict=True)
        ]
        is_linked = np.zeros((len(target), len(source)), dtype=bool)
        for one, two in linked:
            is_linked |= (words[1] == two)[:, None] & (words[0] == one)
        yield np.argwhere(is_linked).astype(np.int32)


def _links(text: str, where: str, words: Sequence[int]) -> list[tuple[int, int]]:
    found = []
    for each in text.split():
        link = _LINK.fullmatch(each)
        if link is None:
            raise DataError(f"{where}: a link must be two numbers such as 0-2, got {each[:40]!r}")
        ends = int(link[1]), int(link[2])
        for end, count, side in zip(ends, words, ("source", "target"), strict=True):
            if end >= count:
                raise DataError(
                    f"{where}: the link {each} is to word {end} of the {side}, which has"
                    f" {counted(count, 'word')}, from 0"
                )
        found.append(ends)
    return found
