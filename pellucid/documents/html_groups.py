"""The tokens of HTML as groups, each of which is a sentence or more.

An element that is not translated is one token there, as is one that holds texts of its own.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pellucid.core.texts import words_in
from pellucid.documents.formulas import divided_at_formulas
from pellucid.documents.html_roles import READ_AS_WORDS
from pellucid.documents.html_rules import (
    BLOCKS,
    DEEPEST,
    ENDED_BY,
    HELD,
    KEEPS_LINES,
    OPAQUE,
    TagRules,
    implied_ends,
)
from pellucid.documents.html_tokens import Token

_NEVER = frozenset(("script", "style", "svg", "math", "object", "iframe", "xmp"))
"""Elements whose content is no text of the page, whatever they say of it."""
_BLANK_LINE = re.compile(r"(?<=\S)[ \t]*\r?\n[ \t]*\r?\n\s*(?=\S)")
_PARAGRAPHS = words_in("p h1 h2 h3 h4 h5 h6 td th caption a button label")
"""Elements that are one paragraph: a blank line in one is white space, as templates leave it."""
_CHOICE = re.compile(r"<input\s[^>]*\btype\s*=\s*[\"']?(?:radio|checkbox)\b", re.IGNORECASE)
"""A button or box between the choices of a form."""
_READINGS = frozenset(("rb", "rt", "rtc", "rp"))
"""Parts of a ``ruby``, whose end tags may be left out within a sentence."""
_DEEPEST_HELD = 8
"""Elements within each other that are one mark and hold texts to translate."""


def groups(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Tokens that are divided at blocks, and at inline tags without a partner."""
    group: list[Token] = []
    for token in tokens:
        if token.kind == "other":
            yield from _paired(group)
            yield [token]
            group = []
        else:
            group.append(token)
    yield from _paired(group)


def _paired(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Divide tokens at the tags that have no partner among them."""
    partners: set[int] = set()
    opened: list[int] = []
    for number, token in enumerate(tokens):
        if token.kind == "start":
            opened.append(number)
        elif token.kind == "end":
            # The innermost open element of this name; those inside it that are not closed have no
            # partner. Far ones are not looked for, which would take quadratic time.
            for depth in range(1, min(len(opened), DEEPEST) + 1):
                if tokens[opened[-depth]].name == token.name:
                    partners |= {number, opened[-depth]}
                    del opened[-depth:]
                    break

    group: list[Token] = []
    depth = 0
    for number, token in enumerate(tokens):
        is_tag = token.kind in ("start", "end")
        is_divided = is_tag and number not in partners
        if is_tag and not is_divided:
            if token.kind == "start":
                depth += 1
                is_divided = depth > DEEPEST
            else:
                is_divided = depth > DEEPEST
                depth -= 1
        if is_divided:
            yield from _whole(group)
            yield [token]
            group = []
        else:
            group.append(token)
    yield from _whole(group)


def _whole(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens, divided further if a division took the partner of a tag from it."""
    if not tokens:
        return
    depth = 0
    for token in tokens:
        depth += (token.kind == "start") - (token.kind == "end")
        if depth < 0:
            break
    if depth == 0:
        yield tokens
        return

    # Rare: only where elements overlap. Each text is read by itself.
    for token in tokens:
        yield [token]


def with_opaque(tokens: Iterable[Token], rules: TagRules, depth: int) -> Iterator[Token]:
    """The tokens, with each element as one that is not translated, or has texts of its own.

    ``depth`` counts the elements around them that are one.
    """
    around: list[str] = []
    lines = 0

    for each in _with_elements(tokens, lambda token: _is_one_mark(token, rules), around, rules):
        if isinstance(each, _Kept):
            one = _joined(each.tokens, rules, depth, is_closed=each.is_closed)
            yield dataclasses.replace(one, kind="other") if each.is_endless else one
            continue
        if each.name in KEEPS_LINES:
            lines = max(0, lines + (each.kind == "start") - (each.kind == "end"))
        read = _of_sentence(each, lines > 0 or rules.keeps_lines, rules)
        if read.kind == "text" and not rules.is_xml:
            is_one = not _PARAGRAPHS.isdisjoint(around)
            for part in (read,) if is_one else _divided_at_blank_lines(read):
                yield from divided_at_formulas(part) if part.kind == "text" else (part,)
        else:
            yield read


def _with_elements(
    tokens: Iterable[Token],
    is_whole: Callable[[Token], bool],
    around: list[str],
    rules: TagRules,
) -> "Iterator[Token | _Kept]":
    """The tokens, with each element that ``is_whole``, by its start tag, as one; ``around`` holds
    the elements that are open around a token, outside of these.
    """
    kept: _Kept | None = None
    for token in tokens:
        if kept is not None:
            if not kept.is_ended_before(token, around):
                kept.add(token)
                if kept.is_closed:
                    yield kept
                    kept = None
                continue
            # Its end tag was left out, and this token is not in it.
            yield kept
            kept = None

        if token.kind == "start" and is_whole(token):
            kept = _Kept(token, around, rules)
            continue
        _follow(token, around, rules)
        yield token

    if kept is not None:
        kept.is_endless = True
        yield kept


def _divided_at_blank_lines(token: Token) -> Iterator[Token]:
    """A text as its paragraphs: blank lines divide them in what WordPress and others store."""
    found = _BLANK_LINE.finditer(token.raw) if not token.keeps_lines else ()
    return token.divided((each, Token("alone", each[0], breaks=True)) for each in found)


def _follow(token: Token, opened: list[str], rules: TagRules) -> None:
    """Add an element that begins to those that are open, and take out those that end there."""
    if token.kind == "end" and token.name in opened[-DEEPEST:]:
        while opened.pop() != token.name:
            pass
    if token.kind in ("start", "alone") and not rules.is_xml:
        del opened[len(opened) - implied_ends(opened[-DEEPEST:], token.name) :]
    if token.kind == "start":
        opened.append(token.name)


def _is_one_mark(token: Token, rules: TagRules) -> bool:
    """Whether an element is one mark, with all that is in it."""
    if token.translates is False:
        return True
    if token.translates and token.name in READ_AS_WORDS:
        return False
    return rules.is_opaque(token.name) or (not rules.is_xml and token.name in HELD)


class _Kept:
    """The tokens of one element, as they come, up to its end."""

    def __init__(self, token: Token, around: list[str], rules: TagRules) -> None:
        """``around`` are the elements that are open; those that end where it begins go out."""
        _follow(token, around, rules)
        around.pop()
        self.name = token.name
        self.tokens = [token]
        self.is_closed = False
        self.is_endless = False
        """Whether the tokens end before it does."""
        self._rules = rules
        self._within: list[str] = []
        """The elements that are open in it."""

    def is_ended_before(self, token: Token, around: Sequence[str]) -> bool:
        """Whether the element ends without an end tag: another begins, or one around it ends."""
        if self._rules.is_xml:
            return False
        may_lack_end = self.name in ENDED_BY
        within = self._within[-DEEPEST:]
        if token.kind == "end":
            # Of one whose end tag was forgotten, a block around it is the end.
            is_own = token.name == self.name or token.name in within
            is_end = may_lack_end or token.name in BLOCKS
            return is_end and not is_own and token.name in around[-DEEPEST:]
        opened = [*around[-DEEPEST:], self.name, *within] if may_lack_end else ()
        return len(self._within) < implied_ends(opened[-DEEPEST:], token.name)

    def add(self, token: Token) -> None:
        """Add a token that is in it."""
        self.tokens.append(token)
        is_own = token.name == self.name
        if token.kind == "end" and is_own and self.name not in self._within[-DEEPEST:]:
            self.is_closed = True
        elif is_own or not self._rules.is_xml:
            _follow(token, self._within, self._rules)


def _joined(
    tokens: Sequence[Token], rules: TagRules, depth: int, *, is_closed: bool = True
) -> Token:
    """An element as one token."""
    first = tokens[0]
    name = first.name
    raw = "".join(token.raw for token in tokens)
    for token in tokens:
        token.keeps_lines = name in KEEPS_LINES
    is_kept = first.translates is False or rules.is_opaque(name)
    is_inline = rules.is_inline(name) and (is_closed or name in _READINGS)

    inner: list[Token | Sequence[Token]] = []
    if depth < _DEEPEST_HELD:
        if not is_kept:
            inner = [first, tokens[1:]]
        elif first.translates is False and any(token.translates for token in tokens[1:]):
            inner = _with_translated(tokens, rules)
    reads = "".join(token.text for token in tokens[1:] if token.kind == "text")
    is_read = is_kept and (name in READ_AS_WORDS or (rules.is_inline(name) and name not in OPAQUE))
    if inner or first.role == "reference" or not is_read:
        reads = ""
    if is_kept and first.attributes and not inner:
        rest = (dataclasses.replace(token, attributes=(), own={}) for token in tokens[1:])
        inner = [dataclasses.replace(first, own={}), *rest]
    return Token("alone" if is_inline else "other", raw, name, reads, inner=inner)


def _with_translated(tokens: Iterable[Token], rules: TagRules) -> list[Token | Sequence[Token]]:
    """The tokens of an element that is not translated, with a list for each element in it that
    says it is.
    """

    def is_read(token: Token) -> bool:
        return token.translates is True and token.name not in _NEVER

    return [
        each.tokens if isinstance(each, _Kept) else dataclasses.replace(each, attributes=())
        for each in _with_elements(tokens, is_read, [], rules)
    ]


def _of_sentence(token: Token, keeps_lines: bool, rules: TagRules) -> Token:
    """The token by what it is in a sentence."""
    if token.kind == "text":
        token.keeps_lines = token.keeps_lines or keeps_lines
        return token

    is_inline = rules.is_inline(token.name) and not (
        token.divides and token.name not in rules.inline
    )
    if token.kind == "alone" and token.name in ("!", "?"):
        return token
    if token.kind == "alone" and (
        is_inline or (rules.is_void(token.name) and token.name not in (*BLOCKS, *rules.divides))
    ):
        token.text = ""
        token.breaks = token.name == "br" or _CHOICE.match(token.raw) is not None
    elif token.kind in ("start", "end") and is_inline:
        token.text = ""
    else:
        return dataclasses.replace(token, kind="other")
    return token
