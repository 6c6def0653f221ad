"""Word vectors: word2vec's text format, and nearest neighbors."""

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pellucid.core.config import did_you_mean
from pellucid.core.errors import ConfigError, DataError
from pellucid.core.files import open_replacement
from pellucid.text.corpus.lines import iterate_lines

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class WordVectors:
    """A vector for each word."""

    words: tuple[str, ...]
    matrix: Matrix
    """float32 (word, size)."""

    def nearest(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """The words with the largest cosines to ``word``, without itself, and these cosines.

        EQ: 57.  Raises DataError for a word without a vector, ConfigError for a count below 1.
        """
        if count < 1:
            raise ConfigError(f"count must be at least 1, got {count}")
        place = {each: index for index, each in enumerate(self.words)}
        if word not in place:
            raise DataError(f"there is no vector for {word!r}", hint=did_you_mean(word, self.words))

        # A word that was never seen may have a vector of zeros: its cosine is 0, not NaN.
        lengths = np.linalg.norm(self.matrix, axis=1)
        unit = self.matrix / np.where(lengths > 0, lengths, 1.0)[:, None]
        cosines = unit @ unit[place[word]]

        # Stable, so that equal cosines stay in the order of the vocabulary.
        order = np.argsort(-cosines, kind="stable")
        kept = [index for index in order.tolist() if index != place[word]][:count]
        return [(self.words[index], float(cosines[index])) for index in kept]


def write_vectors(path: Path, vectors: WordVectors) -> None:
    """Write word2vec's text format: a line ``count size``, then one line for each word.

    The file is written whole or not at all. Raises DataError for a word that the format cannot
    represent, WriteError.
    """
    unfit = [word for word in vectors.words if not word or set(word) & set(" \n\r\t")]
    if unfit:
        raise DataError(f"word2vec's text format holds no word with white space, got {unfit[0]!r}")

    with open_replacement(path) as file:
        file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n".encode())
        for word, row in zip(vectors.words, vectors.matrix.tolist(), strict=True):
            numbers = " ".join(f"{number:.9g}" for number in row)  # 9 digits identify any float32
            file.write(f"{word} {numbers}\n".encode())


def read_vectors(path: Path) -> WordVectors:
    """Read word2vec's text format.

    Raises InputMissingError, and DataError naming the first line that is wrong.
    """
    with contextlib.closing(iterate_lines(path)) as lines:
        header = next(lines, "").split()
        if len(header) != 2 or not all(part.isdecimal() for part in header):
            raise DataError(
                f"{path}, line 1: word2vec's text format begins with the number of words and the"
                f" size of a vector, got {' '.join(header)[:60]!r}"
            )
        count, size = map(int, header)
        words, rows = _read_rows(path, lines, size)

    # A file that was cut short still parses; only its first line tells that vectors are missing.
    if len(words) != count or size < 1:
        raise DataError(f"{path} promises {count} vectors of size {size}, holds {len(words)}")
    return WordVectors(tuple(words), np.array(rows, dtype=np.float32).reshape(count, size))


def _read_rows(
    path: Path, lines: Iterable[str], size: int
) -> tuple[list[str], Sequence[Sequence[float]]]:
    words: list[str] = []
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=2):
        # Split at spaces alone: words may contain other white space, such as U+00A0.
        parts = line.rstrip().split(" ")
        try:
            row = [float(part) for part in parts[1:]]
        except ValueError:
            # No number at all: reported with the line like a row of the wrong length.
            row = []
        if len(row) != size or not all(map(math.isfinite, row)):
            raise DataError(f"{path}, line {number}: a line must be a word and {size} numbers")
        words.append(parts[0])
        rows.append(row)

    # Which of two vectors would be meant cannot be known.
    repeated = len(words) - len(set(words))
    if repeated:
        raise DataError(f"{path} holds {repeated} words twice")
    return words, rows
