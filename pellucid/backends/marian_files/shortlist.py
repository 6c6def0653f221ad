"""Marian's binary lexical shortlist, the ``lex.50.50.s2t.bin`` of a Firefox model.

Firefox and Marian compute the logits of some words alone: of the most frequent ones, and of the
likeliest translations of each word of the source. That is faster, and a translation that needs
another word is not found. Pellucid translates without one; it reads, checks and writes them.

Little-endian: a magic number, a checksum, the number of frequent words, the most translations of a
word, the number of offsets, the number of translations (64 bits each); the offset of each source
word's translations and the end of the last (64 bits); the translations (32 bits). Source:
marian-dev, ``src/data/shortlist.cpp`` and ``src/common/hash.h``.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pellucid.backends.marian_files.vocabulary import FileVocabulary
from pellucid.core.errors import BundleError, CorruptError, InputMissingError
from pellucid.core.files import read_plain
from pellucid.text.lexicon import learn_lexicon
from pellucid.text.tokenizers.interface import Tokenizer

_MAGIC = 0xF11A48D5013417F5
_HEAD = struct.Struct("<6Q")
_HASHED_FROM = 16
"""Bytes: the checksum is of all that comes behind it."""
_LARGEST = 1 << 28
"""Bytes, beyond any real shortlist; those of Firefox have 4 to 8 million."""
_FREQUENT, _BEST = 50, 50
"""The numbers of Firefox's shortlists."""


@dataclass(frozen=True)
class Shortlist:
    """The target words that may translate each source word, by the ids of a file's vocabularies."""

    frequent: int
    """So many target words, the first of the vocabulary, are allowed in every translation."""
    best: int
    """The most translations that a word was given."""
    offsets: npt.NDArray[np.uint64]
    """Translations of source word i are those from offset i to offset i + 1."""
    translations: npt.NDArray[np.uint32]
    """Ascending for each source word."""

    @property
    def name(self) -> str:
        """The name of its file, as Firefox's are called."""
        return f"lex.{self.frequent}.{self.best}.s2t.bin"

    def of(self, word: int) -> list[int]:
        """The translations of a source word; none of a word behind the last one that it lists."""
        if word + 1 >= len(self.offsets):
            return []
        first, end = self.offsets[word : word + 2].tolist()
        return [int(each) for each in self.translations[first:end]]

    def problem(self, sizes: tuple[int, int]) -> str | None:
        """Why it does not fit vocabularies of so many source and target words; None if it does.

        Some of Firefox's shortlists end before the last source words, which then have none.
        """
        if len(self.offsets) > sizes[0] + 1:
            return f"it lists {len(self.offsets) - 1} source words, and the model has {sizes[0]}"
        largest = int(self.translations.max(initial=0))
        if largest >= sizes[1]:
            return f"it names the target word {largest}, and the model has {sizes[1]}"
        return None


def learn_shortlist(
    pairs: Iterable[tuple[str, str]],
    tokenizers: tuple[Tokenizer, Tokenizer],
    vocabularies: tuple[FileVocabulary, FileVocabulary],
) -> Shortlist:
    """The shortlist of the likeliest translations of each word in ``pairs`` (IBM Model 1)."""
    sides = [
        (tokenizer, {ours: theirs for theirs, ours in enumerate(vocabulary.ours)})
        for tokenizer, vocabulary in zip(tokenizers, vocabularies, strict=True)
    ]

    def ids(side: int, text: str) -> list[int]:
        tokenizer, number_of = sides[side]
        return [number_of[id_] for id_ in tokenizer.encode(text)]

    lexicon = learn_lexicon((ids(0, source), ids(1, target)) for source, target in pairs)
    if not len(lexicon.sources):
        raise BundleError("a shortlist needs pairs of sentences, and there are none")

    lists = [np.sort(lexicon.best(word, _BEST)) for word in range(len(vocabularies[0].ours))]
    ends = np.cumsum([len(each) for each in lists])
    return Shortlist(
        _FREQUENT,
        _BEST,
        np.concatenate(([0], ends)).astype(np.uint64),
        np.concatenate(lists).astype(np.uint32),
    )


def read_shortlist(path: Path) -> Shortlist:
    """The shortlist in a file.

    Raises InputMissingError for a file that cannot be read, CorruptError for one that is no
    shortlist or was damaged.
    """
    try:
        content = read_plain(path, _LARGEST)
    except OSError as error:
        raise InputMissingError(f"cannot read {path}: {error.strerror}") from error

    def problem(text: str) -> CorruptError:
        return CorruptError(f"{path} is not a binary shortlist of Marian: {text}")

    if len(content) < _HEAD.size:
        raise problem(f"it has {len(content)} bytes")
    magic, checksum, frequent, best, offset_count, count = _HEAD.unpack_from(content)
    if magic != _MAGIC:
        raise problem(f"it begins with {magic:#018x}, not {_MAGIC:#018x}")
    size = _HEAD.size + 8 * offset_count + 4 * count
    if size != len(content):
        raise problem(f"its head is that of a file of {size} bytes, and it has {len(content)}")
    if _checksum(content[_HASHED_FROM:]) != checksum:
        raise problem("its checksum is another one")

    offsets = np.frombuffer(content, "<u8", offset_count, _HEAD.size)
    if not offset_count or offsets[0] or offsets[-1] != count or (offsets[1:] < offsets[:-1]).any():
        raise problem("its offsets do not divide its words")
    translations = np.frombuffer(content, "<u4", count, _HEAD.size + 8 * offset_count)
    return Shortlist(frequent, best, offsets.copy(), translations.copy())


def write_shortlist(shortlist: Shortlist) -> bytes:
    """The content of the file."""
    sizes = len(shortlist.offsets), len(shortlist.translations)
    body = (
        struct.pack("<4Q", shortlist.frequent, shortlist.best, *sizes)
        + shortlist.offsets.astype("<u8").tobytes()
        + shortlist.translations.astype("<u4").tobytes()
    )
    return struct.pack("<2Q", _MAGIC, _checksum(body)) + body


def _checksum(body: bytes) -> int:
    """The hash h of all 64-bit numbers x in turn: h ← h xor (x + 0x9e3779b9 + (h << 6) + (h >> 2)).

    A half of a number at the end does not count.
    """
    value = 0
    for (number,) in struct.iter_unpack("<Q", body[: len(body) // 8 * 8]):
        value ^= (number + 0x9E3779B9 + (value << 6) + (value >> 2)) & 0xFFFFFFFFFFFFFFFF
    return value
