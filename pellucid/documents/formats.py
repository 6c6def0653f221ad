"""Reads a document of any format."""

import dataclasses
from typing import assert_never

from pellucid.core.errors import DataError
from pellucid.documents.access_keys import AccessKeyDocument
from pellucid.documents.app_strings import AndroidDocument, read_apple_strings, read_properties
from pellucid.documents.books import BookDocument
from pellucid.documents.catalogs import XliffDocument
from pellucid.documents.containers import LARGEST_FILE, check_size
from pellucid.documents.gettext_files import PoDocument
from pellucid.documents.html_files import HtmlFile
from pellucid.documents.markdown import MarkdownDocument
from pellucid.documents.messages import MessageDocument
from pellucid.documents.names import TABLES, WITH_MESSAGES, Format
from pellucid.documents.office import SLIDES, WORD, OfficeDocument
from pellucid.documents.opendocument import OpenDocument
from pellucid.documents.plain import TextDocument
from pellucid.documents.segments import Document, Languages
from pellucid.documents.strings import read_json, read_yaml
from pellucid.documents.subtitles import SubtitleDocument
from pellucid.documents.tables import TableDocument
from pellucid.text.languages import UNKNOWN


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """Options that only some formats use."""

    columns: tuple[str, ...] = ()
    """In a table, the columns to translate, by name or by number from 1. In JSON and YAML, the keys
    whose strings are translated; all if there is none."""
    target_language: str = ""
    """The code of the language of the translation, such as ``ru``. Of po: its plural forms, if the
    file does not say them. Of messages: the forms that are added. Of html, epub, docx, pptx, odt,
    xliff, json and yaml: the language that they say they are in, and the direction of the text."""
    guard_cells: bool = False
    """Whether cells of a table that a spreadsheet may run as a formula get an apostrophe."""
    source_language: str = ""
    """The code of the language of the source. Of json and yaml: a key that holds all others and is
    this language becomes the one of the translation. Of docx, pptx and odt: so do its names. Of
    xliff: that it has another one is noted. Of subtitles and tables: the code page of a file that
    is not UTF-8."""


def read_document(
    data: bytes, kind: Format, what: str, options: ReadOptions | None = None
) -> Document:
    """A document, ready to be translated. ``what`` names it in errors.

    Raises DataError for one that is damaged, too large, encrypted or unsafe.
    """
    check_size(data, what, LARGEST_FILE)
    options = options or ReadOptions()
    codes = (options.source_language, options.target_language)
    both = Languages(*("" if code == UNKNOWN else code for code in codes))
    try:
        document = _read(data, kind, what, options, both)
        if kind not in WITH_MESSAGES:
            return document
        if kind not in TABLES:
            document = AccessKeyDocument(document)
        return MessageDocument(document, both.target)
    except RecursionError:
        raise DataError(f"{what} has parts nested too deeply to be read") from None


def _read(data: bytes, kind: Format, what: str, options: ReadOptions, both: Languages) -> Document:
    match kind:
        case "txt":
            return TextDocument(data, what)
        case "md":
            return MarkdownDocument(data, what)
        case "html":
            return HtmlFile(data, what, both)
        case "docx":
            return OfficeDocument(data, what, WORD, both)
        case "pptx":
            return OfficeDocument(data, what, SLIDES, both)
        case "odt":
            return OpenDocument(data, what, both)
        case "epub":
            return BookDocument(data, what, both)
        case "srt" | "vtt" | "ass":
            return SubtitleDocument(data, what, kind, both.source)
        case "csv" | "tsv":
            return TableDocument(
                data,
                what,
                options.columns,
                is_tsv=kind == "tsv",
                guard_cells=options.guard_cells,
                language=both.source,
            )
        case "po":
            return PoDocument(data, what, both.target)
        case "xliff":
            return XliffDocument(data, what, both)
        case "json":
            return read_json(data, what, options.columns, languages=both)
        case "yaml":
            return read_yaml(data, what, options.columns, languages=both)
        case "properties":
            return read_properties(data, what)
        case "strings":
            return read_apple_strings(data, what)
        case "android":
            return AndroidDocument(data, what)
        case _:
            assert_never(kind)
