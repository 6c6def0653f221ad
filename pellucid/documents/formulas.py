"""Formulas of TeX in a text, which a program such as MathJax shows, and what only looks so."""

import html
import re
from collections.abc import Iterator

from pellucid.documents.html_tokens import Token

_FORMULA = re.compile(
    r"\$\$(?P<double>[^$]{1,2000})\$\$"
    r"|(?<![\w$\\])\$(?P<dollar>(?![\s$])(?:[^$\n]{0,300}?[^\s$\\]))\$(?![\w$])"
    r"|(?<!\\)\\\((?P<round>(?:(?!\\[()]).){1,500})\\\)"
    r"|(?<!\\)\\\[(?P<square>(?:(?!\\[\[\]]).){1,2000})\\\]"
    r"|\\begin\{(?P<name>(?:equation|align|alignat|gather|multline|eqnarray|displaymath|math|cases"
    r"|array|split|[bpvBV]?matrix)\*?)\}(?:(?!\\begin|\\end).){1,2000}\\end\{(?P=name)\}",
    re.DOTALL,
)
_SIGN = re.compile(r"[\\^_=<>+*/|(){}0-9−-]|\A\s*[A-Za-z](?:'|,\s*[A-Za-z])*\s*\Z")
"""A sign of a formula, or a variable alone."""
_SURE_SIGN = re.compile(r"\\[A-Za-z]|[\^_=<>+]")
"""A sign of a formula and of no price, where a dollar may be one."""
_PROSE = re.compile(
    r"(?<!\\)(?<![^\W\d_])[^\W\d_]{2,}[,;:]?\s+(?:[^\W\d_]{1,2}\s+)?[^\W\d_]{3,}"
    r"|(?<!\\)(?<![^\W\d_])[^\W\d_]{3,}[,;:]?\s+[^\W\d_]{2,}|[\u3040-\u9fff\uac00-\ud7af]{2,}"
)
"""Two words, which a formula has only in the argument of a command."""
_BRACE = re.compile(r"([{}])")


def divided_at_formulas(token: Token) -> Iterator[Token]:
    """A text as texts and the formulas between them, each of which is one mark."""
    has_signs = "\\" in token.raw or token.raw.count("$") > 1
    return token.divided(
        (found, Token("alone", found[0], "tex", html.unescape(found[0])))
        for found in (_FORMULA.finditer(token.raw) if has_signs else ())
        if _is_formula(found)
    )


def _is_formula(found: re.Match[str]) -> bool:
    """Whether what stands between the signs of a formula is one, and no text."""
    if found["name"]:
        return True
    inner = html.unescape(found[found.lastgroup or 0])
    sign = _SURE_SIGN if found["dollar"] else _SIGN
    return sign.search(inner) is not None and not is_prose(inner)


def is_prose(formula: str) -> bool:
    """Whether what stands between the signs of a formula is a text."""
    depth, outside = 0, []
    for part in _BRACE.split(formula):
        if part in ("{", "}"):
            depth = max(0, depth + (1 if part == "{" else -1))
        elif not depth:
            outside.append(part)
    return _PROSE.search(" {} ".join(outside)) is not None
