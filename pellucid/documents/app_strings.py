"""Strings of apps: properties of Java, strings of iOS and macOS, and strings.xml of Android.

Keys, comments and layout stay to the byte.
"""

import re
from collections.abc import Iterator, Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import LARGEST_TEXT, Element, local_name, parse_xml
from pellucid.documents.plain import TaggedText, decode
from pellucid.documents.segments import Segment
from pellucid.documents.strings import Strings
from pellucid.documents.xml_places import edited, element_places, keeps_tags

_ESCAPE = re.compile(
    r"\\(?:u(?P<unicode>[0-9A-Fa-f]{4})|(?P<line>\r\n|\r|\n)[ \t\f]*|(?P<sign>.))", re.DOTALL
)
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
_KEY = re.compile(r"[ \t\f]*(?:[^\\=:\s]|\\.)*[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)
"""Up to where the value begins: a key, and a sign or white space. Source: ``Properties.load``."""


def _read_escape(found: re.Match[str]) -> str:
    """The character for an escape of Java; none for a line end."""
    if found["unicode"]:
        return chr(int(found["unicode"], 16))
    return "" if found["line"] else _SIGNS.get(found["sign"], found["sign"])


class PropertiesDocument:
    """A properties file, in UTF-8, or in ISO 8859-1 as Java read it before version 9."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for one that is too large."""
        try:
            text, encoding = decode(data, what)
        except DataError:
            if len(data) > LARGEST_TEXT:
                raise
            text, encoding = data.decode("latin-1"), "latin-1"

        # One in ASCII is read by every version as long as it stays so.
        self._is_narrow = data.isascii() or encoding == "latin-1"
        self._strings = Strings(text, encoding)

        # Each logical line but comments and empty ones is a key with its text.
        for start, end in _logical_lines(text):
            if text[start:end].lstrip(" \t\f")[:1] in ("#", "!", ""):
                continue
            key = _KEY.match(text, start, end)
            assert key is not None
            value = text[key.end() : end]
            self._strings.add(key.end(), end, _ESCAPE.sub(_read_escape, value))

        self.segments = self._strings.segments

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other values."""

        def source(_raw: str, value: str, _start: int) -> str:
            written = "".join(map(self._escaped, value))
            return f"\\{written}" if written.startswith(" ") else written

        return self._strings.written(translated, source)

    def _escaped(self, character: str) -> str:
        if self._is_narrow and not character.isascii():
            units = character.encode("utf-16-be").hex()
            return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        return _WRITTEN.get(character, character)


def _logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends; one with a backslash at its end goes on in the next."""
    begun: int | None = None
    for found in re.finditer(r"([^\r\n]*)(\r\n|\r|\n|\Z)", text):
        line = found[1]
        begun = found.start() if begun is None else begun
        is_comment = begun == found.start() and line.lstrip(" \t\f")[:1] in ("#", "!")
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2 and not is_comment and found[2]:
            continue
        yield begun, found.end(1)
        begun = None


_BETWEEN = re.compile(r"\s+|//[^\r\n]*")
_PAIR = re.compile(
    r'(?:"(?:[^"\\]|\\.)*"|[\w.$/:-]+)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*;', re.DOTALL
)
_APPLE_ESCAPE = re.compile(r"\\(?:[Uu](?P<unicode>[0-9A-Fa-f]{4})|(?P<sign>.))", re.DOTALL)


class AppleStringsDocument:
    """A strings file of iOS or macOS: pairs of quoted texts, and comments."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for what is not one, with its line."""
        if data.startswith(b"bplist"):
            raise DataError(
                f"{what} is compiled", hint="plutil -convert strings reads it; or use the source"
            )

        text, encoding = decode(data, what)
        self._strings = Strings(text, encoding)

        at = 0
        while at < len(text):
            if between := _BETWEEN.match(text, at):
                at = between.end()
            elif text.startswith("/*", at) and (end := text.find("*/", at)) >= 0:
                at = end + 2
            elif pair := _PAIR.match(text, at):
                at = pair.end()
                self._strings.add(*pair.span("value"), _APPLE_ESCAPE.sub(_read, pair["value"]))
            else:
                line = text.count("\n", 0, at) + 1
                raise DataError(f'{what} must hold "key" = "value"; line {line} does not')

        self.segments = self._strings.segments

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other values."""

        def source(_raw: str, value: str, _start: int) -> str:
            return "".join(_WRITTEN.get(each, each) for each in value).replace('"', '\\"')

        return self._strings.written(translated, source)


def _read(found: re.Match[str]) -> str:
    if found["unicode"]:
        return chr(int(found["unicode"], 16))
    return _SIGNS.get(found["sign"], found["sign"])


_KEPT = re.compile(
    r"(?P<br>\\n)|\\[tu@?\\](?:[0-9A-Fa-f]{4})?"
    r"|&lt;(?P<start>[A-Za-z]\w{0,20})[^<>&\n]{0,200}(?:>|&gt;)"
    r"|&lt;/(?P<end>[A-Za-z]\w{0,20})(?:>|&gt;)"
)
"""Escapes of Android beside those of quotation marks, and tags that are written as text."""
_DATA = re.compile(r"(\s*<!\[CDATA\[)(.*)(\]\]>\s*)", re.DOTALL)


class AndroidDocument:
    """A strings.xml of Android: strings, their arrays and plurals; elements in them are marks."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for XML of another kind."""
        root = parse_xml(data, what)
        if local_name(root) != "resources":
            raise DataError(
                f"{what} is XML that begins with <{local_name(root)}>, which is not read",
                hint="strings.xml of Android begins with <resources>; convert others to xliff",
            )
        codec = root.getroottree().docinfo.encoding or "utf-8"
        elements = [each for each in root.iter() if local_name(each)]
        if not keeps_tags(codec) or len(places := element_places(data)) != len(elements):
            raise DataError(f"{what} must be in UTF-8")

        self._data, self._codec = data, codec
        self._texts: list[tuple[int, int, str, TaggedText, str]] = []
        """The bytes of each text, what stands around it at both ends, and the text."""
        self.segments: list[Segment] = []
        self.notes = ["forms of plurals that the language has and the file lacks are not added"]
        for element, place in zip(elements, places, strict=True):
            if _is_shown(element):
                self._add(place.inner_start, place.inner_end)
        if not any(local_name(each) == "plurals" for each in elements):
            self.notes = []

    def _add(self, start: int, end: int) -> None:
        raw = self._data[start:end].decode(self._codec)
        data = _DATA.fullmatch(raw)
        inner = data[2] if data else raw

        # White space and quotation marks around the words are kept beside them.
        words = inner.strip()
        head = inner[: len(inner) - len(inner.lstrip())] if words else ""
        tail = inner[len(head) + len(words) :]
        is_quoted = len(words) > 1 and words[0] == words[-1] == '"' and words[-2] != "\\"
        if is_quoted:
            words, head, tail = words[1:-1], head + '"', '"' + tail
        else:
            words = " ".join(words.split())

        if words[:1] in ("@", "?") or not words:
            return  # the name of another one

        text = TaggedText(re.sub(r"\\(['\"])", r"\1", words), kept=_KEPT, has_entities=not data)
        head, tail = (data[1] + head, tail + data[3]) if data else (head, tail)
        self._texts.append((start, end, head, text, tail))
        self.segments.append(text.segment)

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other texts."""
        if len(translated) != len(self.segments):
            raise ValueError(f"{len(self.segments)} segments are needed, got {len(translated)}")
        edits = []
        for (start, end, head, text, tail), before, after in zip(
            self._texts, self.segments, translated, strict=True
        ):
            if before == after:
                continue

            # An apostrophe ends the text for Android, unless it stands in quotation marks.
            marks = '"' if head.endswith('"') else "'\""
            pieces = tuple(
                re.sub(f"[{marks}]", r"\\\g<0>", piece) if isinstance(piece, str) else piece
                for piece in after.pieces
            )

            new = text.text_with(Segment(pieces))
            new = f"\\{new}" if new[:1] in ("@", "?") else new
            edits.append(
                (start, end, f"{head}{new}{tail}".encode(self._codec, "xmlcharrefreplace"))
            )

        return edited(self._data, edits)


def _is_shown(element: Element) -> bool:
    """Whether it holds a text that people read."""
    parent = element.getparent()
    is_item = local_name(element) == "item" and local_name(parent) in ("plurals", "string-array")
    holder = parent if is_item else element
    return (local_name(element) == "string" or is_item) and holder.get("translatable") != "false"
