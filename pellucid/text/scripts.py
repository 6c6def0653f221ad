"""Facts about words that follow from the script of their letters, where ``re`` and spaces do not
tell."""

import functools
import re
import unicodedata
from collections.abc import Sequence

CHINESE_OR_JAPANESE = "\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Chinese and Japanese characters, as a class of ``re``."""
SPACELESS = f"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff{CHINESE_OR_JAPANESE}"
"""Thai, Lao, Burmese, Khmer, Chinese and Japanese, as in a class of ``re``: written without spaces
between words."""
SPACELESS_LETTER = re.compile(f"[{SPACELESS}]")
_LONG_CHINESE, _LONG_WORD = 5, 12
"""Mean characters of a token that is no word: of Chinese and Japanese, whose words have about two,
and of the other scripts without spaces, such as Thai, whose words have about five."""
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")


def is_wide(character: str) -> bool:
    """Whether it belongs to Chinese or Japanese text, which has no spaces between words."""
    # Emoji are as wide, and so is Korean, which has spaces.
    is_other = unicodedata.category(character) in ("So", "Sk") or _HANGUL.match(character)
    return unicodedata.east_asian_width(character) in "WF" and not is_other


def length_of_no_words(words: Sequence[str]) -> float | None:
    """The mean characters of ``words`` if these are rather sentences, of a script without spaces
    between words; None if they are words, or most of them of another script."""
    unspaced = [each for each in words if SPACELESS_LETTER.search(each)]
    letters = sum(map(len, unspaced))
    if 2 * letters <= sum(map(len, words)):
        return None
    mean = letters / len(unspaced)
    is_chinese = 2 * sum(map(is_wide, "".join(unspaced))) > letters
    return mean if mean > (_LONG_CHINESE if is_chinese else _LONG_WORD) else None


def ends_wide(character: str) -> bool:
    """Whether it is a mark behind words of Chinese or Japanese, and no opening bracket."""
    return is_wide(character) and unicodedata.category(character) in ("Po", "Pe", "Pf")


def is_mark(character: str) -> bool:
    """Whether it is a combining mark: a vowel sign or an accent, which is no letter by itself.

    The signs that make a character a picture, or a text, are none.
    """
    if character in ("", "\ufe0e", "\ufe0f"):
        return False
    return unicodedata.category(character)[0] == "M"


def is_of_word(character: str) -> bool:
    """Whether it is a letter, a digit or a combining mark, which ``str.isalnum`` takes for none."""
    return character.isalnum() or is_mark(character)


@functools.cache
def combining_marks() -> str:
    r"""Vowel signs and accents: parts of a word, which ``\w`` does not match."""
    codes = range(0x300, 0x20000)  # beyond it are only Chinese characters and variation selectors
    return "".join(chr(code) for code in codes if unicodedata.category(chr(code))[0] == "M")


@functools.cache
def any_letter() -> str:
    """An expression of ``re`` that matches a letter or a combining mark."""
    return rf"(?:[^\W\d_]|[{combining_marks()}])"


@functools.cache
def wide_characters() -> str:
    """The characters that ``is_wide`` names, as in a class of ``re``."""
    codes = [code for code in range(0x1100, 0x40000) if is_wide(chr(code))]
    starts = [code for code, before in zip(codes, [0, *codes], strict=False) if code != before + 1]
    ends = [code for code, after in zip(codes, [*codes[1:], 0], strict=True) if after != code + 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))
