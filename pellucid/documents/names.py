"""The formats by name and by the end of a file's name, and what is refused by name."""

from typing import Literal, get_args

from pellucid.core.errors import DataError

Format = Literal[
    "txt",
    "md",
    "html",
    "docx",
    "pptx",
    "odt",
    "epub",
    "srt",
    "vtt",
    "ass",
    "po",
    "xliff",
    "csv",
    "tsv",
    "json",
    "yaml",
    "properties",
    "strings",
    "android",
]
FORMATS: tuple[Format, ...] = get_args(Format)

ENDINGS: dict[str, Format] = {
    **{name: name for name in FORMATS if name != "android"},
    "text": "txt",
    "markdown": "md",
    "mdx": "md",
    "qmd": "md",
    "rmd": "md",
    "mdown": "md",
    "htm": "html",
    "xhtml": "html",
    "shtml": "html",
    # as Trados, memoQ and Memsource name their XLIFF
    **dict.fromkeys(("xlf", "sdlxliff", "mqxliff", "mxliff"), "xliff"),
    "pot": "po",
    "ssa": "ass",
    "arb": "json",
    "yml": "yaml",
    "xml": "android",
}
"""Formats by the end of a file's name. ``mkd`` is left out: corpora of Macedonian end so."""
PACKED = frozenset(("docx", "pptx", "odt", "epub"))
"""Formats that are zip archives."""
TABLES = frozenset(("csv", "tsv"))
"""Formats whose cells a spreadsheet may run."""
WITH_COLUMNS = TABLES | {"json", "yaml"}
"""Formats of which columns or keys are chosen."""
WITH_MESSAGES = WITH_COLUMNS | {"po", "xliff", "properties", "strings"}
"""Formats whose strings may have plural and select forms in them."""
_MACROS = "holds macros, which are programs: save it without them"
_BY_PANDOC = "is not read, and its marks would be lost line by line: pandoc converts it to md"
_REFUSED = {
    **dict.fromkeys(
        ("rst", "org", "tex", "textile", "mediawiki", "docbook", "dbk", "fb2"), _BY_PANDOC
    ),
    **dict.fromkeys(
        ("ttml", "dfxp", "smi", "sbv", "sub"),
        "is not read, and its times would be lost line by line: Subtitle Edit converts it to srt",
    ),
    "tmx": "holds texts with their translations: export those to translate as xliff",
    "dita": "is XML that is not read: a tool for DITA converts it to xliff or html",
    "eml": "is an e-mail with its parts: save its text as txt or html",
    **dict.fromkeys(
        ("jsonl", "ndjson"), "has an object in each line: jq -r .text writes the texts"
    ),
    **dict.fromkeys(("adoc", "asciidoc"), "is not read: downdoc converts it to md"),
    "ipynb": "is a notebook: jupyter nbconvert --to markdown writes it as md",
    "mhtml": "is a page with its pictures: save it as html alone",
    "fodt": "is not read: save it as odt",
    "pdf": "is set in lines and pages, without paragraphs: export the original as docx or html",
    "doc": "is in the format of Word before 2007: save it as docx",
    "rtf": "is not read: save it as docx",
    "ott": "is a template: save it as odt",
    "ods": "is not read: save the sheet as csv",
    "odp": "is not read: save it as pptx",
    "dotx": "is a template: save it as docx",
    "potx": "is a template: save it as pptx",
    "ppsx": "is a show: save it as pptx",
    "ppt": "is in the format of PowerPoint before 2007: save it as pptx",
    "xls": "is in the format of Excel before 2007: save it as csv",
    "xlsx": "is not read: save the sheet as csv",
    "docm": f"{_MACROS}, as docx",
    "dotm": f"{_MACROS}, as docx",
    "pptm": f"{_MACROS}, as pptx",
    "potm": f"{_MACROS}, as pptx",
    "xlsm": "holds macros, which are programs: save the sheet as csv",
    "stringsdict": "is not read: Xcode exports its texts as xliff",
    "xcstrings": "is not read: Xcode exports its texts as xliff",
    "ftl": "is not read: write its messages into a json file by their names",
    **dict.fromkeys(
        ("resx", "resw"), "is not read: resx2po of the Translate Toolkit converts it to po"
    ),
    "ts": "of Qt is not read: lconvert converts it to po or xliff; --format lines reads Tsonga",
    "pages": "is in a format of Pages: export it as docx",
    "key": "is in a format of Keynote: export it as pptx",
    "mobi": "is in a format of Kindle: convert it to epub",
    "azw3": "is in a format of Kindle: convert it to epub",
}
"""By ending, what is wrong with a file that people have, and what to do."""
LINES = frozenset(("txt", "text", ""))
"""Endings of documents that ``pellucid translate`` reads line by line all the same, unless a format
is named."""


def ending_of(name: str) -> str:
    """The end of a file's name in lower case, without the dot."""
    _, dot, ending = name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    return ending.lower() if dot else ""


def is_plain(name: str) -> bool:
    """Whether a file of this name is plain text."""
    return ENDINGS.get(ending_of(name)) == "txt"


def is_document(name: str) -> bool:
    """Whether a file of this name is read as a document, or refused as one."""
    ending = ending_of(name)
    return ending not in LINES and (ending in ENDINGS or ending in _REFUSED)


def format_of(name: str) -> Format:
    """The format of a file by its name. Raises DataError for one that is not read."""
    ending = ending_of(name)
    if ending in _REFUSED:
        raise DataError(f"a .{ending} file {_REFUSED[ending]}")
    if ending not in ENDINGS:
        raise DataError(
            f"the format of {name!r} is not known"
            + (f" by its end, .{ending}" if ending else ", as its name has no end"),
            hint=f"--format names it: {', '.join(FORMATS)}",
        )
    return ENDINGS[ending]
