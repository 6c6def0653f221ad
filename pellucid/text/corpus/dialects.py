"""Finds out how a table of text was written: encoding, delimiter, and which columns are a pair.

A spreadsheet saves CSV by the habits of its country: with commas, semicolons or tabs, in UTF-8,
UTF-16 or Windows-1252, with a first line ``sep=;`` or without, and with whatever names its user
gave to the columns. ``dialect_of`` answers for the beginning of a file, corpora and documents
alike; ``pair_columns`` finds source and target among the names of columns.
"""

import codecs
import csv
import io
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pellucid.core.errors import DataError
from pellucid.core.texts import TO_UTF_8, words_in
from pellucid.text.languages import LANGUAGE_WORDS, NOT_SURELY_LANGUAGES

SAMPLE = 1 << 20
"""Bytes from the beginning of a file that are enough for ``dialect_of``."""
DELIMITERS = ",;\t|"
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    # Before UTF-16, whose mark begins that of UTF-32.
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_WESTERN = "cp1252"
"""The encoding of programs in Western Europe and America that do not write Unicode."""
_MOST_FOREIGN_LETTERS = 0.3
"""Share of letters outside ASCII above which text is not in a language of Western Europe. French
has 4%, Icelandic 12%; Russian and Greek nearly all."""
_ROWS_COMPARED = 50
_SEP = re.compile(r"sep=([^\r\n\"])\r?(?:\n|$)", re.IGNORECASE)
"""The first line that names the delimiter to Excel; it is no row."""
_MULTIBYTE = re.compile(
    rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
"""A character of UTF-8. A shorter part of one is in Windows-1252 an accented letter before a mark,
as in ``José…``. 0xC2 is Â, which begins no-break spaces and signs that are lost without harm."""
_LONGEST_CELL = 1 << 20
"""Characters; the default of the csv module is 131,072. A quote that is never closed does not read
the whole file."""


@dataclass(frozen=True)
class Dialect:
    """How a table of text was written."""

    encoding: str
    """A codec of Python for the bytes after the byte order mark."""
    mark: bytes
    """The byte order mark at the start; empty if there is none."""
    delimiter: str
    first_line: str
    """A line ``sep=;`` above the table, with its end; empty if there is none."""


def dialect_of(
    begin: bytes,
    what: str,
    *,
    is_whole: bool = False,
    delimiter: str = "",
    is_header: Callable[[Sequence[str]], bool] | None = None,
) -> Dialect:
    """The dialect of a table that begins with these bytes; ``SAMPLE`` of them are enough.

    ``is_whole`` says that nothing follows. ``delimiter`` is that of the format, as the tab is of
    TSV; otherwise it is what the line ``sep=`` names, or that of ``DELIMITERS`` with which
    ``is_header`` accepts the first row, or with which the first rows have the same number of
    cells, two or more.

    Raises DataError naming ``what`` if the encoding is unknown.
    """
    encoding, mark = encoding_of(begin, what, is_whole=is_whole)
    text = begin[len(mark) :].decode(encoding, "ignore")
    named = _SEP.match(text)
    if named:
        return Dialect(encoding, mark, delimiter or named[1], named[0])
    return Dialect(
        encoding, mark, delimiter or _delimiter_of(text, is_header, is_whole=is_whole), ""
    )


def byte_order_mark(begin: bytes) -> tuple[bytes, str]:
    """The byte order mark that text begins with, and its encoding; UTF-8 where there is none."""
    found = (each for each in BYTE_ORDER_MARKS.items() if begin.startswith(each[0]))
    return next(found, (b"", "utf-8"))


def encoding_of(begin: bytes, what: str, *, is_whole: bool = False) -> tuple[str, bytes]:
    """The encoding of text that begins with these bytes, and its byte order mark.

    UTF-16 without a mark is known by its NULs, if at least a third of its characters are ASCII.
    Other bytes are UTF-8 if they can be, and read as Windows-1252 if they look like it: no UTF-8
    among them, and few letters outside ASCII. Raises DataError for what is none of these.
    """
    mark, encoding = byte_order_mark(begin)
    if mark:
        return encoding, mark

    # Without a mark UTF-16 is valid UTF-8 in which nearly every second byte is a NUL.
    found = [
        encoding
        for first, encoding in enumerate(("utf-16-be", "utf-16-le"))
        if 3 * begin[first::2].count(0) > len(begin[first::2])
    ]
    if len(found) == 1:
        return found[0], b""
    if 0 in begin:
        raise DataError(
            f"{what} has a NUL, so it is neither UTF-8 nor in an encoding of 8 bits",
            hint="convert the file if it is UTF-16, for example: iconv -f UTF-16LE -t UTF-8",
        )

    try:
        codecs.getincrementaldecoder("utf-8")().decode(begin, final=is_whole)
    except UnicodeDecodeError as error:
        if _looks_western(begin):
            return _WESTERN, b""
        line = begin.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{what}, line {line}: not UTF-8 (0x{begin[error.start]:02x}, {error.reason}), and not"
            " surely in another encoding",
            hint=TO_UTF_8,
        ) from None
    return "utf-8", b""


def _looks_western(content: bytes) -> bool:
    try:
        text = content.decode(_WESTERN)
    except UnicodeDecodeError:
        return False  # five bytes stand for nothing

    # Damaged UTF-8 and UTF-8 of which a part was written in another encoding have such pairs.
    if _MULTIBYTE.search(content):
        return False
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(not letter.isascii() for letter in letters)
    return foreign <= _MOST_FOREIGN_LETTERS * len(letters)


def _delimiter_of(
    text: str, is_header: Callable[[Sequence[str]], bool] | None, *, is_whole: bool
) -> str:
    def likelihood(delimiter: str) -> tuple[bool, bool, float, int]:
        rows = _first_rows(text, delimiter, is_whole=is_whole)
        width = len(rows[0]) if rows else 0
        alike = sum(len(row) == width for row in rows) / max(1, len(rows))
        is_named = bool(rows) and is_header is not None and is_header(rows[0])
        return is_named, width > 1, alike, width

    return max(DELIMITERS, key=likelihood)  # of equals the first


def _first_rows(text: str, delimiter: str, *, is_whole: bool) -> list[list[str]]:
    """The first rows that are whole and not blank; none if the text is no such table."""
    reader = csv_reader(io.StringIO(text, newline=""), delimiter)
    try:
        rows = list(itertools.islice(reader, _ROWS_COMPARED + 1))
    except csv.Error:
        return []
    if len(rows) > 1 and not is_whole:
        rows.pop()
    return [row for row in rows if row]


class CsvRows(Iterator[list[str]], Protocol):
    """The rows of CSV as the csv module reads them."""

    @property
    def line_num(self) -> int:
        """The lines that were read."""
        ...


def csv_reader(lines: Iterable[str], delimiter: str, *, strict: bool = False) -> CsvRows:
    """The rows of CSV, whose cells have at most 2^20 characters. Raises csv.Error."""
    # The limit is one of the whole process, so nobody else may set it.
    csv.field_size_limit(_LONGEST_CELL)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


_PAIRS = (
    ("source", "target"),
    ("src", "tgt"),
    ("src", "trg"),
    ("source text", "target text"),
    ("source sentence", "target sentence"),
    ("source segment", "target segment"),
    ("src text", "tgt text"),
    ("input", "output"),
    ("input text", "target text"),
    ("input text", "output text"),
    ("original", "translation"),
    ("source", "translation"),
    ("text", "translation"),
    ("sentence", "translation"),
)
"""Names of both columns that tools and people use, source first, as ``_plain`` leaves them."""
_MORE_LANGUAGES = (
    "afr afrikaans amh amharic armenian asm assamese aze azerbaijani bel belarusian bos "
    "bosnian bre breton burmese castellano català ceb cebuano ckb dansk deutsch eesti epo "
    "español esperanto euskara farsi fil filipino français frisian fry gaeilge galego "
    "georgian guj gujarati hau hausa hrvatski ibo igbo italiano jav javanese kan kannada kaz "
    "kazakh khm khmer kin kinyarwanda kir kmr kur kurdish kyrgyz lao lat latin latviešu "
    "lietuvių ltz luxembourgish luxemburgish magyar mal malagasy malay malayalam maltese "
    "mandarin mar marathi mlg mlt mon mongolian nederlands nep nepali norsk occitan oci odia "
    "ori oriya ory pan pashto plt polski português punjabi pus quechua română shqip sin "
    "sindhi sinhala slovene slovenčina slovenščina snd som somali srpski suomi svenska swa "
    "swahili swh tagalog tajik tat tatar tel telugu tgk tgl tibetan tigrinya tir tuk turkmen "
    "türkçe uig uyghur uzb uzbek welsh wol wolof xho xhosa yid yiddish yor yoruba zul zulu "
    "íslenska čeština ελληνικά български русский српски українська עברית العربية فارسی हिन्दी "
    "ไทย ქართული 中文 日本語 한국어"
)
"""Other languages by their codes of three letters (ISO 639-3), and names in their own language."""
_LANGUAGE_NAMES = LANGUAGE_WORDS.union(_MORE_LANGUAGES.split())
_NOT_SURELY = NOT_SURELY_LANGUAGES.union(("arm", "geo", "mac", "may"))
"""Codes of languages that count only where there is no other column."""
_BESIDE_LANGUAGES = words_in("text sentence string segment source target src tgt trg")
"""Words that stand beside a language in the name of a column, such as ``sentence_eng_Latn``."""
_SCRIPT_OR_REGION = re.compile(r"[a-z]{2}|[a-z]{4}|\d{3}")


def pair_columns(names: Sequence[str]) -> tuple[int, int] | None:
    """The positions of source and target among the names of a table's columns; None if unclear.

    Case, spaces, underscores and hyphens in names do not matter. A pair of usual names comes first
    (``source`` and ``target``, ``src`` and ``tgt``, ``input`` and ``output``); otherwise two
    languages, by their codes or names, of which the first is the source. Of several such columns
    none is chosen.
    """
    plain = [_plain(name) for name in names]
    for pair in _PAIRS:
        if all(plain.count(name) == 1 for name in pair):
            return plain.index(pair[0]), plain.index(pair[1])

    languages = [
        column
        for column, name in enumerate(plain)
        if _is_language(name) and (len(plain) == 2 or name not in _NOT_SURELY)
    ]
    if len(languages) != 2 or plain[languages[0]] == plain[languages[1]]:
        return None
    return languages[0], languages[1]


def _plain(name: str) -> str:
    # Composed, as the names above are; a combining mark that is left belongs to its letter.
    composed = unicodedata.normalize("NFC", name.casefold())
    words = "".join(
        each if each.isalnum() or unicodedata.category(each)[0] == "M" else " " for each in composed
    )
    return " ".join(words.split())


def _is_language(plain: str) -> bool:
    words = [word for word in plain.split() if word not in _BESIDE_LANGUAGES]
    return (
        0 < len(words) <= 3
        and words[0] in _LANGUAGE_NAMES
        and all(_SCRIPT_OR_REGION.fullmatch(word) for word in words[1:])
    )
