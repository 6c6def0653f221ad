"""The HTML parser of the standard library, which says where each event stands and reads to the end.

By itself it stops reading at a ``&#`` without a number, raises AssertionError for a ``<![`` that
begins no section it knows, has no event for ``</>``, and until 3.13.6 does not end the comments
``<!-->`` and ``<!-- --!>``. Browsers read the first as text and the others as comments.
"""

import re
from html.parser import HTMLParser

_NO_REFERENCE = re.compile(r"&#(?!(?:[0-9]+|[xX][0-9a-fA-F]+)(?:[^0-9a-fA-F]|\Z))")
"""A ``&#`` that the parser takes for no reference; one that the end cuts off is left to it."""
_EMPTY_COMMENT, _COMMENT_END = re.compile("<!---?>"), re.compile("--!?>")
_PRIVATE_USE = range(0xE000, 0xF900)


class PlacedParser(HTMLParser):
    """Parses a whole text, and knows the place of each event in it."""

    def __init__(self, source: str, *, read_as: str | None = None) -> None:
        """``read_as`` is parsed in place of the source, and has the same places and line ends."""
        super().__init__(convert_charrefs=False)
        self.source = source
        # One character that the text lacks stands for the "#", so that every place stays.
        self._number_sign = "#"
        self._fed = source if read_as is None else read_as
        if _NO_REFERENCE.search(self._fed):
            used = {*source, *self._fed}
            unused = (chr(code) for code in _PRIVATE_USE if chr(code) not in used)
            self._number_sign = next(unused, " ")
            self._fed = _NO_REFERENCE.sub(f"&{self._number_sign}", self._fed)

        self._line_starts = [0]
        at = source.find("\n")
        while at >= 0:
            self._line_starts.append(at + 1)
            at = source.find("\n", at + 1)

    def read(self) -> None:
        """Parse the text, without the rest of it that the parser cannot end, such as an open tag.

        ``HTMLParser.close`` is not called: it tries each ``<`` in the rest as the start of a tag
        and takes quadratic time.
        """
        self.feed(self._fed)

    @property
    def place(self) -> int:
        """Where the present event begins, in characters of the text."""
        line, column = self.getpos()
        return self._line_starts[line - 1] + column

    @property
    def unread(self) -> int:
        """How many characters at the end were not parsed."""
        return len(self.rawdata)

    def as_written(self, text: str) -> str:
        """Return text from the parser as it is in the document."""
        return text.replace(self._number_sign, "#")

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Read ``<!--`` to where browsers end it, also by ``--!>``, or at once, as ``<!-->``."""
        empty = _EMPTY_COMMENT.match(self.rawdata, i)
        end = empty or _COMMENT_END.search(self.rawdata, i + 4)
        if end is None:
            return -1
        if report:
            self.handle_comment("" if empty else self.rawdata[i + 4 : end.start()])
        return end.end()

    def parse_endtag(self, i: int) -> int:
        """Read an end tag; one without a name is as silent as a comment."""
        if self.rawdata.startswith("</>", i):
            self.handle_comment("")
            return i + len("</>")
        return super().parse_endtag(i)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Read ``<![...``; what begins no known section, or one that does not end, is a comment, as
        browsers read it.
        """
        place = self.lineno, self.offset
        try:
            end = super().parse_marked_section(i, report)
        except AssertionError:
            self.lineno, self.offset = place
            end = -1
        return self.parse_bogus_comment(i) if end < 0 else end
