"""Text that is not translated: addresses, placeholders of programs, and numbers on request."""

import re
from collections.abc import Sequence

from pellucid.documents.segments import Alone, Close, Open, Piece, Segment

_URL = (
    r"(?:(?:https?|ftp|file)://|www\.|mailto:|tel:)[^\s<>\"'“”„«»]*[^\s<>\"'“”„«».,;:!?)\]}…。，]"
)
# Begins where no letter is before it: else every letter of a long word would be tried.
_EMAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
_BRACES = (
    r"\{\{[^{}\n]{0,200}\}\}"  # {{ name }} of Mustache, Jinja, Vue, Angular
    r"|[$#%@]\{[^{}\n]{0,200}\}"  # ${name} of shells and JavaScript, %{name} of Ruby
    # {name} and {0:.2f} of Python, C# and ICU; a plural with parts of its own stays whole
    r"|\{(?:[^{}\n]{0,200}|[^{}]{0,500}(?:\{[^{}]{0,500}\}[^{}]{0,500}){1,20})\}"
)
_PRINTF = (
    r"%\([A-Za-z_]\w{0,60}\)[-+ 0#]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]"  # %(name)s
    r"|%(?:\d{1,2}\$)?[-+0#]*(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?(?:hh|h|ll|l|L|q|j|z|t)?"
    r"(?:[ds]|[iouxXeEfFgGaAcpn@](?![A-Za-z]))"  # %s, %1$d, %.2f, %@
    r"|%\d{1,2}(?!\d)(?=[\s.,;:!?)'\"]|$)(?<!\d%\d)"  # %1 of Qt
)
_BULLET = r"(?P<bullet>(?m:^)[-–—*•·▪◦‣○●→](?=\s))"
_FOOTNOTE = r"\[\^[^\]\s]{1,60}\]"
_NUMBER = r"(?<![\w.,])[+-]?\d+(?:[.,:/'’\u00a0\u202f]\d+)*(?!\w)"

_PATTERN = re.compile("|".join((_URL, _EMAIL, _BRACES, _PRINTF, _BULLET, _FOOTNOTE)))
_PATTERN_WITH_NUMBERS = re.compile("|".join((_PATTERN.pattern, _NUMBER)))
_LONGEST = 20_000
"""Characters between two marks that are searched; a paragraph has some hundreds."""


def protect(segment: Segment, *, keep_numbers: bool) -> tuple[Segment, dict[int, str]]:
    """The segment with marks for what is not translated, and the text of each of these marks.

    Their numbers lie below those of ``OUTERMOST``, so that they meet none of the format's.
    """
    pattern = _PATTERN_WITH_NUMBERS if keep_numbers else _PATTERN
    pieces: list[Piece] = []
    kept: dict[int, str] = {}

    for piece in segment.pieces:
        if not isinstance(piece, str):
            pieces.append(piece)
            continue
        at = 0
        for found in pattern.finditer(piece, 0, _LONGEST):
            # A percent sign after a number is a percentage, whatever letter follows it.
            if found[0][0] == "%" and piece[: found.start()].rstrip(" \u00a0\u202f")[-1:].isdigit():
                continue
            end = _with_brackets(piece, found)
            number = -2 - len(kept)
            kept[number] = piece[found.start() : end]
            # The dash before a line is no word of it: no model has to read it.
            reads = "" if found.lastgroup == "bullet" else kept[number]
            pieces += [piece[at : found.start()], Alone(number, reads)]
            at = end
        pieces.append(piece[at:])

    return Segment(tuple(piece for piece in pieces if piece != "")), kept


def _with_brackets(text: str, found: re.Match[str]) -> int:
    """Where a match ends, with the brackets after it that close one of its own: ``.../Foo_(bar)``.

    A bracket that was opened before an address is not part of it.
    """
    end = found.end()
    if text[end : end + 1] == ")":
        unclosed = found[0].count("(") - found[0].count(")")
        while unclosed > 0 and text[end : end + 1] == ")":
            end, unclosed = end + 1, unclosed - 1
    return end


def unprotect(pieces: Sequence[Piece], kept: dict[int, str]) -> Segment:
    """The pieces with their kept texts again instead of marks, and texts side by side joined."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Alone) and piece.number in kept:
            piece = kept[piece.number]
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif isinstance(piece, Open | Close | Alone) or piece:
            joined.append(piece)
    return Segment(tuple(joined))
