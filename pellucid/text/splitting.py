"""Splits text into sentences for a translation model, and joins translations with the spacing."""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Set

import sentencex

from pellucid.core.errors import ConfigError
from pellucid.text.sentence_ends import (
    NEARBY,
    NEED_CAPITALS,
    Place,
    is_missed_end,
    is_wrong_end,
    lines_of,
    possible_ends,
)

ABBREVIATIONS: dict[str, set[str]] = {
    "de": {"Abb.", "Fa.", "Fam.", "Inh.", "Kap.", "Tab.", "Tel.", "Verf."},
    "fr": {"M.", "MM."},
    "nl": {"Mevr.", "mevr."},
    "pl": {"w."},
}
"""By language, words with a full stop that do not end a sentence, in addition to those of
sentencex. More may be added: ``ABBREVIATIONS.setdefault("fr", set()).add("éd.")``. Those under
``""`` hold in every language; ``add_abbreviations`` adds to them."""


_PLAIN_CODE = re.compile("[-_]")
"""The language of ``pt-BR`` and ``sr-Latn`` is in front of it."""


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
    language = _plain_code(language)
    known = ABBREVIATIONS.get(language, set()) | ABBREVIATIONS.get("", set())
    lines = lines_of(text, language)
    return _with_spaces(text, [piece for line in lines for piece in _cut(line, language, known)])


def split_lines(text: str, language: str) -> list[Sentence]:
    """The lines of ``text``, as ``split_sentences`` returns sentences: for models that were trained
    on lines of several."""
    return _with_spaces(text, list(lines_of(text, _plain_code(language))))


def _plain_code(language: str) -> str:
    return _PLAIN_CODE.split(language, maxsplit=1)[0].lower()


def _with_spaces(text: str, pieces: list[str]) -> list[Sentence]:
    """The pieces that have words, and the white space around each.

    White space before the first of them belongs to it, other white space to the piece in front of
    it; so do marks that are not seen, such as the end of a direction.
    """
    begins = itertools.accumulate(map(len, pieces), initial=0)
    spoken = [begin for begin, piece in zip(begins, pieces, strict=False) if _is_seen(piece)]
    bounds = itertools.pairwise([0, *spoken[1:], len(text)])
    return [_sentence(text[begin:end], begin) for begin, end in bounds]


def _is_seen(piece: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in piece)


def _sentence(piece: str, start: int) -> Sentence:
    """The words of a piece of text that begins at ``start``, and the white space around them."""
    words = piece.lstrip()
    before = piece[: len(piece) - len(words)]
    words = words.rstrip()
    return Sentence(before, words, piece[len(before) + len(words) :], start + len(before))


def _cut(line: str, language: str, known: Set[str]) -> Iterator[str]:
    """The sentences of a line, with the white space behind each."""
    begin, is_informal = 0, _begins_in_lower_case(line, 0)
    for end, following, kind in _places(line, language):
        if following <= begin:
            continue
        place = Place(line, end, following, language, is_informal)
        is_end = is_missed_end(place, kind) if kind else not is_wrong_end(place)
        if not is_end or place.is_behind_known(known):
            continue
        yield line[begin:following]
        begin, is_informal = following, _begins_in_lower_case(line, following)
    if begin < len(line):
        yield line[begin:]


def _places(line: str, language: str) -> list[tuple[int, int, str]]:
    """Where sentences may end, in order: the end of the text, the next text and the kind of mark,
    which is nothing where sentencex ends one."""
    proposed = (
        (end, following, "small" if _is_shown_with_capital(line, end, language) else "")
        for end, following in _proposed(line, language)
    )
    return sorted((*proposed, *possible_ends(line)))


def _proposed(line: str, language: str) -> Iterator[tuple[int, int]]:
    """The places where sentencex ends sentences."""
    at = 0
    for piece in _segment(line, language):
        end, at = at + len(piece.rstrip()), at + len(piece)
        following = _SPACES.match(line, at).end()  # type: ignore[union-attr]
        if following == at and (quote := _OPENED.search(piece[-8:])) and at < len(line):
            # sentencex takes an opening quotation mark for a closing one
            end, following = at - len(quote[0]) + 1, at - 1
        if piece.strip() and following < len(line):
            yield end, following


def _is_shown_with_capital(line: str, end: int, language: str) -> bool:
    """Whether the word behind a place is in lower case, and sentencex sees it with a capital."""
    found = _MAY_BEGIN.match(line, end) if language in NEED_CAPITALS else None
    return found is not None and found[1].islower()


def _begins_in_lower_case(line: str, start: int) -> bool:
    found = _LETTER.search(line, start, start + NEARBY)
    return found is not None and found[0].islower()


_LETTER = re.compile(r"[^\W\d_]")
_SPACES = re.compile(r"\s*")
_OPENED = re.compile(r"[.!?…]\s+[\"'“„«‘‚]$")
"""Between two sentences, without a space behind it."""


_MAY_BEGIN = re.compile(r"(?<=[^.][.?!])\s+(?=[^\W_])(?!\d\.\s)(.)")
"""The first letter or digit behind an end of a sentence, but not behind an ellipsis. A digit with a
full stop, ``Nr. 5. Die``, would be shown as an initial."""
_SPACES_BEFORE_A_STOP = re.compile(r"(?<!\s)\s++(?=\.)")
"""Possessive, and from the start of a run of spaces only, so that it takes linear time."""


_WINDOW = 4000
"""Characters that sentencex reads at a time: with letters or quotation marks beyond ASCII it takes
quadratic time, a second for 60,000 characters of Chinese."""


def _segment(line: str, language: str) -> Iterable[str]:
    """The sentences of a line, by sentencex, with the white space behind each.

    sentencex 1.0.32 panics, which no ``except Exception`` catches, where a capital letter, a space
    of more than one byte (a no-break space, say) and a full stop follow one another. Such a space
    is shown to it as one of ASCII, which changes no number of characters. In languages that need
    one, each word or number that may begin a sentence is shown with a capital.
    """
    shown = line
    if language in NEED_CAPITALS:
        shown = _MAY_BEGIN.sub(lambda found: found[0][:-1] + _capital(found[1]), shown)
    if not line.isascii():
        shown = _SPACES_BEFORE_A_STOP.sub(lambda found: _with_ascii_spaces(found[0]), shown)

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


def _capital(first: str) -> str:
    return first.upper()[0] if first.isalpha() else "A"


def _with_ascii_spaces(blank: str) -> str:
    return "".join(each if each.isascii() else " " for each in blank)
