"""Strings of programs that hold several texts: plural and select forms, and forms between bars.

ICU's message format is that of FormatJS, Angular, Flutter, Lingui and others, and nests to any
depth; Vue I18n and Laravel write the forms of a plural between bars. Each form is a segment of its
own, and so is the text around them, in which the forms are one mark.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from pellucid.documents.plurals import categories_of
from pellucid.documents.protected import closing_braces
from pellucid.documents.segments import (
    Alone,
    Close,
    Document,
    Open,
    Piece,
    Segment,
    check_count,
    joined,
    segment_of,
)

_FORMS = re.compile(r"\{\s*([^\s{},]{1,100})\s*,\s*(plural|select|selectordinal)\s*,\s*")
_CHOICE = re.compile(r"\{\s*\w{1,100}\s*,\s*choice\s*,")
"""The older forms of Java's messages, which have a syntax of their own."""
_OFFSET = re.compile(r"offset\s*:\s*\d{1,9}\s*")
_SELECTOR = re.compile(r"\s*(=\d{1,9}|[^\s{}=,]{1,100})\s*\{")
_EXAMPLES = {"zero": "0", "one": "1", "two": "2", "few": "3", "many": "11"}
_OTHERS = "5"
"""A number that each form of a plural is for."""
_NUMBERS = re.compile(
    r"\s*(?:\{\d{1,9}\}|[\[\]](?:\d{1,9}|\*|-?[Ii]nf)(?:,(?:\d{1,9}|\*|[Ii]nf))?[\[\]])"
)
"""The numbers that a form of Laravel or Symfony is for: ``{0}``, ``[2,19]``."""
_QUOTATION = re.compile(r"'[{}][^']*'")
_SUBSTITUTION = re.compile(r"(?<![^\s(\[\"'“‘«/–—-])\|[A-Za-z][\w.-]{0,60}\|_{0,2}(?![\w|])")
"""The sign of reStructuredText for a text from elsewhere, such as ``|version|``."""
_SHOWN = 40
"""Characters of a string that could not be read."""
_DEEPEST = 20
"""Forms within forms; people write three."""
_DEEPEST_ADDED = 1
"""Within so many others a plural gets forms that it lacks; each of them holds what is in it."""
_PLACE = "\ufffc"
"""The character in place of a mark where a string is parsed: the object replacement character."""


def has_forms(text: str) -> bool:
    """Whether a text has plural or select forms of ICU."""
    return _FORMS.search(text) is not None


class _UnreadError(Exception):
    """A string that looks like a message and cannot be read as one."""


@dataclasses.dataclass
class _Text:
    """A text of a message, which is the segment of this number."""

    number: int
    forms: dict[int, "list[str | _Text]"]
    """By the number of a mark what it stands for: plural or select forms, as their texts and what
    is between them; or characters that stay."""


class Message:
    """A string, as the segments of each of its texts."""

    def __init__(
        self, segment: Segment, *, is_icu: bool = False, categories: Sequence[str] = ()
    ) -> None:
        """``is_icu`` says that the document has messages of ICU, so that this is one too.
        ``categories`` are forms of a plural that the translation needs.
        """
        self._categories = categories
        self.segments = [segment]
        self._is_icu = is_icu
        self.is_unread = False
        """Whether it has forms that could not be read or written, and is left as it is."""
        self._whole = segment
        self._parts: list[str | _Text] = []
        self._marks: dict[int, Piece] = {}
        self._is_message = self._doubles = False

        text = "".join(piece if isinstance(piece, str) else _PLACE for piece in segment.pieces)
        if _CHOICE.search(text):
            self.segments, self.is_unread = [], True
            return
        is_message = has_forms(text)
        # Beside messages with forms a quotation is one too, if it ends.
        quotes = is_icu and _QUOTATION.search(text) is not None
        self._doubles = "''" in text and "{" in text
        if _PLACE in segment.text or not (is_message or quotes or self._doubles or "|" in text):
            return
        self._is_message = is_message or quotes or self._doubles
        self._text, self._at = text, 0
        self._closing = {} if self._is_message else closing_braces(text)
        self._next = 1 + max((mark.number for mark in segment.marks), default=-1)
        at = 0
        for piece in segment.pieces:
            if not isinstance(piece, str):
                self._marks[at] = piece
            at += len(piece) if isinstance(piece, str) else 1

        self.segments = []
        try:
            self._parts = list(self._between_bars())
        except _UnreadError:
            self.segments, self.is_unread = [], True

    @property
    def start(self) -> str:
        """The first characters, by which a reader finds the message."""
        return self._whole.text[:_SHOWN]

    def joined(self, translated: Sequence[Segment]) -> Segment:
        """The string with other texts."""
        if list(translated) == self.segments:
            return self._whole
        if not self._parts:
            [only] = translated
            return _joined(only.pieces, safe=self._unsafe_signs())
        pieces: list[Piece] = []
        for part in self._parts:
            pieces += [part] if isinstance(part, str) else self._written(part, translated)
        whole = _joined(pieces)

        # A brace or a bar of the model's own would make other texts of it.
        again = Message(whole, is_icu=self._is_icu)
        if again.is_unread or len(again.segments) != len(self.segments):
            self.is_unread = True
            return self._whole
        return whole

    def _unsafe_signs(self) -> str:
        """The signs before which an apostrophe would begin a quotation, for libraries that know
        them; where the source has one, it is meant. A "<" stands for any mark.
        """
        pieces = self._whole.pieces
        is_before_mark = any(
            isinstance(piece, str) and piece.endswith("'") and not isinstance(following, str)
            for piece, following in itertools.pairwise(pieces)
        )
        brace = "" if "'{" in self._whole.text else "{"
        return brace + ("<" if self._is_icu and not is_before_mark else "")

    def _between_bars(self) -> Iterator[str | _Text]:
        """The texts between the bars of the string, and the bars."""
        has_bars = "|" in self._text
        while True:
            if has_bars and (numbers := _NUMBERS.match(self._text, self._at)):
                self._at = numbers.end()
                yield numbers[0]
            yield self._read(0, "")
            if self._at >= len(self._text):
                return
            self._at += 1
            yield "|"

    def _read(self, depth: int, number: str) -> _Text:
        """The text that begins here, up to a bar between forms or the brace behind one.

        In a form of a plural ``#`` is the number, and is read as ``number``, such as 5: a model
        knows what stands beside a number. Elsewhere ``number`` is empty.
        """
        text = self._text
        read = _Text(len(self.segments), {})
        self.segments.append(self._whole)
        pieces: list[Piece] = []
        opened: list[int] = []
        begun = self._at

        def take() -> None:
            stretch = text[begun : self._at]
            pieces.append(stretch.replace("''", "'") if self._is_message else stretch)

        while self._at < len(text):
            at = self._at
            character, following = text[at], text[at + 1 : at + 2]
            stands_for: list[str | _Text] | None = None
            if character == _PLACE:
                take()
                pieces.append(self._mark(opened))
                self._at = begun = at + 1
            elif character == "|" and (kept := _SUBSTITUTION.match(text, at)):
                take()
                self._at = kept.end()
                stands_for = [kept[0]]
            elif character == "|" and depth == 0 and not opened:
                break
            elif not self._is_message:
                self._at = self._closing.get(at, at) + 1
            elif character == "}":
                if depth == 0:
                    raise _UnreadError
                break
            elif character == "'" and following == "'":
                self._at += 2
            elif character == "'" and (following in ("{", "}") or (number and following == "#")):
                take()
                stands_for = [self._quotation()]
            elif character == "{" and (head := _FORMS.match(text, at)):
                take()
                stands_for = self._forms(head, depth, number)
            elif character == "{":
                self._skip_argument()
            elif number and character == "#":
                take()
                self._at += 1
                stands_for = ["#"]
            else:
                self._at += 1
            if stands_for is not None:
                # Forms are read as the argument that they depend on.
                reads = "".join(each for each in stands_for if isinstance(each, str))
                if character == "{" and head:
                    reads = f"{{{head[1]}}}"
                pieces.append(Alone(self._next, number if character == "#" else reads))
                read.forms[self._next] = stands_for
                self._next += 1
                begun = self._at

        take()
        # What is open now is closed in another text, where that is found out.
        self.segments[read.number] = segment_of(pieces)
        return read

    def _mark(self, opened: list[int]) -> Piece:
        """The mark that stands here; each must have its partner in the same text."""
        mark = self._marks[self._at]
        if isinstance(mark, Open):
            opened.append(mark.number)
        elif isinstance(mark, Close) and (not opened or opened.pop() != mark.number):
            raise _UnreadError
        return mark

    def _quotation(self) -> str:
        """The quotation that begins here, up to the next apostrophe that is not doubled."""
        start = self._at
        stop = self._text.find("'", start + 1)
        while stop >= 0 and self._text.startswith("''", stop):
            stop = self._text.find("'", stop + 2)
        if stop < 0:
            raise _UnreadError
        self._at = stop + 1
        return self._text[start : self._at]

    def _skip_argument(self) -> None:
        """Go behind an argument without forms, such as ``{day, date, short}``."""
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            depth += (character == "{") - (character == "}")
            self._at += 1
            if depth == 0:
                return
        raise _UnreadError

    def _forms(self, head: re.Match[str], depth: int, number: str) -> list[str | _Text]:
        """The plural or select forms that begin with ``head``."""
        if depth == _DEEPEST:
            raise _UnreadError
        text, begun, self._at = self._text, head.start(), head.end()
        is_plural = head[2] != "select"
        if is_plural and (offset := _OFFSET.match(text, self._at)):
            self._at = offset.end()

        parts: list[str | _Text] = []
        begun_at: dict[str, int] = {}
        """By form, where its text begins."""
        while selector := _SELECTOR.match(text, self._at):
            self._at = selector.end()
            begun_at[selector[1]] = self._at
            form = selector[1].removeprefix("=")
            reads = _EXAMPLES.get(form, form if form.isdecimal() else _OTHERS)
            written = text[begun : self._at]
            parts += [written, self._read(depth + 1, reads if is_plural else number)]
            begun = self._at
            self._at += 1
        end = re.compile(r"\s*\}").match(text, self._at)
        if not parts or end is None or self._at > len(text):
            raise _UnreadError

        # Forms that the source does not have, from its ``other``.
        is_cardinal = head[2] == "plural" and "other" in begun_at and depth <= _DEEPEST_ADDED
        for form in self._categories if is_cardinal else ():
            if form not in begun_at:
                self._at = begun_at["other"]
                parts += [f"}} {form} {{", self._read(depth + 1, _EXAMPLES[form])]
        self._at = end.end()
        return [*parts, text[begun : self._at]]

    def _written(self, read: _Text, translated: Sequence[Segment]) -> Iterator[Piece]:
        """The pieces of a text, with its forms instead of their marks."""
        for piece in translated[read.number].pieces:
            if isinstance(piece, str):
                yield self._escaped(piece)
            elif isinstance(piece, Alone) and piece.number in read.forms:
                for part in read.forms[piece.number]:
                    if isinstance(part, str):
                        yield part
                    else:
                        yield from self._written(part, translated)
            else:
                yield piece

    def _escaped(self, text: str) -> str:
        """A text in which no apostrophe begins a quotation.

        It is doubled where the string does that, and otherwise the sign that typography has: not
        every library that reads this format knows quotations.
        """
        if not self._is_message:
            return text
        return text.replace("'", "''" if self._doubles else "’")


def _joined(pieces: Iterable[Piece], *, safe: str = "") -> Segment:
    """A segment of pieces, of which texts beside each other are one. No apostrophe stands before a
    sign of ``safe``, where "<" is any mark.
    """
    whole = joined(pieces)
    for number, piece in enumerate(whole if safe else ()):
        if isinstance(piece, str):
            if "<" in safe and number + 1 < len(whole):
                piece = re.sub("'$", "’", piece)
            whole[number] = piece.replace("'{", "’{") if "{" in safe else piece
    return Segment(tuple(whole))


class MessageDocument:
    """A document of strings, each of whose texts is a segment."""

    def __init__(self, document: Document, target_language: str = "") -> None:
        """``target_language`` says which forms a plural of ICU gets that it lacks."""
        self._document = document
        needed = categories_of(target_language)
        is_icu = any(has_forms(segment.text) for segment in document.segments)
        self._messages = [
            Message(segment, is_icu=is_icu, categories=needed) for segment in document.segments
        ]
        self.segments = [each for message in self._messages for each in message.segments]

    @property
    def notes(self) -> list[str]:
        """Notes on strings that were left as they are."""
        count = sum(message.is_unread for message in self._messages)
        strings, verb, whose = (
            ("string", "is", "its") if count == 1 else ("strings", "are", "their")
        )
        first = next((m.start for m in self._messages if m.is_unread), "")
        unread = (
            f"{count:,} {strings} with plural or select forms {verb} as in the source:"
            f" {whose} braces cannot be read as ICU's format: {first!r}"
        )
        return [*self._document.notes, *([unread] if count else [])]

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The document with other texts."""
        check_count(translated, self.segments)
        texts = iter(translated)
        return self._document.write(
            [
                message.joined(list(itertools.islice(texts, len(message.segments))))
                for message in self._messages
            ]
        )
