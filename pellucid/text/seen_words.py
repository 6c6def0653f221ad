"""The words that a training text has, so that others can be named when they are translated.

A model that learned from little text does not copy a word that it has never seen: it writes
another one in its place. The words are kept with the model only if they are few; a model of much
text knows many words by their parts.
"""

import dataclasses
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from pellucid.core.errors import CorruptError
from pellucid.core.files import read_plain
from pellucid.text.normalization import normalize
from pellucid.text.scripts import SPACELESS_LETTER, combining_marks

WORDS_FILE = "words.txt"
"""The name of the file in a bundle and in the folder of a run's tokenizers: one word in each line.
"""
MOST_WORDS = 20_000
"""Different words of a text whose words are kept: twice those of Multi30k's English."""
_LARGEST_FILE = 8 << 20
"""Bytes: so many words of 100 letters of four bytes."""
_SPACE = re.compile(r"\s")
_WORD = re.compile(rf"[^\W\d_][\w{combining_marks()}]*")


@dataclasses.dataclass(frozen=True)
class SeenWords:
    """The words of a text, without case."""

    words: frozenset[str]

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The words saved in ``folder``; None if there are none.

        Raises CorruptError for a file that ``save`` did not write.
        """
        path = folder / WORDS_FILE
        lines = read_saved(path, _LARGEST_FILE)
        if lines is None:
            return None

        *words, last = lines
        are_words = all(_WORD.search(word) and not _SPACE.search(word) for word in words)
        if last or not words or words != sorted(set(words)) or not are_words:
            raise CorruptError(f"{path} must have one word on each line, in their order, each once")
        return cls(frozenset(map(_plain, words)))

    def save(self, folder: Path) -> None:
        """Write the file that ``read`` reads."""
        text = "".join(f"{word}\n" for word in sorted(self.words))
        (folder / WORDS_FILE).write_text(text, encoding="utf-8")

    def unseen(self, text: str) -> list[str]:
        """The words of ``text`` that are not among these, each once, as it stands there first."""
        found: dict[str, str] = {}
        for word in words_of(text):
            plain = _plain(word)
            if plain not in self.words:
                found.setdefault(plain, word)
        return list(found.values())

    def not_copied(self, source: str, translation: str) -> list[str]:
        """The unseen words of ``source`` that do not stand in its translation."""
        unseen = self.unseen(source)
        if not unseen:
            return unseen
        copied = set(map(_plain, words_of(translation)))
        return [word for word in unseen if _plain(word) not in copied]


def read_saved(path: Path, most: int) -> list[str] | None:
    """The lines of a file of at most ``most`` bytes that a model is saved with; None if there is
    none.

    The last one is what stands behind the last line feed: empty if the file is whole. Raises
    CorruptError for what is not UTF-8, and as ``read_plain``.
    """
    if not path.exists():
        return None
    try:
        return read_plain(path, most).decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise CorruptError(f"{path} must be text in UTF-8") from None


def all_seen(several: Iterable[SeenWords | None]) -> SeenWords | None:
    """The words of several texts together; None if those of one are unknown, or too many."""
    words: set[str] = set()
    for each in several:
        if each is None:
            return None
        words |= each.words
    return SeenWords(frozenset(words)) if len(words) <= MOST_WORDS else None


class WordCollector:
    """Collects the words of the sources of pairs that pass by."""

    def __init__(self) -> None:
        self._words: set[str] | None = set()
        self._spellings: set[str] = set()
        """The words as they are written in the text, case and all; each is judged once."""

    def passing(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """The pairs, unchanged; the words of their sources are collected."""
        for pair in pairs:
            if self._words is not None:
                new = set(words_of(pair[0])) - self._spellings
                self._words.update(map(_plain, new))
                self._spellings |= new
                if len(self._words) > MOST_WORDS:
                    self._words, self._spellings = None, set()
            yield pair

    @property
    def found(self) -> SeenWords | None:
        """The words so far; None if they are too many to keep, or none."""
        return SeenWords(frozenset(self._words)) if self._words else None


def words_of(text: str) -> list[str]:
    """The words of a text, normalized, in scripts with spaces between words."""
    return [word for word in _WORD.findall(normalize(text)) if not SPACELESS_LETTER.search(word)]


def _plain(word: str) -> str:
    """The word without case; all letters i are one, of which Turkish has two."""
    folded = unicodedata.normalize("NFC", word).casefold()
    return folded.replace("i\u0307", "i").replace("ı", "i")
