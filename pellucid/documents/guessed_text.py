"""Text of programs that do not say its encoding, as tables and subtitles are."""

import codecs

from pellucid.core.errors import DataError
from pellucid.documents.containers import LARGEST_TEXT
from pellucid.text.corpus.dialects import SAMPLE, encoding_of


class GuessedText:
    """A file in UTF-8, UTF-16, or what looks like Windows-1252, which is said."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for what is in neither."""
        if len(data) > LARGEST_TEXT:
            raise DataError(f"{what} must have at most {LARGEST_TEXT >> 20} MiB, has {len(data):,}")

        self._encoding, self._mark = encoding_of(data[:SAMPLE], what, is_whole=len(data) <= SAMPLE)
        self.notes: list[str] = []

        try:
            self.text = data[len(self._mark) :].decode(self._encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{what} must be text in {self._encoding}, as its beginning is: byte"
                f" {len(self._mark) + error.start + 1} is not",
                hint="iconv -f LATIN1 -t UTF-8 converts it, or whatever it is in",
            ) from None

        if self._encoding == "cp1252":
            self.notes.append(
                "it is not UTF-8 and was read as Windows-1252; if that is wrong, convert it:"
                " iconv -f ... -t UTF-8"
            )

    def encoded(self, text: str) -> bytes:
        """Another text as this one was; in UTF-8 with a mark if its encoding lacks a character."""
        try:
            return self._mark + text.encode(self._encoding)
        except UnicodeEncodeError as error:
            self.notes.append(
                "it is in UTF-8 now, with a byte order mark: Windows-1252 has no"
                f" {text[error.start]!r}"
            )
            return codecs.BOM_UTF8 + text.encode()
