"""The one normalization of text: what a person types becomes what a tokenizer reads.

Equal text can be written in many ways. macOS and PDF files write "é" as two characters, French has
no-break spaces before its marks, and web pages hide soft hyphens in words. A vocabulary has one way
of each, so a tokenizer with ``normalization = "nfc"`` reads every text in this form, in training
and ever after:

1. Characters that only guide the display are removed: controls, soft hyphens, zero-width spaces,
   byte order marks, variation selectors and all others with Unicode's property
   Default_Ignorable_Code_Point. They stay where they decide about letters: joiners beside letters
   of scripts that join (Arabic, Devanagari, Khmer), what makes an emoji, fillers beside Korean
   jamo, selectors behind Mongolian letters, and direction marks in a text with letters that run
   from right to left.
2. Hyphens and separators that differ from the usual ones in breaking no line become the usual
   ones, and the Latin ligatures of PDF files become their letters.
3. Accents and letters are composed (NFC).
4. All white space, also a tab, a line end or a no-break space, is one ordinary space; none is left
   at the ends.

The rule is the same under every version of Python and in every browser (``web/engine/
normalization.js``): it leaves characters as they are that Unicode added after version 14 to those
which compose or reorder. Nothing changes when it is applied twice.
"""

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal

from pellucid.core.errors import DataError

Normalization = Literal["nfc", "none"]

_SPACES = "\t-\r\x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space but the ordinary space, as ``str.isspace`` has it."""
_CONTROLS = "\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufff9-\ufffb"
"""Controls, and the marks around interlinear annotations."""
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point of DerivedCoreProperties.txt, without the direction marks."""
PLAIN = {
    "\u2010": "-",
    "\u2011": "-",
    "\u0f0c": "\u0f0b",
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
}
"""Hyphens, the Tibetan mark between syllables and Latin ligatures, and what stands for them. Other
characters with a compatibility decomposition mean something of their own, such as ², ½ and ™."""
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks of the direction of text, which have no width."""
_RIGHT_TO_LEFT = (
    "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff"
)
"""The blocks of Hebrew, Arabic, Syriac, Thaana, N'Ko and other scripts from right to left."""
_JOINING = (
    "\u0600-\u061b\u061d-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1a20-\u1aaf"
    "\u1b00-\u1c4f\u1cd0-\u1cff\ua840-\ua87f\ua8e0-\ua8ff\ua930-\ua9ff\uaa60-\uaa7f\uaae0-\uaaff"
    "\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010a5f\U00010ac0-\U00010aff"
    "\U00010d00-\U00010d3f\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
"""The blocks of scripts whose letters change their shape beside others, or form conjuncts."""
_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
"""Emoji, and signs that a variation selector makes one."""
_TAGS = "\U000e0020-\U000e007f"
"""Letters behind a black flag that make it one of England, Scotland or Wales."""
_MONGOLIAN = "\u1800-\u180a\u1810-\u18af"
_LEADING_JAMO, _VOWEL_JAMO = "\u1100-\u115e\ua960-\ua97c", "\u1161-\u11a7\ud7b0-\ud7c6"
_LATER = (
    "\u0897\u1acf-\u1add\u1ae0-\u1aeb\U000105c9\U000105d2\U000105da\U000105e4"
    "\U00010d69-\U00010d6d\U00010efa\U00010efb\U00010efd-\U00010eff\U00011382-\U00011385\U0001138b"
    "\U0001138e\U00011390\U00011391\U000113b8\U000113bb\U000113c2\U000113c5\U000113c7-\U000113c9"
    "\U000113ce-\U000113d0\U00011f41\U00011f42\U0001611e-\U00016129\U0001612f\U00016d63"
    "\U00016d67-\U00016d6a\U0001e08f\U0001e4ec-\U0001e4ef\U0001e5ee\U0001e5ef\U0001e6e3\U0001e6e6"
    "\U0001e6ee\U0001e6ef\U0001e6f5"
)
"""Characters that compose or reorder in Unicode 15 to 17 but not in 14, which Python 3.11 has:
marks and letters of scripts that came into Unicode with them, such as Tulu-Tigalari."""

CLASSES = {
    "spaces": _SPACES,
    "odd": f"{_SPACES}{_CONTROLS}{_INVISIBLE}{''.join(PLAIN)}",
    "directions": _DIRECTIONS,
    "right_to_left": _RIGHT_TO_LEFT,
    "joining": _JOINING,
    "pictures": _PICTURES,
    "mongolian": _MONGOLIAN,
    "leading_jamo": _LEADING_JAMO,
    "vowel_jamo": _VOWEL_JAMO,
    "tags": _TAGS,
    "later": _LATER,
}
"""The characters of the rule by name, as in a class of ``re``; a page gets the same."""


def _one(name: str) -> re.Pattern[str]:
    return re.compile(f"[{CLASSES[name]}]")


_ODD_RUN = re.compile(f"[{CLASSES['odd']}]+")
_MAYBE_ODD = re.compile(
    f"[{''.join(PLAIN)}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U00010000-\U0010ffff]"
)
"""Characters of ``odd`` that ``str.isprintable`` lets pass, and all beyond U+FFFF:
``re`` searches for a long list of those ten times as slowly."""
_SPACE_RUN = re.compile("  +")
_DIRECTION, _RIGHT_TO_LEFT_LETTER = _one("directions"), _one("right_to_left")
_SPACE, _JOINER_SCRIPT, _PICTURE = _one("spaces"), _one("joining"), _one("pictures")
_MONGOLIAN_LETTER, _TAG = _one("mongolian"), _one("tags")
_CONTROL = re.compile(f"[{_CONTROLS}]")
_LEADING, _VOWEL = _one("leading_jamo"), _one("vowel_jamo")
_LATER_PART = re.compile(f"([{_LATER}])")


@dataclasses.dataclass(frozen=True)
class Normalized:
    """A normalized text and where its characters are in the text that was given."""

    text: str
    positions: Sequence[int]
    """For each character its position in the given text, and last the length of that."""


def normalize(text: str) -> str:
    """The text in the form that a tokenizer reads. Raises DataError for a lone surrogate.

    The result is the same if it is applied again.
    """
    if is_normal(text):
        return text
    check_text(text)
    text = _ODD_RUN.sub(lambda found: "".join(_replacements(found)), _without_directions(text))
    return _SPACE_RUN.sub(" ", _composed(text)).strip(" ")


def normalize_all(texts: Iterable[str], normalization: Normalization) -> Iterable[str]:
    """The texts as a tokenizer with this normalization reads them, one at a time."""
    return map(normalize, texts) if normalization == "nfc" else texts


def normalize_with_positions(text: str) -> Normalized:
    """``normalize(text)``, and the position in ``text`` of each of its characters.

    A composed character is where its first part is. Raises DataError for a lone surrogate.
    """
    if is_normal(text):
        return Normalized(text, range(len(text) + 1))
    check_text(text)

    parts: list[str] = []
    positions: list[int] = []

    def add(part: str, position: int) -> None:
        parts.append(part)
        positions.extend([position] * len(part))

    # As ``normalize``, but the direction marks are left out one by one.
    shorter = _without_directions(text)
    places = (
        range(len(text))
        if len(shorter) == len(text)
        else [at for at, each in enumerate(text) if not _DIRECTION.match(each)]
    )
    end = 0
    for found in _ODD_RUN.finditer(shorter):
        for at in range(end, found.start()):
            add(shorter[at], places[at])
        for at, part in enumerate(_replacements(found), start=found.start()):
            add(part, places[at])
        end = found.end()
    for at in range(end, len(shorter)):
        add(shorter[at], places[at])

    cleaned = "".join(parts)
    composed = _composed(cleaned)
    if composed != cleaned:
        positions = [positions[at] for at in _composed_positions(cleaned, composed)]

    # Each first space of a run stays, but none at the ends.
    kept = [
        at
        for at, each in enumerate(composed)
        if each != " " or not (at == 0 or composed[at - 1] == " ")
    ]
    if kept and composed[kept[-1]] == " ":
        kept.pop()
    made = "".join(composed[at] for at in kept)
    return Normalized(made, [*(positions[at] for at in kept), len(text)])


def compose(text: str) -> str:
    """The text with each letter and its accents as one character (NFC), and nothing else changed.

    Raises DataError for a lone surrogate.
    """
    if text.isascii():
        return text
    check_text(text)
    return _composed(text)


def hidden_characters(text: str) -> list[str]:
    """The characters of ``text`` without a width that ``normalize`` removes, in order."""
    shorter = _without_directions(text)
    removed = [] if len(shorter) == len(text) else _DIRECTION.findall(text)
    for found in _ODD_RUN.finditer(shorter):
        parts = zip(found[0], _replacements(found), strict=True)
        removed += [each for each, part in parts if part == "" and not _CONTROL.match(each)]
    return removed


def check_text(text: str) -> None:
    """Raise DataError naming the first lone surrogate, if ``text`` has one."""
    if text.isascii():  # most text, at the cost of reading one flag
        return

    try:
        # The cheapest test for a surrogate is an encoder in C, which also says where it is.
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"text must be Unicode, got the lone surrogate U+{ord(text[error.start]):04X}"
            f" at character {error.start + 1}",
            hint="the text was probably cut in the middle of a character or wrongly decoded",
        ) from None


def is_normal(text: str) -> bool:
    """Whether ``normalize`` certainly changes nothing, at the cost of a few passes in C."""
    # ``isprintable`` excludes controls, odd spaces, formats, surrogates and what is unassigned.
    if not text.isprintable() or text[:1] == " " or text[-1:] == " " or "  " in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return not _MAYBE_ODD.search(text) and unicodedata.is_normalized("NFC", text)
    return True  # no letter of Latin-1 is decomposed


def _without_directions(text: str) -> str:
    if _DIRECTION.search(text) and not _RIGHT_TO_LEFT_LETTER.search(text):
        return _DIRECTION.sub("", text)
    return text


def _replacements(found: re.Match[str]) -> list[str]:
    """Return the replacement of each odd character of a run, often nothing."""
    text, (start, end) = found.string, found.span()
    previous = text[start - 1 : start]
    parts = []
    for at in range(start, end):
        part = _replacement(text[at], previous, text[at + 1 : at + 2])
        parts.append(part)
        # The last character that stays decides, so that a second time nothing more changes.
        previous = part[-1:] or previous
    return parts


def _replacement(odd: str, previous: str, following: str) -> str:
    """An odd character between what stays before it and what stands behind it."""
    if odd in PLAIN:
        return PLAIN[odd]
    if _SPACE.match(odd):
        return " "
    if odd == previous:
        return ""  # one is enough

    match odd:
        case "\u200c":  # zero-width non-joiner
            stays = _is(_JOINER_SCRIPT, previous) or _is(_JOINER_SCRIPT, following)
        case "\u200d":  # zero-width joiner, also between the parts of an emoji
            joins = _is(_JOINER_SCRIPT, previous) or _is(_JOINER_SCRIPT, following)
            stays = joins or previous == "\ufe0f" or _is(_PICTURE, previous) or _is(_TAG, previous)
        case "\ufe0e" | "\ufe0f":  # shown as text, or as an emoji; U+20E3 is a key around a digit
            is_key = following == "\u20e3" and previous != "" and previous in "0123456789#*"
            stays = is_key or _is(_PICTURE, previous)
        case "\u115f":  # stands for a leading consonant
            stays = _is(_VOWEL, following)
        case "\u1160":  # stands for a vowel
            stays = _is(_LEADING, previous)
        case "\u180b" | "\u180c" | "\u180d" | "\u180e" | "\u180f":
            stays = _is(_MONGOLIAN_LETTER, previous)
        case _:
            stays = _is(_TAG, odd) and (previous == "\U0001f3f4" or _is(_TAG, previous))

    return odd if stays else ""


def _is(pattern: re.Pattern[str], character: str) -> bool:
    return pattern.match(character) is not None


def _composed(text: str) -> str:
    """The text in NFC, except the characters of ``_LATER``."""
    # Then any part of it is, too, so that a character of ``_LATER`` in it makes no difference.
    if unicodedata.is_normalized("NFC", text):
        return text
    parts = _LATER_PART.split(text)
    # Each second part is such a character.
    parts[::2] = [unicodedata.normalize("NFC", part) for part in parts[::2]]
    return "".join(parts)


def _composed_positions(text: str, composed: str) -> list[int]:
    """For each character of ``composed`` the position in ``text`` of its first part.

    Both have as many characters once decomposed, and accents are only reordered behind their
    letter, so the n-th character of one belongs to the n-th of the other.
    """
    owners = [at for at, each in enumerate(text) for _ in range(_decomposed_length(each))]
    lengths = map(_decomposed_length, composed)
    starts = itertools.accumulate(lengths, initial=0)
    return [owners[start] for start, _ in zip(starts, composed, strict=False)]


def _decomposed_length(character: str) -> int:
    if character.isascii() or _LATER_PART.match(character):
        return 1
    return len(unicodedata.normalize("NFD", character))
