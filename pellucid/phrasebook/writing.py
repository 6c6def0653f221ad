"""Writes sentences as people do: with capital letters and marks, and as people type them.

English is always written well. French is typed in one of many ways: with or without the capital
letter and the final mark, with either apostrophe, a space before the question mark or none, now
and then without accents.
"""

import re
import unicodedata
from collections.abc import Callable

from pellucid.phrasebook.inflection import join_english, join_french
from pellucid.phrasebook.lexicon import ENGLISH_CAPITALS
from pellucid.phrasebook.rules import Said

_LOWER_SHARE, _NO_MARK_SHARE, _CURLY_SHARE, _NO_ACCENT_SHARE = 0.3, 0.35, 0.25, 0.06
_UPPER_SHARE = 0.06
"""The share of single words in upper case."""
_SPACE_SHARE = 0.6
"""The share of marks with a space before them, as French has it."""
_NO_QUESTION_MARK_SHARE = 0.12
"""Smaller, because a question without any sign of one is a statement."""
_ASKS = re.compile(r"\b(est-ce|où|quand|pourquoi|comment|combien|quel|quelle|qui|que|quoi)\b")


def typed(said: Said, draw: Callable[[], float]) -> tuple[str, str]:
    """The sentence as somebody types it in French, and as English is written."""
    mark = said.french[-1] if said.french[-1] in ("?", "!") else ""
    length = -1 if mark else None
    french = join_french(said.french[:length])
    english = _with_capitals(join_english(said.english[:length]))

    # All are drawn, so that no choice depends on another.
    case, marked, spaced, curly, accents = (draw() for _ in range(5))

    if case > 1 - _UPPER_SHARE and " " not in french:
        # A line in capitals is read in lower case, but one word may be an abbreviation.
        french, english = french.upper(), english.upper()
    else:
        french = _upper_first(french) if case >= _LOWER_SHARE else french.lower()
    if mark == "?":
        # What shows that it is a question without the mark is one in English too.
        if marked < _NO_QUESTION_MARK_SHARE and _ASKS.search(french.lower()):
            source_mark, target_mark = "", "?"
        else:
            source_mark = target_mark = "?"
    else:
        source_mark = target_mark = "" if marked < _NO_MARK_SHARE else mark or "."
    is_spaced = source_mark in ("?", "!") and spaced < _SPACE_SHARE
    french += f" {source_mark}" if is_spaced else source_mark
    if curly < _CURLY_SHARE:
        french = french.replace("'", "\u2019")
    if accents < _NO_ACCENT_SHARE:
        french = without_accents(french)
    return french, english + target_mark


def without_accents(text: str) -> str:
    """The text without accents and cedillas; œ becomes oe."""
    bare = unicodedata.normalize("NFD", text.replace("œ", "oe").replace("Œ", "Oe"))
    return "".join(letter for letter in bare if not unicodedata.combining(letter))


def _with_capitals(english: str) -> str:
    """English with a capital letter at its start, and in names, languages and "I"."""

    def capital(word: re.Match[str]) -> str:
        return _upper_first(word[0]) if word[0] in ENGLISH_CAPITALS else word[0]

    return _upper_first(re.sub(r"[a-z]+", capital, english))


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]
