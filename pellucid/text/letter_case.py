"""Upper and lower case as a language writes it, where ``str.lower`` and ``str.upper`` know English.

Source: Unicode's SpecialCasing.txt: Turkish, Azerbaijani and their neighbors have two letters, i
with a dot (İ, i) and i without (I, ı).
"""

from pellucid.text.languages import language_of_code

_TWO_LETTERS_I = frozenset(("az", "crh", "gag", "tr"))


def lower(text: str, language: str = "") -> str:
    """The text in lower case, with as many characters."""
    if language_of_code(language) in _TWO_LETTERS_I:
        text = text.replace("I", "ı")
    return text.replace("İ", "i").lower()  # by itself, İ would become two


def upper(text: str, language: str = "") -> str:
    """The text in upper case; ß becomes two letters."""
    if language_of_code(language) in _TWO_LETTERS_I:
        text = text.replace("i", "İ")
    return text.upper()


def is_in_capitals(text: str) -> bool:
    """Whether a text is written in capitals: four of five letters at least, and none is small.

    So an abbreviation in a text of Chinese or Arabic, which has no capitals, makes it none. The
    letter ß may stand among capitals.
    """
    letters = [each for each in text if each.isalpha() and each != "ß"]
    capitals = sum(map(str.isupper, letters))
    return text.replace("ß", "").isupper() and 5 * capitals >= 4 * len(letters)
