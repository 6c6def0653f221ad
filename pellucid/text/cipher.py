"""ROT-k ciphers: a text in which each letter is the k-th after it in the alphabet of its script.

A model that reads enciphered copies of its sources sees each word in another spelling and other
pieces, among neighbors that stand in the same order: Kambhatla et al. (2022), arXiv:2204.00665.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pellucid.core.errors import ConfigError, CorruptError
from pellucid.text.seen_words import read_saved

ALPHABET_FILE = "alphabet.txt"
"""The name of the file in the folder of a run's tokenizers: a cycle of letters in each line."""
_LARGEST_FILE = 1 << 20
"""Bytes: several times all letters of Unicode."""


@dataclass(frozen=True)
class Cipher:
    """The letters of a text in cycles, along which a key moves each of them.

    Letters of one script and one case are a cycle, in the order of Unicode, so that a word stays a
    word of its script and keeps its case. Whatever is no letter of these stays as it is: spaces,
    digits, marks, and letters that the text did not have.
    """

    cycles: tuple[str, ...]
    _tables: dict[int, dict[int, int]] = field(default_factory=dict, repr=False, compare=False)
    """Each letter's code and that of the letter in its place, by key; for speed only."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """The cipher over the letters of these texts, as tokenizers read them."""
        letters: set[str] = set()
        for text in texts:
            letters.update(text)
        return cls(tuple(_cycles(letters)))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """The cipher saved in ``folder``; None if there is none.

        Raises CorruptError for a file that ``save`` did not write.
        """
        path = folder / ALPHABET_FILE
        lines = read_saved(path, _LARGEST_FILE)
        if lines is None:
            return None

        *cycles, last = lines
        letters = "".join(cycles)
        are_letters = all(map(_is_letter, letters))
        if last or not all(cycles) or len(set(letters)) != len(letters) or not are_letters:
            raise CorruptError(f"{path} must have letters on each line, and each letter once")
        return cls(tuple(cycles))

    def save(self, folder: Path) -> None:
        """Write the file that ``read`` reads."""
        text = "".join(f"{cycle}\n" for cycle in self.cycles)
        (folder / ALPHABET_FILE).write_text(text, encoding="utf-8")

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all cycles, in hexadecimal."""
        return hashlib.sha256("\n".join(self.cycles).encode()).hexdigest()

    def encipher(self, text: str, key: int) -> str:
        """The text with each letter moved ``key`` places on in its cycle.

        With ``-key`` it is moved back: enciphering is a bijection.
        """
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = {
                ord(letter): ord(cycle[(place + key) % len(cycle)])
                for cycle in self.cycles
                for place, letter in enumerate(cycle)
            }
        return text.translate(table)

    def check(self, keys: Sequence[int]) -> None:
        """Raise ConfigError unless each key gives another text, and none of them the plain one."""
        alphabet = "".join(self.cycles)
        seen = {alphabet: 0}
        for key in keys:
            other = seen.setdefault(self.encipher(alphabet, key), key)
            if other == 0:
                raise ConfigError(
                    f"data.cipher_keys has {key}, which changes no letter of the source text",
                    hint="name keys below the number of its letters, such as [1, 2]",
                )
            if other != key:
                raise ConfigError(
                    f"data.cipher_keys has {other} and {key}, which encipher the source text alike",
                    hint="name keys below the number of its letters, such as [1, 2]",
                )


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L"


def _cycles(characters: Iterable[str]) -> Iterator[str]:
    """The letters among some characters, in their cycles."""
    paired: dict[str, set[str]] = {}
    single: dict[tuple[str, str], set[str]] = {}
    for character in filter(_is_letter, characters):
        # The first word of a letter's name is its script: LATIN SMALL LETTER A, CJK UNIFIED ....
        script = unicodedata.name(character, "?").partition(" ")[0]
        lower = _lower_of_pair(character)
        if lower is None:
            single.setdefault((script, unicodedata.category(character)), set()).add(character)
        else:
            paired.setdefault(script, set()).add(lower)

    # Capitals move as their small letters do, so that a word at the beginning of a sentence is
    # enciphered as elsewhere.
    for script in sorted(paired):
        small = "".join(sorted(paired[script]))
        yield small
        yield small.upper()
    for kind in sorted(single):
        yield "".join(sorted(single[kind]))


def _lower_of_pair(letter: str) -> str | None:
    """The small letter, if it and one capital are each other's; None for ß, ı or 犬."""
    lower = letter.lower()
    upper = lower.upper()
    is_pair = len(lower) == len(upper) == 1 and lower != upper and upper.lower() == lower
    return lower if is_pair and letter in (lower, upper) else None
