"""What a tokenizer is: text in, ids out, and back."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import BundleError, DataError
from pellucid.core.special import PAD_ID, START_ID, STOP_ID
from pellucid.text.config import TokenizerKind
from pellucid.text.corpus.rows import IdRows

Seeds = npt.NDArray[np.uint64]
"""One for each text."""
SILENT_IDS = frozenset((PAD_ID, START_ID, STOP_ID))
"""The ids that have no text: they steer the model and are dropped by ``decode`` (EQ-12)."""


class Tokenizer(ABC):
    """Cuts text into tokens and looks their ids up; one object serves any number of threads.

    EQ: 01, 03, 12.  Ids below ``SPECIAL_COUNT`` never come out of text, save UNK.
    """

    @property
    @abstractmethod
    def kind(self) -> TokenizerKind | Literal["marian"]:
        """The name of the method, as in the config; ``marian`` is only ever imported."""

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """How many ids there are, the special ones included."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 over the kind and everything that decides the ids, in hexadecimal."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The ids of ``text``, with neither START nor STOP.

        Raises DataError if it holds a lone surrogate.
        """

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text: as ``encode``, only faster. Raises as ``encode`` does."""

    @abstractmethod
    def resegment(self, rows: IdRows, alpha: float, seeds: Seeds) -> IdRows:
        """Randomly chosen segmentations of texts, given by their ids, to regularize training.

        A text, its seed and alpha decide its ids, in any process and thread and beside any other
        texts; alpha 0 changes nothing. Raises ConfigError for any other alpha if this kind has one
        segmentation only.
        """

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; PAD, START and STOP are dropped.

        Raises DataError if an id is outside the vocabulary.
        """

    @abstractmethod
    def normalize(self, text: str) -> str:
        """What ``decode(encode(text))`` gives if no token of ``text`` is unknown."""

    @abstractmethod
    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The token behind each id, as people may look at it.

        Raises DataError if an id is outside the vocabulary.
        """

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write the files from which ``load_tokenizer(folder, name)`` makes this tokenizer again.

        Raises WriteError.
        """


def check_text(text: str) -> None:
    """Refuse text that is not Unicode.

    Raises DataError naming the first lone surrogate.
    """
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"text must be Unicode, got the lone surrogate U+{ord(text[error.start]):04X}"
            f" at character {error.start + 1}",
            hint="the text was probably cut in the middle of a character or wrongly decoded",
        ) from None


def check_fingerprint(tokenizer: Tokenizer, expected: str) -> None:
    """Refuse a tokenizer other than the one a model was trained with.

    EQ: 11.  Raises BundleError naming both fingerprints.
    """
    if tokenizer.fingerprint != expected:
        raise BundleError(
            f"the model needs the tokenizer {expected[:16]}, got the {tokenizer.kind} tokenizer"
            f" {tokenizer.fingerprint[:16]}",
            hint="a model works only with the tokenizer it was trained with: use its own files",
        )
