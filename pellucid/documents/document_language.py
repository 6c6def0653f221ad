"""Rules for the names of languages in a document, and for the direction of its text."""

from typing import Literal

from pellucid.documents.segments import Languages
from pellucid.text.languages import base_code, is_right_to_left, language_of_code

_EAST_ASIAN = frozenset(("ja", "ko", "zh"))

ScriptGroup = Literal["western", "asian", "complex"]
"""Formats of an office have a font and a language for each of these three."""


def turns_right_to_left(languages: Languages) -> bool | None:
    """Whether a translation turns the text so that it is read from right to left; None if it keeps
    its direction, as far as the languages are known.
    """
    if languages.target and is_right_to_left(languages.target):
        return None if is_right_to_left(languages.source) else True
    return False if languages.target and is_right_to_left(languages.source) else None


def names_source(code: str | None, languages: Languages) -> bool:
    """Whether a code in a document names the language of the source, of whatever country, and that
    of the translation is known.
    """
    if not code or not languages.source or not languages.target:
        return False
    return language_of_code(code) == language_of_code(languages.source)


def script_group(language: str) -> ScriptGroup:
    """The group of scripts in which a language is written, as programs of an office divide them."""
    if is_right_to_left(language):
        return "complex"
    return "asian" if language_of_code(base_code(language)) in _EAST_ASIAN else "western"
