"""A translator whose translation and alignment are known: words in pairs change places."""

import re
from collections.abc import Sequence

from pellucid.documents.placement import Aligned
from pellucid.documents.translate import translate_document


class Swapping:
    """Says "HOUSE red" for "red house": every second word comes first, upper case is lower."""

    source_language = "en"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def translate(self, sentences: Sequence[str], *, align: bool) -> list[Aligned]:
        self.seen += sentences
        return [self.one(sentence, align) for sentence in sentences]

    def one(self, sentence: str, align: bool) -> Aligned:
        words = [found.span() for found in re.finditer(r"\w+|[^\w\s]+", sentence)]
        order = list(range(len(words)))
        for first in range(0, len(order) - 1, 2):
            pair = order[first : first + 2]
            if all(sentence[slice(*words[n])].isalnum() for n in pair):
                order[first : first + 2] = reversed(pair)

        text, links = "", []
        for number in order:
            word = sentence[slice(*words[number])].swapcase()
            text += " " if text and word[0].isalnum() and text[-1].isalnum() else ""
            text += " " if text and word[0].isalnum() and text[-1] in ",;:.!?" else ""
            links.append((words[number], (len(text), len(text) + len(word)), 1.0))
            text += word
        return Aligned(text, tuple(links) if align else ())


def translated(source: str, name: str, **options) -> str:
    """A document of text, translated by the stand-in."""
    return translate_document(source.encode(), Swapping(), name, **options).decode()
