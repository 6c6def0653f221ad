"""The settings at the top of a Markdown page, of which a reader sees the title and a few more."""

import json
import re
import tomllib

from pellucid.core.errors import DataError
from pellucid.documents.strings import Strings, read_json, read_yaml

SHOWN = (
    *("title", "subtitle", "description", "summary", "abstract", "excerpt", "tagline"),
    *("linkTitle", "sidebar_label", "pagination_label", "nav_title", "short_title"),
    *("Title", "Subtitle", "Description", "Summary", "Abstract"),
)
"""The settings that the usual generators show to readers: those of Jekyll, Hugo and its Docsy,
Docusaurus, VitePress, MkDocs, Pandoc, Quarto and Pelican, whose fields may begin with a capital."""
_NAMES = "|".join(SHOWN)
_TOML = re.compile(
    rf"^[ \t]*(?:{_NAMES})[ \t]*=[ \t]*"
    r"""("(?!"")(?:[^"\\\n]|\\.)*"|'(?!'')[^'\n]*')(?=[ \t]*(?:#.*)?$)""",
    re.MULTILINE,
)
_FIELD = re.compile(rf"^(?:{_NAMES}):[ \t]*(\S.*?)[ \t\r]*$(?!\n[ \t]+\S)", re.MULTILINE)
"""A setting of one line."""


def _line_settings(source: str, *, is_toml: bool) -> Strings:
    """Settings of TOML, or fields without a line around them: the shown ones that are one line."""

    def source_of(raw: str, value: str, _: int) -> str:
        """The source of a string."""
        if not is_toml:
            return " ".join(value.split())
        is_literal = raw.startswith("'") and "'" not in value and value.isprintable()
        # A string of JSON is one of TOML too.
        return f"'{value}'" if is_literal else json.dumps(value, ensure_ascii=False)

    settings = Strings(source, "utf-8", source_of)
    for found in (_TOML if is_toml else _FIELD).finditer(source):
        value = found[1]
        if is_toml:
            try:
                value = tomllib.loads(f"value = {value}")["value"]
            except tomllib.TOMLDecodeError:
                continue
        settings.add(*found.span(1), value)
    return settings


def read_settings(source: str) -> Strings | None:
    """The settings as a document of their own; None for those that cannot be read, which stay."""
    if source.startswith("+++"):
        return _line_settings(source, is_toml=True)
    try:
        if source.startswith("{"):
            return read_json(source.encode(), "the settings", SHOWN, only_known=False)
        if source.startswith("---"):
            return read_yaml(source.encode(), "the settings", SHOWN, only_known=False)
    except DataError:
        return None
    return _line_settings(source, is_toml=False)
