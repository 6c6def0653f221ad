"""The settings at the top of a Markdown page, of which a reader sees the title and a few more."""

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Literal

from pellucid.core.errors import DataError
from pellucid.documents.segments import Document, Segment
from pellucid.documents.strings import JsonDocument, Strings, YamlDocument

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


class LineSettings:
    """Settings of TOML, or fields without a line around them: the shown ones that are one line."""

    notes: Sequence[str] = ()

    def __init__(self, source: str, kind: Literal["toml", "fields"]) -> None:
        self._is_toml = kind == "toml"
        self._strings = Strings(source, "utf-8")
        for found in (_TOML if self._is_toml else _FIELD).finditer(source):
            value = found[1]
            if self._is_toml:
                try:
                    value = tomllib.loads(f"value = {value}")["value"]
                except tomllib.TOMLDecodeError:
                    continue
            self._strings.add(*found.span(1), value)
        self.segments = self._strings.segments

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The settings with other strings."""

        def source(raw: str, value: str, _: int) -> str:
            """The source of a string."""
            if not self._is_toml:
                return " ".join(value.split())
            is_literal = raw.startswith("'") and "'" not in value and value.isprintable()
            # A string of JSON is one of TOML too.
            return f"'{value}'" if is_literal else json.dumps(value, ensure_ascii=False)

        return self._strings.written(translated, source)


def read_settings(source: str) -> Document | None:
    """The settings as a document of their own; None for those that cannot be read, which stay."""
    if source.startswith("+++"):
        return LineSettings(source, "toml")
    try:
        if source.startswith("{"):
            return JsonDocument(source.encode(), "the settings", SHOWN, only_known=False)
        if source.startswith("---"):
            return YamlDocument(source.encode(), "the settings", SHOWN, only_known=False)
    except DataError:
        return None
    return LineSettings(source, "fields")
