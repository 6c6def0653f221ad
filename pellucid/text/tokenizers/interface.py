"""The interface of tokenizers: text to ids and back."""

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import BundleError, DataError
from pellucid.core.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_COUNT
from pellucid.text.config import TokenizerKind
from pellucid.text.corpus.rows import IdRows
from pellucid.text.look_alikes import LookAlikes
from pellucid.text.normalization import Normalization, normalize

Seeds = npt.NDArray[np.uint64]
"""One seed for each text."""
SILENT_IDS = frozenset((PAD_ID, BOS_ID, EOS_ID))
"""The ids without text: they control the model, and ``decode`` drops them (EQ-12)."""

BYTE = re.compile(r"<0x([0-9A-F]{2})>")
"""A token that is a byte, of a character without a token of its own."""
SAVED_AS = (".spm", ".spm.json", ".vocab.json", ".marian.spm")
"""The endings of the files that tokenizers are saved in, behind the name of a side."""


class Tokenizer(ABC):
    """Splits text into tokens and looks up their ids; safe to use from several threads.

    EQ: 01, 03, 12.  Text never gives ids below ``SPECIAL_COUNT``, except UNK.
    """

    @property
    @abstractmethod
    def kind(self) -> TokenizerKind | Literal["marian"]:
        """The name of the method, as in the config; ``marian`` can only be imported."""

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """How many ids there are, the special ones included."""

    @property
    @abstractmethod
    def normalization(self) -> Normalization:
        """Whether every text is first brought into the form of ``pellucid.text.normalization``."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 over the kind and everything that decides the ids, in hexadecimal."""

    @functools.cached_property
    def characters(self) -> frozenset[str]:
        """The characters that its tokens are written with, without those spelled in bytes."""
        tokens = self.tokens(range(SPECIAL_COUNT, self.vocabulary_size))
        return frozenset().union(*(each for each in tokens if not BYTE.fullmatch(each)))

    @functools.cached_property
    def look_alikes(self) -> LookAlikes:
        """The signs that it does not know, with those that look alike, which it does."""
        has_bytes = self.kind in ("bpe", "unigram")
        return LookAlikes.of(self.characters, self.read, has_bytes=has_bytes)

    def read(self, text: str) -> str:
        """The text as it is read: normalized, if that is part of the tokenizer.

        Raises as ``encode`` does.
        """
        return normalize(text) if self.normalization == "nfc" else text

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of ``text``, without BOS and EOS.

        Raises DataError if it contains a lone surrogate.
        """

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, as ``encode`` gives them, but faster. Raises as ``encode`` does."""

    @abstractmethod
    def resegment(self, rows: IdRows, alpha: float, seeds: Seeds) -> IdRows:
        """Random segmentations of texts, given by their ids (subword regularization).

        The result depends on the text, its seed and alpha only, not on the process, the thread or
        the other texts; alpha 0 changes nothing. Raises ConfigError for any other alpha if this
        kind has only one segmentation.
        """

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; PAD, BOS and EOS are dropped.

        Raises DataError if an id is outside the vocabulary.
        """

    @abstractmethod
    def normalize(self, text: str) -> str:
        """The result of ``decode(encode(text))`` if no token of ``text`` is unknown.

        Unlike ``read`` also without what splitting loses, such as spaces around marks.
        """

    @abstractmethod
    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The token of each id, in a form for people to read.

        Raises DataError if an id is outside the vocabulary.
        """

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write the files that ``load_tokenizer(folder, name)`` reads.

        Raises WriteError.
        """


def check_fingerprint(tokenizer: Tokenizer, expected: str) -> None:
    """Raise BundleError unless ``tokenizer`` is the one the model was trained with.

    EQ: 11.  The message names both fingerprints.
    """
    # Ids are only row numbers of the embeddings: with another table a model runs without an error
    # and translates into nonsense.
    if tokenizer.fingerprint != expected:
        raise BundleError(
            f"the model needs the tokenizer {expected[:16]}, got the {tokenizer.kind} tokenizer"
            f" {tokenizer.fingerprint[:16]}",
            hint="a model works only with the tokenizer it was trained with: use its own files",
        )


def check_id(id_: int, size: int) -> int:
    """The id itself. Raises DataError if a vocabulary of ``size`` tokens does not have it."""
    if 0 <= id_ < size:
        return id_
    raise DataError(f"an id must be from 0 to {size - 1}, got {id_}")
