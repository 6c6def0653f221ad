"""Splits text into sentences for a translation model, and joins translations with the spacing."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Sequence

import sentencex

from pellucid.core.errors import ConfigError

ABBREVIATIONS: dict[str, set[str]] = {
    "de": {"Abb.", "Fa.", "Fam.", "Inh.", "Kap.", "Tab.", "Tel.", "Verf."},
    "fr": {"M.", "MM."},
    "nl": {"Mevr.", "mevr."},
    "pl": {"w."},
}
"""By language, words with a full stop that do not end a sentence, in addition to those of
sentencex. More may be added: ``ABBREVIATIONS.setdefault("fr", set()).add("éd.")``. Those under
``""`` hold in every language; ``add_abbreviations`` adds to them."""


_ORDINAL = re.compile(r"(?:^|[\s(„«»\"'–—-])\d{1,2}\.\s*$")
"""A number with a full stop at the end of a piece; longer ones are years and amounts mostly."""
_HAVE_ORDINALS = frozenset(
    ("cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv", "nb", "nn", "no", "pl", "sk", "sl")
)
"""Languages that write an ordinal number as a number with a full stop."""
_GERMAN_STARTS = frozenset(
    (
        *("aber", "als", "am", "an", "auch", "auf", "aus", "bei", "bis", "da", "daher"),
        *("damit", "dann", "das", "dass", "der", "deshalb", "die", "dies", "diese", "dieser"),
        *("dieses", "doch", "ein", "eine", "einen", "einer", "er", "es", "für", "hier", "ich"),
        *("ihr", "im", "in", "ist", "ja", "jetzt", "mit", "nach", "nein", "noch", "nun", "ob"),
        *("obwohl", "oder", "seit", "sein", "seine", "sie", "so", "sondern", "trotzdem", "um"),
        *("und", "unter", "vom", "von", "vor", "wann", "warum", "was", "weil", "wenn", "wer"),
        *("wie", "wir", "wo", "während", "zu", "zum", "zur", "zwar", "über"),
    )
)
"""Words that begin a sentence of German more often than they follow an ordinal: nouns, which
follow one, are in upper case too."""


def add_abbreviations(words: Iterable[str]) -> None:
    """End no sentence after these words, in any language, for the rest of the process.

    Raises ConfigError for anything but one word that ends with a full stop.
    """
    for word in words:
        if len(word) < 2 or not word.endswith(".") or word.split() != [word]:
            raise ConfigError(
                f"an abbreviation must be one word that ends with a full stop, got {word!r}"
            )
        ABBREVIATIONS.setdefault("", set()).add(word)


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence and the white space around it; concatenated, all sentences are the text."""

    before: str
    text: str
    after: str
    start: int
    """Where ``text`` begins, in characters of the whole text."""


def split_sentences(text: str, language: str) -> list[Sentence]:
    """The sentences of ``text``, in order; every character of it is in one of them.

    A line end always ends a sentence, because translation models are trained on single lines. A
    text of only white space is one sentence without words. ``language`` is a code such as ``en``;
    for an unknown one the rules of English are used.
    """
    # sentencex itself joins lines: only a full stop or an empty line ends a sentence for it.
    lines = text.splitlines(keepends=True)
    known = ABBREVIATIONS.get(language, set()) | ABBREVIATIONS.get("", set())

    pieces: list[list[str]] = []
    for line in lines:
        # A piece that ends with a known abbreviation or an ordinal is continued by the next one.
        before_this = ""
        for piece in _segment(line, language):
            last = before_this.split()[-1:]
            if not known.isdisjoint(last) or _is_ordinal_before(before_this, piece, language):
                pieces[-1].append(piece)
            else:
                pieces.append([piece])
            before_this = piece

    # White space before the first sentence belongs to it, later white space to the one before.
    found: list[Sentence] = []
    blanks: list[str] = []
    start = 0
    for piece in map("".join, pieces):
        words = piece.strip()
        if not words:
            blanks.append(piece)
        else:
            # Every character is kept in exactly one of the three parts, so that what is joined
            # again differs from the text in its words only.
            lead = piece[: len(piece) - len(piece.lstrip())]
            tail = piece[len(piece.rstrip()) :]
            if found:
                _add_behind(found, blanks)
            else:
                lead = "".join([*blanks, lead])
            inside = start + len(piece) - len(piece.lstrip())
            found.append(Sentence(before=lead, text=words, after=tail, start=inside))
            blanks = []
        start += len(piece)
    if found:
        _add_behind(found, blanks)

    # A text of nothing but white space: one sentence that holds it.
    return found or [Sentence(before=text, text="", after="", start=len(text))]


def _add_behind(found: list[Sentence], blanks: Sequence[str]) -> None:
    """Add white space behind the last sentence."""
    if blanks:
        after = "".join([found[-1].after, *blanks])
        found[-1] = dataclasses.replace(found[-1], after=after)


def _is_ordinal_before(left: str, right: str, language: str) -> bool:
    """Whether a piece ends with an ordinal number that belongs to the next one."""
    if language not in _HAVE_ORDINALS or not _ORDINAL.search(left[-_LONGEST_ORDINAL:]):
        return False
    words = right.split(maxsplit=1)
    if not words or not words[0][0].isalpha():
        return False
    is_noun = language == "de" and words[0].strip(".,;:!?").lower() not in _GERMAN_STARTS
    return is_noun or words[0][0].islower()


_LONGEST_ORDINAL = 16
"""Characters at the end of a piece that are looked at."""
_SPACES_BEFORE_A_STOP = re.compile(r"(?<!\s)\s++(?=\.)")
"""Possessive, and from the start of a run of spaces only, so that it takes linear time."""


_WINDOW = 4000
"""Characters that sentencex reads at a time: with letters or quotation marks beyond ASCII it takes
quadratic time, a second for 60,000 characters of Chinese."""


def _segment(line: str, language: str) -> Iterable[str]:
    """The sentences of a line, by sentencex, with the white space behind each.

    sentencex 1.0.32 panics, which no ``except Exception`` catches, where a capital letter, a space
    of more than one byte (a no-break space, say) and a full stop follow one another. Such a space
    is shown to it as one of ASCII, which changes no number of characters.
    """
    shown = _SPACES_BEFORE_A_STOP.sub(lambda found: _with_ascii_spaces(found[0]), line)
    begin = start = 0
    while start < len(shown):
        window = shown[start : start + _WINDOW]
        ends = list(itertools.accumulate(map(len, sentencex.segment(language, window))))
        if start + len(window) < len(shown):
            ends.pop()  # the last sentence may go on behind the window
        if not ends:
            # The sentence is longer than a window: the next one begins with a word, not in one.
            start += window.rfind(" ") + 1 or len(window)
            continue
        for end in ends:
            yield line[begin : start + end]
            begin = start + end
        start = begin


def _with_ascii_spaces(blank: str) -> str:
    return "".join(each if each.isascii() else " " for each in blank)
