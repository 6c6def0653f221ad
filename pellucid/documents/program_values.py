"""Values of strings that programs write for themselves, by their look and by their keys."""

import re

IDENTIFIER = re.compile(
    r"true|false|null|v?\d+(?:\.\d+)+(?:[-+.][\w.]+)?"  # v1.2.3-beta
    r"|\.{0,2}(?:[/\\](?:[\w.*-]|:\w|\{\w+\})+)+/?"  # ./a, /b/{id}
    r"|[\w-]+(?:/[\w-]+)*/[\w-]+\.\w+"  # src/main.py
    r"|(?:application|audio|font|image|text|video)/[\w.+-]+(?:; ?[\w-]+=[\w.+-]+)*"
    r"|\*?\.[a-z]\w{1,4}|\^\S.*\$"  # .pdf, ^[a-z ]+$
    r"|[\w-]+(?:\.[A-Za-z]\w+)+"  # image.png, app.title
    r"|[A-Za-z]\w*_\w*"  # user_name
    r"|[a-z]+[A-Z]\w*"  # userName
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=\w*\d)[0-9a-f]{12,}"  # UUID, hash
    r"|(?=\D*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?:sha\d{3}-)?[A-Za-z0-9+/]{20,}={0,2}"  # base64
    r"|(?:async )?function\s*\w*\([\w, ]*\)\s*\{.*\}"
    r"|\d+(?:\.\d+)?(?:px|r?em|pt|vh|vw|ms|s|kb|mb|gb)"  # 1.5rem
    r"|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|[a-z]{2,3}[-_][A-Z]{2}|[a-z]\w*\([\w., %#-]*\)"  # en-US, rgb(1, 2, 3)
    r"|(?i:utf-?(?:8|16(?:le|be)?)|iso-8859-\d{1,2}|windows-125\d|us-ascii)"
    r"|(?:(?:fa[bslrd]?|fa-\w+|mdi|glyphicon|btn) )*(?:fa|mdi|glyphicon|btn|icon)(?:-[a-z0-9]+)+"
    # MMM d, yyyy
    r"|(?=[^']*(?:yy|YY|MM|dd|DD|HH|hh|mm))"
    r"(?:(?:y{1,4}|Y{2,4}|M{1,5}|L{1,5}|d{1,4}|D{1,4}|[Ee]{1,5}|H{1,2}|h{1,2}|m{1,2}|s{1,2}"
    r"|S{1,6}|A|a|[Zz]{1,4}|X{1,3})(?:[ ,./:-]+|T|'[^']{1,20}'|\Z)){2,}",
    re.ASCII,
)
"""Values that programs write and nobody reads as text."""


_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*|[A-Z]\w+(?:/[A-Z]\w+)+", re.ASCII)
"""``red-house``, ``Europe/Paris``."""
_CODE = re.compile(r"(?=\S*[\d/#?=&_])[\w/#?=&%@~{}.:+-]+", re.ASCII)
"""``ABC123``, ``u-17``, ``#top``: what stands below ``id`` or ``href`` and is no word."""
_TYPES = re.compile(
    r"array|binary|bool(?:ean)?|button|checkbox|date(?:-?time(?:-local)?)?|double|dropdown|email"
    r"|enum|file|float|function|hidden|html|image|input|int(?:eger|32|64)?|ipv[46]|json|markdown"
    r"|module|multiselect|null|number|object|password|radio|range|reset|select|string|submit|tel"
    r"|text(?:area)?|time(?:stamp)?|toggle|uri|url|uuid|Feature(?:Collection)?|(?:Multi)?Point"
    r"|(?:Multi)?LineString|(?:Multi)?Polygon|GeometryCollection"
)
"""Types of data, of fields in forms and of GeoJSON."""
_SQL = (
    r"\s*(?:SELECT\s.+\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s"
    r"|WITH\s+\w+\s+AS\s*\(|(?:CREATE|ALTER|DROP)\s+(?:TABLE|INDEX|VIEW)\s).+"
)
_SURE_SQL = re.compile(rf"(?=.*[a-z*]){_SQL}", re.DOTALL)
"""With its words in capitals and its names in small letters, so that it is no text."""
_PATTERN = re.compile(r"\S*(?:\\[dwsbDWSB]|\[[^\]\s]+\][*+?{]?|\.[*+])\S*")
_BY_KEY: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("dir", "icon", "lang", "locale", "timezone"), _NAME),
    **dict.fromkeys(
        ("id", "slug", "href", "src", "uuid", "sku"),
        re.compile(f"{_NAME.pattern}|{_CODE.pattern}", re.ASCII),
    ),
    # of classes a single word, or several if they look like those of CSS
    **dict.fromkeys(
        ("class", "className"),
        re.compile(rf"{_NAME.pattern}|(?=.*[\d_-])[\w:/-]+(?: [\w:/-]+)*", re.ASCII),
    ),
    **dict.fromkeys(("type", "format"), _TYPES),
    "rel": re.compile(r"[a-z]+(?:[ -][a-z]+)*"),
    "target": re.compile(r"_\w+"),
    "method": re.compile(r"GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"),
    "align": re.compile(r"left|right|center|justify|start|end"),
    **dict.fromkeys(("currency", "country"), re.compile(r"[A-Z]{2,3}")),
    "style": re.compile(r"(?:\s*[a-z-]+\s*:[^:;]+;)*\s*[a-z-]+\s*:[^:;]+;?\s*"),
    **dict.fromkeys(("sql", "query"), re.compile(_SQL, re.IGNORECASE | re.DOTALL)),
    **dict.fromkeys(("pattern", "regex", "regexp"), _PATTERN),
}
"""The form of a value below a key that is one for a program: the address of a page, its language,
the type of a field. Another value below the same key is a text."""
_ENDS = {"_id": "id", "Id": "id", "ID": "id", "_slug": "slug", "Icon": "icon", "_icon": "icon"}
"""Ends of keys that mean the same."""
_MARKED_FOR_READERS = re.compile(r"[A-Z][a-z]*_[a-z]+|/[a-z]+|true|false|null")


def is_key(source: str) -> bool:
    """Whether a message that a program marks for translation is the key of a text or another value
    that nobody reads, and not a word with the sign of GTK before the letter of its key, ``E_xit``,
    what stands behind a price, ``/month``, or the word "true".
    """
    return IDENTIFIER.fullmatch(source) is not None and not _MARKED_FOR_READERS.fullmatch(source)


def is_of_program(value: str, key: str) -> bool:
    """Whether a value is one that nobody reads, by itself or with its key."""
    if IDENTIFIER.fullmatch(value) or _SURE_SQL.fullmatch(value):
        return True
    known = _BY_KEY.get(key)
    if known is None:
        known = next((_BY_KEY[name] for end, name in _ENDS.items() if key.endswith(end)), None)
    return known is not None and known.fullmatch(value) is not None
