"""The words and signs that a training text has, so that others can be named when they are
translated.

A model that learned from little text does not copy a word that it has never seen: it writes
another one in its place, and a sign such as ``/`` that it does not know changes the words around
it. Both are kept with the model only if the words are few; a model of much text knows many words by
their parts.
"""

import dataclasses
import re
import unicodedata
from collections import Counter
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
_ENOUGH, _ENOUGH_OF = 10, 3000
"""A sign is known from so many lines on, or from one of so many lines. Multi30k has questions in 7
of 29,000 lines, and a model of it translates none."""
_SPACE = re.compile(r"\s")
_NO_WORD = re.compile(r"[^\w\s]|_")
_WORD = re.compile(rf"[^\W\d_][\w{combining_marks()}]*")


@dataclasses.dataclass(frozen=True)
class SeenWords:
    """The words of a text, without case, and its punctuation marks and symbols."""

    words: frozenset[str]
    signs: frozenset[str] = frozenset()
    """The marks and symbols of more than a few lines; empty if they were not collected."""

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The words saved in ``folder``; None if there are none.

        Raises CorruptError for a file that ``save`` did not write.
        """
        path = folder / WORDS_FILE
        lines = read_saved(path, _LARGEST_FILE)
        if lines is None:
            return None

        *saved, last = lines
        signs = frozenset(filter(_is_sign, saved))
        words = [each for each in saved if each not in signs]
        are_words = all(_WORD.search(word) and not _SPACE.search(word) for word in words)
        if last or not words or saved != sorted(set(saved)) or not are_words:
            raise CorruptError(f"{path} must have one word on each line, in their order, each once")
        return cls(frozenset(map(_plain, words)), signs)

    def save(self, folder: Path) -> None:
        """Write the file that ``read`` reads."""
        text = "".join(f"{each}\n" for each in sorted(self.words | self.signs))
        (folder / WORDS_FILE).write_text(text, encoding="utf-8")

    def unseen(self, text: str) -> list[str]:
        """The words of ``text`` that are not among these, each once, as it stands there first."""
        found: dict[str, str] = {}
        for word in words_of(text):
            plain = _plain(word)
            if plain not in self.words:
                found.setdefault(plain, word)
        return list(found.values())

    def rare_signs(self, text: str) -> list[str]:
        """The punctuation marks and symbols of ``text`` that are not among these, if these are
        known."""
        if not self.signs:
            return []
        return [each for each in text if each not in self.signs and _is_sign(each)]

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
    signs: list[frozenset[str]] = []
    for each in several:
        if each is None:
            return None
        words |= each.words
        signs.append(each.signs)
    if len(words) > MOST_WORDS:
        return None
    return SeenWords(frozenset(words), frozenset().union(*signs) if all(signs) else frozenset())


class WordCollector:
    """Collects the words and signs of the sources of pairs that pass by."""

    def __init__(self) -> None:
        self._words: set[str] | None = set()
        self._spellings: set[str] = set()
        """The words as they are written in the text, case and all; each is judged once."""
        self._lines = 0
        self._characters: Counter[str] = Counter()
        """In how many lines each character is that is no letter, digit or white space."""

    def passing(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """The pairs, unchanged; the words and signs of their sources are collected."""
        for pair in pairs:
            if self._words is not None:
                self._collect(pair[0])
            yield pair

    def _collect(self, text: str) -> None:
        assert self._words is not None
        new = set(words_of(text)) - self._spellings
        self._words.update(map(_plain, new))
        self._spellings |= new
        self._lines += 1
        # a tokenizer may read … as three full stops
        self._characters.update(set(_NO_WORD.findall(text + normalize(text))))
        if len(self._words) > MOST_WORDS:
            self._words, self._spellings, self._characters = None, set(), Counter()

    @property
    def found(self) -> SeenWords | None:
        """The words and signs so far; None if the words are too many to keep, or none."""
        if not self._words:
            return None
        least = min(_ENOUGH, self._lines / _ENOUGH_OF)
        signs = (each for each, lines in self._characters.items() if lines >= least)
        return SeenWords(frozenset(self._words), frozenset(filter(_is_sign, signs)))


def words_of(text: str) -> list[str]:
    """The words of a text, normalized, in scripts with spaces between words."""
    return [word for word in _WORD.findall(normalize(text)) if not SPACELESS_LETTER.search(word)]


def _is_sign(text: str) -> bool:
    """Whether it is one punctuation mark or symbol."""
    return len(text) == 1 and unicodedata.category(text)[0] in "PS"


def _plain(word: str) -> str:
    """The word without case; all letters i are one, of which Turkish has two."""
    folded = unicodedata.normalize("NFC", word).casefold()
    return folded.replace("i\u0307", "i").replace("ı", "i")
