"""The encoding of an HTML file: what it names in its first bytes, as browsers read that."""

import codecs
import re

from pellucid.core.errors import DataError
from pellucid.documents.html_parser import PlacedParser

_CODECS = frozenset(
    (
        *("ascii", "utf-8", "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6"),
        *("iso8859-7", "iso8859-8", "iso8859-10", "iso8859-13", "iso8859-14", "iso8859-15"),
        *("iso8859-16", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp866", "cp874"),
        *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257"),
        *("cp1258", "gbk", "gb18030", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"),
    )
)
"""Encodings of WHATWG's Encoding Standard, which keep the bytes of ASCII, so that a file can be
read before it is decoded. Others of Python, such as UTF-7, are not safe to read from strangers."""
_READ_AS = {
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    "gb2312": "gbk",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    # A file that could be read as far as this name is not in UTF-16.
    **dict.fromkeys(("utf-16", "utf-16-le", "utf-16-be"), "utf-8"),
}
"""The encoding that browsers use in place of a named one, by the same standard."""
_LABEL = re.compile(r"[A-Za-z0-9][\w.:+-]{0,39}", re.ASCII)
_IN_CONTENT = re.compile(r"""charset\s*=\s*["']?([^\s"';]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(r"""<\?xml\s[^>]{0,200}?\sencoding\s*=\s*["']([^"'<>]{0,40})["']""")
CONVERT = "iconv -f {} -t UTF-8 converts it; then change its <meta charset> to utf-8"
"""The hint for an encoding that cannot be used."""


def encoding_of(data: bytes, what: str) -> str:
    """The encoding that a file names in its first bytes, as HTML's standard looks for it; UTF-8 if
    it names none.

    Raises DataError for one that is not supported: in UTF-8 its text might be read as something
    else.
    """
    head = data[:1024].decode("latin-1")
    found = _MetaReader(head)
    found.read()
    in_xml = _XML_ENCODING.match(head)
    label = (found.charset or (in_xml[1] if in_xml else "")).strip()
    if not _LABEL.fullmatch(label):
        return "utf-8"  # none, or the variable of a template

    try:
        name = codecs.lookup(label).name
    except LookupError:
        name = ""
    name = _READ_AS.get(name, name)
    if name not in _CODECS:
        raise DataError(
            f"{what} is in the encoding {label}, which is not supported",
            hint=CONVERT.format(label),
        )
    return name


class _MetaReader(PlacedParser):
    """Finds ``<meta charset>`` and its older form."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.charset = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta" and not self.charset:
            values = {name: value or "" for name, value in attrs}
            named = _IN_CONTENT.search(values.get("content", ""))
            self.charset = values.get("charset", "") or (named[1] if named else "")
