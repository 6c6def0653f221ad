"""Strings of apps: properties of Java, strings of iOS and macOS, and strings.xml of Android.

Keys, comments and layout stay to the byte.
"""

import html
import re
from collections.abc import Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import LARGEST_TEXT, Element, local_name
from pellucid.documents.plain import TaggedText, decode, edited
from pellucid.documents.program_values import IDENTIFIER
from pellucid.documents.segments import Segment, segment_of
from pellucid.documents.strings import Strings, note_of_left
from pellucid.documents.xml_places import PlacedXml

_ESCAPE = re.compile(
    r"\\(?:u(?P<unicode>[0-9A-Fa-f]{4})|(?P<line>\r\n|\r|\n|\Z)[ \t\f]*|(?P<sign>.))", re.DOTALL
)
_SIGNS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\f": "\\f"}
_ENTRY = re.compile(
    r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*"
    r"(?:[#!](?P<comment>[^\r\n]*)"
    r"|(?P<key>(?:[^\\=: \t\f\r\n]|\\[^\r\n]|\\(?:\r\n|\r|\n)[ \t\f]*)*)"
    r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*(?:[=:](?:[ \t\f]|\\(?:\r\n|\r|\n))*)?"
    r"(?P<value>(?:[^\\\r\n]|\\[^\r\n]|\\(?:\r\n|\r|\n)|\\\Z)*))"
    r"(?:\r\n|\r|\n|\Z)"
)
"""A comment, or a key with its value; a backslash at the end of a line continues it. It matches
anywhere, and takes no step back. Source: ``Properties.load``."""


_ARGUMENT = re.compile(r"\{\d{1,3}[,}]")
"""An argument of ``java.text.MessageFormat``, for which an apostrophe begins a quotation: after it
no argument is one."""
_APOSTROPHE = re.compile(r"'|\\u0027")
"""Where the source has one, it is no message, or quotes by itself."""


def _read_escape(found: re.Match[str]) -> str:
    """The character for an escape of Java; none for a line end."""
    if found["unicode"]:
        return chr(int(found["unicode"], 16))
    return "" if found["line"] is not None else _SIGNS.get(found["sign"], found["sign"])


def read_properties(data: bytes, what: str) -> Strings:
    """A properties file, in UTF-8, or in ISO 8859-1 as Java read it before version 9.

    Raises DataError for one that is too large.
    """
    try:
        text, encoding = decode(data, what)
    except DataError:
        if len(data) > LARGEST_TEXT:
            raise
        text, encoding = data.decode("latin-1"), "latin-1"

    # One in ASCII is read by every version as long as it stays so.
    is_narrow = data.isascii() or encoding == "latin-1"

    def escaped(character: str) -> str:
        """A character as Java reads it."""
        if is_narrow and not character.isascii():
            units = character.encode("utf-16-be").hex()
            return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        return _WRITTEN.get(character, character)

    def source(raw: str, value: str, _start: int) -> str:
        """The source of a value."""
        if _ARGUMENT.search(raw) and not _APOSTROPHE.search(raw):
            value = value.replace("'", "’")
        written = "".join(map(escaped, value))
        # It would belong to what divides it from its key.
        return f"\\{written}" if written.startswith((" ", "=", ":")) else written

    file = Strings(text, encoding, source, has_keys=False)
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        assert entry is not None
        at = entry.end()
        if entry["key"] or entry["value"]:
            file.add_value(*entry.span("value"), _ESCAPE.sub(_read_escape, entry["value"]))
    return file


_BETWEEN = r"(?:\s|//[^\r\n]*+|/\*(?:(?!\*/).)*+\*/)*+"
_BLANK = re.compile(_BETWEEN, re.DOTALL)
_STRING = r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[\w.$/:-]+"""
_PAIR = re.compile(
    rf"{_BETWEEN}(?:(?P<key>{_STRING}){_BETWEEN}(?:={_BETWEEN}(?P<value>{_STRING}){_BETWEEN})?;"
    r"|\Z)",
    re.DOTALL,
)
_APPLE_ESCAPE = re.compile(
    r"\\(?:[Uu](?P<unicode>[0-9A-Fa-f]{1,4})|(?P<octal>[0-7]{1,3})|(?P<sign>.))", re.DOTALL
)
_NEXTSTEP = (
    "\xa0ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖÙÚÛÜÝÞµ×÷©¡¢£⁄¥ƒ§¤’“«‹›ﬁﬂ®–†‡·¦¶•‚„”»…‰¬¿"
    "¹ˋ´ˆ˜¯˘˙¨²˚¸³˝˛ˇ—±¼½¾àáâãäåçèéêëìÆíªîïðñŁØŒºòóôõöæùúûıüýłøœßþÿ"
)
"""The characters from 128 on of the encoding of octal escapes. Source: unicode.org,
VENDORS/NEXT/NEXTSTEP.TXT."""


def read_apple_strings(data: bytes, what: str) -> Strings:
    """A strings file of iOS or macOS: pairs of quoted texts, and comments.

    Raises DataError for what is not one, with its line.
    """
    if data.startswith(b"bplist"):
        raise DataError(
            f"{what} is compiled", hint="plutil -convert strings reads it; or use the source"
        )

    text, encoding = decode(data, what)
    file = Strings(text, encoding, _apple_source, has_keys=False)
    at = 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None:
            between = _BLANK.match(text, at)
            line = text.count("\n", 0, between.end() if between else at) + 1
            raise DataError(f'{what} must hold "key" = "value"; line {line} does not')
        at = pair.end()
        if value := pair["value"] or pair["key"]:
            # A key alone is its own text, and gets another one.
            span = pair.span("value") if pair["value"] else (pair.end("key"),) * 2
            inner = value[1:-1] if value[0] in "\"'" else value
            file.add_value(*span, _APPLE_ESCAPE.sub(_read, inner))
    return file


def _apple_source(raw: str, value: str, _: int) -> str:
    """The source of a value; one that the file lacks stands behind its key."""
    quote = raw[:1] if raw[:1] in ("'", '"') else '"'
    signs = {**_WRITTEN, quote: f"\\{quote}"}
    written = "".join(signs.get(each, each) for each in value)
    return f"{'' if raw else ' = '}{quote}{written}{quote}"


def _read(found: re.Match[str]) -> str:
    """The character for an escape of Apple."""
    if found["unicode"]:
        return chr(int(found["unicode"], 16))
    if found["octal"]:
        code = int(found["octal"], 8) & 255
        return chr(code) if code < 128 else _NEXTSTEP[code - 128 : code - 127] or "\ufffd"
    return _SIGNS.get(found["sign"], found["sign"])


_SPACE = r"\\u(?:0020|00[aA]0|1680|20(?:0[0-9aA]|2[fF]|5[fF])|3000)"
_KEPT = re.compile(
    r"(?P<br>\\n|\\u000[aA])|\\[t\\]"
    # Controls, signs of directions, a backslash, and a surrogate without its partner.
    r"|\\u(?:00(?:[01][0-9a-fA-F]|5[cC]|7[fF]|[89][0-9a-fA-F])"
    r"|20(?:0[bBeEfF]|2[89a-eA-E]|6[0-9a-fA-F])|[fF][eE][fF][fF])"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    # A space where one that is not escaped would not be shown.
    rf"|(?<![^\s>]){_SPACE}|{_SPACE}(?![^\s<])"
    r"|<!--(?:(?!<!--|-->).)*-->|<\?(?:(?!<\?|\?>).)*\?>"
    r"|(?:&lt;|\\u003[cC])(?P<start>[A-Za-z]\w{0,20})"
    r"(?:[^<>&\\]|&(?:amp|quot|apos|#\w{1,8});|\\(?!u003)){0,1000}(?:>|&gt;|\\u003[eE])"
    r"|(?:&lt;|\\u003[cC])/(?P<end>[A-Za-z]\w{0,20})(?:>|&gt;|\\u003[eE])"
    r"|\\u003[ceCE]",
    re.DOTALL,
)
"""Parts that stay as they are written: escapes that are no part of a word, comments, and tags that
are written as text."""
_DATA = re.compile(r"(\s*<!\[CDATA\[)((?:(?!\]\]>).)*)(\]\]>\s*)", re.DOTALL)
_SECTION = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_BLANKS = " \t\r\n"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REFERENCE = re.compile(r"[@?][\w+*:./]+")
"""The name of another string. Source: ``ResourceUtils::TryParseReference`` of aapt2."""
_SHOWN = re.compile(
    r"\\(?:u(?P<unicode>[0-9A-Fa-f]{4})|(?P<sign>[^u]))|(?P<blanks>[ \t\r\n]+)|\"", re.DOTALL
)


class AndroidDocument:
    """A strings.xml of Android: strings, their arrays and plurals; elements in them are marks."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for XML of another kind."""
        self._file = PlacedXml(data, what)
        root = self._file.root
        if local_name(root) != "resources":
            raise DataError(
                f"{what} is XML that begins with <{local_name(root)}>, which is not read",
                hint="strings.xml of Android begins with <resources>; convert others to xliff",
            )
        self._texts: list[tuple[int, int, str, TaggedText, str]] = []
        """The bytes of each text, what stands around it at both ends, and the text."""
        self.segments: list[Segment] = []
        self._left: list[str] = []
        for element, place in self._file.places.items():
            is_within = self._texts and place.start < self._texts[-1][1]
            if _is_shown(element) and not is_within:
                self._add(place.inner_start, place.inner_end)
        has_plurals = any(True for _ in root.iter("{*}plurals"))
        plurals = "forms of plurals that the language has and the file lacks are not added"
        self.notes = [*([plurals] if has_plurals else []), *note_of_left(self._left)]

    def _add(self, start: int, end: int) -> None:
        raw = self._file.text(start, end)
        data = _DATA.fullmatch(raw)
        # A section among other text is read as text in which signs of XML are escaped.
        inner = (
            data[2] if data else _SECTION.sub(lambda found: html.escape(found[1], quote=False), raw)
        )

        # White space and quotation marks around the words are kept beside them.
        words = inner.strip(_BLANKS)
        head = inner[: len(inner) - len(inner.lstrip(_BLANKS))] if words else ""
        tail = inner[len(head) + len(words) :]
        is_quoted = _QUOTED.fullmatch(re.sub(r"<[^<>]*>", "", words)) is not None
        if is_quoted:
            words, head, tail = words[1:-1], head + '"', '"' + tail
        if not words or _REFERENCE.fullmatch(words):
            return
        if IDENTIFIER.fullmatch(words):
            self._left.append(words)
            return

        def shown(found: re.Match[str]) -> str:
            """The character that Android shows; it shows no quotation mark that is not escaped."""
            if found["unicode"]:
                return chr(int(found["unicode"], 16))
            blanks = found["blanks"] if is_quoted or not found["blanks"] else " "
            return found["sign"] or blanks or ""

        def read(piece: str) -> str:
            """A text as it is shown, with each pair of surrogates as its character."""
            pairs = _SHOWN.sub(shown, piece).encode("utf-16-le", "surrogatepass")
            return pairs.decode("utf-16-le", "replace")

        text = TaggedText(words, kept=_KEPT, has_entities=not data)
        pieces = (read(piece) if isinstance(piece, str) else piece for piece in text.segment.pieces)
        head, tail = (data[1] + head, tail + data[3]) if data else (head, tail)
        self._texts.append((start, end, head, text, tail))
        self.segments.append(segment_of(pieces))

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other texts."""
        edits = []
        for (start, end, head, text, tail), before, after in zip(
            self._texts, self.segments, translated, strict=True
        ):
            if before == after:
                continue

            # An apostrophe ends the text for Android, unless it stands in quotation marks.
            signs = r'[\\"]' if head.endswith('"') else r"""[\\"']"""
            is_data = tail.lstrip('"' + _BLANKS).startswith("]]>")
            pieces = tuple(
                re.sub(signs, r"\\\g<0>", piece) if isinstance(piece, str) else piece
                for piece in after.pieces
            )

            new = text.text_with(Segment(pieces))
            new = f"\\{new}" if new[:1] in ("@", "?") else new
            new = new.replace("]]>", "]]]]><![CDATA[>") if is_data else new
            edits.append((start, end, self._file.encoded(f"{head}{new}{tail}")))
        return edited(self._file.data, edits)


def _is_shown(element: Element) -> bool:
    """Whether it holds a text that people read."""
    parent = element.getparent()
    is_item = local_name(element) == "item" and local_name(parent) in ("plurals", "string-array")
    holder = parent if is_item else element
    return (local_name(element) == "string" or is_item) and holder.get("translatable") != "false"
