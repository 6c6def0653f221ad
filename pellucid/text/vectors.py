"""Word vectors: word2vec's text format, and nearest neighbors."""

import array
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pellucid.core.errors import ConfigError, DataError
from pellucid.core.files import open_user_file
from pellucid.core.near_names import did_you_mean
from pellucid.text.corpus.lines import iterate_lines

Matrix = npt.NDArray[np.float32]

_LARGEST = float(np.finfo(np.float32).max)
_LONGEST_HEADER = 40
"""Characters of the first line."""
_MOST_DIGITS = 18
_LARGEST_SIZE = 1 << 16
"""The limit on the length of a vector; a model's vectors are no longer."""


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
            raise DataError(f"there is no vector for {word!r}", hint=self._meant(word))

        # A word that was never seen may have a vector of zeros: its cosine is 0, not NaN.
        lengths = np.linalg.norm(self.matrix, axis=1)
        unit = self.matrix / np.where(lengths > 0, lengths, 1.0)[:, None]
        cosines = unit @ unit[place[word]]

        # Stable, so that equal cosines stay in the order of the vocabulary.
        order = np.argsort(-cosines, kind="stable")
        kept = [index for index in order.tolist() if index != place[word]][:count]
        return [(self.words[index], float(cosines[index])) for index in kept]

    def _meant(self, word: str) -> str:
        """A hint at the word that may have been meant: in other letters or as a piece that begins a
        word, or the nearest of those with the same first letter, as all take seconds to compare.
        """
        found = [each for each in self.words if each.strip("▁").casefold() == word.casefold()]
        if found:
            return did_you_mean(found[0], found[:1])
        return did_you_mean(word, [each for each in self.words if each[:1] == word[:1]])


def write_vectors(path: Path, vectors: WordVectors) -> None:
    """Write word2vec's text format: a line ``count size``, then one line for each word.

    The file is written whole or not at all. Raises DataError for a word that the format cannot
    represent, WriteError.
    """
    unfit = [word for word in vectors.words if not word or set(word) & set(" \n\r\t")]
    if unfit:
        raise DataError(f"word2vec's text format holds no word with white space, got {unfit[0]!r}")

    with open_user_file(path) as file:
        file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n".encode())
        for word, row in zip(vectors.words, vectors.matrix.tolist(), strict=True):
            numbers = " ".join(f"{number:.9g}" for number in row)  # 9 digits identify any float32
            file.write(f"{word} {numbers}\n".encode())


def read_vectors(path: Path) -> WordVectors:
    """Read word2vec's text format.

    Raises InputMissingError, and DataError naming the first line that is wrong.
    """
    with contextlib.closing(iterate_lines(path)) as lines:
        first = next(lines, "")
        header = first[: _LONGEST_HEADER + 1].split()
        if len(header) != 2 or not all(
            part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in header
        ):
            raise DataError(
                f"{path}, line 1: word2vec's text format begins with the number of words and the"
                f" size of a vector, got {' '.join(header)[:60]!r}"
            )
        count, size = map(int, header)
        if not 1 <= size <= _LARGEST_SIZE:
            raise DataError(
                f"{path}, line 1: a vector must have 1 to {_LARGEST_SIZE:,} numbers, got {size}"
            )
        words, numbers = _read_rows(path, lines, size)

    # A file that was cut short still parses; only its first line tells that vectors are missing.
    if len(words) != count:
        raise DataError(f"{path} promises {count} vectors of size {size}, holds {len(words)}")
    matrix = np.frombuffer(numbers, dtype=np.float32) if words else np.empty(0, dtype=np.float32)
    return WordVectors(tuple(words), matrix.reshape(count, size))


def _read_rows(
    path: Path, lines: Iterable[str], size: int
) -> "tuple[list[str], array.array[float]]":
    """The words, and the numbers of all vectors as float32; Python's take eight times as much."""
    words: list[str] = []
    numbers = array.array("f")
    for line_number, line in enumerate(lines, start=2):
        line = line.rstrip()
        row: list[float] = []
        # Split at spaces alone: words may contain other white space, such as U+00A0.
        if line.count(" ") == size:  # counted before millions of parts are made of it
            word, *parts = line.split(" ")
            # What Python alone takes for a number, such as 1_0, is none.
            rest = line[len(word) :]
            parts = parts if rest.isascii() and "_" not in rest else []
            with contextlib.suppress(ValueError):
                row = [float(part) for part in parts]

        # A sum that is too large can be one of many numbers that are not; NaN is never less.
        is_finite = sum(map(abs, row)) <= _LARGEST or all(abs(each) <= _LARGEST for each in row)
        if len(row) != size or not is_finite:
            raise DataError(f"{path}, line {line_number}: a line must be a word and {size} numbers")
        words.append(word)
        numbers.extend(row)

    # Which of two vectors would be meant cannot be known.
    repeated = len(words) - len(set(words))
    if repeated:
        raise DataError(f"{path} holds {repeated} words twice")
    return words, numbers
