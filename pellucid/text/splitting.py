"""Splits text into sentences for a translation model, and joins translations with the spacing."""

import dataclasses
import re
from collections.abc import Iterable, Sequence

import sentencex

from pellucid.core.errors import ConfigError

ABBREVIATIONS: dict[str, set[str]] = {
    "de": {"Abb.", "Fa.", "Fam.", "Inh.", "Kap.", "Tab.", "Tel.", "Verf."},
}
"""By language, words with a full stop that do not end a sentence, in addition to those of
sentencex. More may be added: ``ABBREVIATIONS.setdefault("fr", set()).add("éd.")``. Those under
``""`` hold in every language; ``add_abbreviations`` adds to them."""


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

    pieces: list[str] = []
    for line in lines:
        # A piece that ends with a known abbreviation is continued by the next one.
        goes_on = False
        for piece in _segment(line, language):
            if goes_on:
                pieces[-1] += piece
            else:
                pieces.append(piece)
            goes_on = not known.isdisjoint(piece.split()[-1:])

    # White space before the first sentence belongs to it, later white space to the one before.
    found: list[Sentence] = []
    before, start = "", 0
    for piece in pieces:
        words = piece.strip()
        if not words:
            if found:
                found[-1] = dataclasses.replace(found[-1], after=found[-1].after + piece)
            else:
                before += piece
        else:
            # Every character is kept in exactly one of the three parts, so that what is joined
            # again differs from the text in its words only.
            lead = before + piece[: len(piece) - len(piece.lstrip())]
            tail = piece[len(piece.rstrip()) :]
            inside = start + len(piece) - len(piece.lstrip())
            found.append(Sentence(before=lead, text=words, after=tail, start=inside))
            before = ""
        start += len(piece)

    # A text of nothing but white space: one sentence that holds it.
    return found or [Sentence(before=text, text="", after="", start=len(text))]


_WIDE_SPACES = re.compile(r"[^\S\x00-\x7f]+(?=\s*\.)")


def _segment(line: str, language: str) -> Iterable[str]:
    """The sentences of a line, by sentencex, with the white space behind each.

    sentencex 1.0.32 panics, which no ``except Exception`` catches, where a capital letter, a space
    of more than one byte (a no-break space, say) and a full stop follow one another. Such a space
    is shown to it as one of ASCII, which changes no number of characters.
    """
    shown = _WIDE_SPACES.sub(lambda found: " " * len(found[0]), line)
    start = 0
    for piece in sentencex.segment(language, shown):
        yield line[start : start + len(piece)]
        start += len(piece)


def join_sentences(sentences: Sequence[Sentence], translations: Sequence[str]) -> str:
    """The translations with the white space around the original sentences."""
    return "".join(
        f"{sentence.before}{translation}{sentence.after}"
        for sentence, translation in zip(sentences, translations, strict=True)
    )
