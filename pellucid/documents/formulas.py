"""Formulas of TeX, and text between signs that only look like theirs."""

import re

_PROSE = re.compile(
    r"(?<!\\)(?<![^\W\d_])[^\W\d_]{2,}[,;:]?\s+(?:[^\W\d_]{1,2}\s+)?[^\W\d_]{3,}"
    r"|(?<!\\)(?<![^\W\d_])[^\W\d_]{3,}[,;:]?\s+[^\W\d_]{2,}|[\u3040-\u9fff\uac00-\ud7af]{2,}"
)
"""Two words, which a formula has only in the argument of a command."""
_BRACE = re.compile(r"([{}])")


def is_prose(formula: str) -> bool:
    """Whether what stands between the signs of a formula is a text."""
    depth, outside = 0, []
    for part in _BRACE.split(formula):
        if part in ("{", "}"):
            depth = max(0, depth + (1 if part == "{" else -1))
        elif not depth:
            outside.append(part)
    return _PROSE.search(" {} ".join(outside)) is not None
