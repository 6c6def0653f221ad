"""Text of programs that do not say its encoding, as tables and subtitles are."""

import codecs
import itertools

from pellucid.core.errors import DataError
from pellucid.core.texts import TO_UTF_8
from pellucid.documents.containers import check_size
from pellucid.text.corpus.dialects import SAMPLE, encoding_of
from pellucid.text.languages import base_code
from pellucid.text.scripts import is_of_word

_WESTERN = "cp1252"
_PAGES = {
    "cp1250": "cs hr hu pl ro sk sl sq",
    "cp1251": "be bg kk mk ru uk",
    "cp1253": "el",
    "cp1254": "az tr",
    "cp1255": "he yi",
    "cp1256": "ar fa ur",
    "cp1257": "et lt lv",
    "cp1258": "vi",
    "cp874": "th",
}
"""By code page of Windows, the languages whose programs wrote in it. Source: Microsoft, "Code Page
Identifiers" and "National Language Support". Those with two scripts are left out."""


class GuessedText:
    """A file in UTF-8, UTF-16, or the code page of its language in Windows, which is said."""

    def __init__(self, data: bytes, what: str, language: str = "") -> None:
        """``language`` is the code of the language of the text, if it is known.

        Raises DataError for what is in none of these.
        """
        check_size(data, what)

        self._encoding, self._mark = _encoding_of(data, what, language)
        self.notes: list[str] = []

        try:
            self.text = data[len(self._mark) :].decode(self._encoding)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{what} must be text in {self._encoding}, as its beginning is: byte"
                f" {len(self._mark) + error.start + 1} is not",
                hint=TO_UTF_8,
            ) from None

        self._name = self._encoding.replace("cp", "Windows-").replace("iso8859-", "ISO 8859-")
        if self._encoding != self._name:
            self.notes.append(
                f"it is not UTF-8 and was read as {self._name}; if that is wrong, convert it:"
                " iconv -f ... -t UTF-8"
            )

    def encoded(self, text: str) -> bytes:
        """Another text as this one was; in UTF-8 with a mark if its encoding lacks a character."""
        try:
            return self._mark + text.encode(self._encoding)
        except UnicodeEncodeError as error:
            self.notes.append(
                f"it is in UTF-8 now, with a byte order mark: {self._name} has no"
                f" {text[error.start]!r}"
            )
            return codecs.BOM_UTF8 + text.encode()


def _encoding_of(data: bytes, what: str, language: str) -> tuple[str, bytes]:
    """The encoding of a text and its byte order mark. Raises DataError if it cannot be guessed."""
    code = base_code(language)
    page = next((each for each, codes in _PAGES.items() if code in codes.split()), "")
    try:
        found, mark = encoding_of(data[:SAMPLE], what, is_whole=len(data) <= SAMPLE)
    except DataError:
        if not page or 0 in data[:SAMPLE] or not _looks_like(data[:SAMPLE], page):
            raise
        return ("iso8859-2" if _is_latin_2(data[:SAMPLE], code) else page), b""
    if found == _WESTERN and _is_latin_2(data[:SAMPLE], code):
        return "iso8859-2", mark
    return (page if page and found == _WESTERN else found), mark


_OF_LATIN_2 = {
    "pl": b"\xb1\xb6\xbc\xa1\xa6\xac",
    **dict.fromkeys(("cs", "hr", "sk", "sl"), b"\xb9\xa9"),
}
"""The bytes of ą, ś and ź, or of š, in ISO 8859-2; in Windows-1250 they are signs or letters that
the language does not have."""


def _is_latin_2(content: bytes, code: str) -> bool:
    """Whether a text of a code page of Central Europe is in ISO 8859-2 rather than Windows-1250,
    which has letters between 0x80 and 0x9F."""
    has_own = any(byte in content for byte in _OF_LATIN_2.get(code, b""))
    return has_own and not any(0x80 <= byte < 0xA0 for byte in content)


def _looks_like(content: bytes, page: str) -> bool:
    """Whether a text may be in a code page: it is no damaged UTF-8, of which most can be decoded;
    most signs are letters, and words have no capitals within, as those of Russian in KOI8-R or DOS
    have in Windows-1251.
    """
    outside = sum(byte > 0x7F for byte in content)
    utf8 = content.decode(errors="ignore")
    if 2 * sum(len(each.encode()) for each in utf8 if not each.isascii()) > outside:
        return False

    text = content.decode(page, errors="replace")
    letters = sum(is_of_word(each) for each in text if not each.isascii())
    pairs = [pair for pair in itertools.pairwise(text) if not any(map(str.isascii, pair))]
    begun = sum(one.isupper() and other.islower() for one, other in pairs)
    within = sum(one.islower() and other.isupper() for one, other in pairs)
    return 4 * letters >= 3 * outside and within <= begun
