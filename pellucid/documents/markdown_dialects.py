"""The additions of Markdown's dialects to CommonMark, as far as they are no text.

Generators of sites have settings at the top, containers, directives, shortcodes, formulas and
attributes, each with a syntax of its own. Whole lines of them are blanked, so that every line keeps
its number and the parser sees only text; within a line one rule of the parser keeps them.
"""

import bisect
import dataclasses
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from pellucid.core.errors import MissingExtraError
from pellucid.documents.segments import Kind

KEPT = "pellucid_kept"
"""The type of a token for what is within a line and is no text."""

_SETTINGS = {"---": re.compile(r"(?:---|\.\.\.)[ \t]*"), "+++": re.compile(r"\+\+\+[ \t]*")}
"""How settings begin, of YAML and of TOML, and the line that ends them."""
_FIELD = re.compile(r"[A-Za-z][\w-]{0,30}:(?:[ \t].*)?|[ \t]+\S.*")
_USUAL_FIELD = re.compile(
    r"(?:title|date|authors?|tags|slug|category|template|layout|status|lang|summary):", re.I
)
"""A setting that pages without a line around their settings have, as Pelican's and MkDocs' do."""
_MOST_FIELDS = 60

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_CONTAINER = re.compile(r"([ \t>]*)(:{3,}|/{3,})[ \t]*(.*)$")
_DIRECTIVE = re.compile(r"\{([A-Za-z][\w:.-]{0,60})\}[ \t]*(.*)$")
_OPTION = re.compile(r"[ \t>]*:[\w-]{1,40}:.*$")
_NAMED = re.compile(r"[\w-]{1,40}(?:\[(.*)\]|[ \t]*\{[^{}]*\}|[ \t]*\|[ \t]*(.*)|[ \t]+(.*)|())$")
"""A container's name, and its title: ``note[Title]``, ``tip Title``, ``note | Title``."""
_OF_TEXT = frozenset(
    (
        *("admonition", "attention", "caution", "danger", "error", "hint", "important", "note"),
        *("seealso", "tip", "todo", "warning", "versionadded", "versionchanged", "deprecated"),
        *("dropdown", "card", "tab-item", "tab-set", "grid", "grid-item", "grid-item-card", "div"),
        *("margin", "sidebar", "topic", "epigraph", "pull-quote", "aside", "details", "solution"),
        *("exercise", "proof", "theorem", "definition", "lemma", "example", "figure-md", "rubric"),
    )
)
"""Directives of MyST with text inside; that of the others is code, a file or a table."""
_TAB = re.compile(r'([ \t]*)===[!+]*[ \t]+"(.+)"[ \t]*$')
_ADMONITION = re.compile(r'[ \t>]*(?:!!!|\?\?\?\+?)[^"]*"(.+)"[ \t]*$')
_ALONE = re.compile(
    r"[ \t>]*(?:"
    r"\[TOC\]|\[\[_?TOC_?\]\]|\$\{toc\}"
    r"|\{:?[ ]*[.#:][^{}]*\}"  # {: .class}, {#id}, {:toc}
    r"|\{\{[<%].*[%>]\}\}|\{%.*%\}"
    r"|\([\w.:-]{1,100}\)="  # a target of MyST
    r"|::[A-Za-z][\w-]{0,40}(?:\[[^\[\]]*\])?(?:\{[^{}]*\})?"  # ::include{file=a.md}
    r"|\*\[[^\]]{1,60}\]:.*"  # an abbreviation
    r"|%%.*%%|\{/\*.*\*/\}"
    r"|\\[A-Za-z]{2,40}\*?(?:\[[^\[\]]*\]|\{[^{}]*\})*"  # a command of LaTeX
    r"|import[ \t]+(?:[\w${},* \t]+[ \t]from[ \t]+)?['\"][^'\"]+['\"];?"
    r"|export[ \t]+(?:default|const|let|var|function|async|class)\b.*"
    r")[ \t]*$",
    re.IGNORECASE,
)
"""Lines that hold nothing else."""
_OPENED = re.compile(r"[ \t>]*\{\{([<%])(?!.*[%>]\}\})")
_CODE_BLOCK = re.compile(
    r"[ \t>]*(?:\{%-?[ ]*(highlight|comment|mermaid|code|math|katex)\b"
    r"|\{\{[<%][ ]*(highlight|mermaid|math|katex)\b)"
)
_MATH = re.compile(r"[ \t>]*(?:(\$\$)|(\\\[)|\\begin\{([A-Za-z]{1,20}\*?)\})")
_LONGEST_BLOCK = 500
"""Lines of a formula or a shortcode."""

_INLINE = re.compile(
    r"\$\$[^$]{1,1000}\$\$"
    r"|(?<![\w$\\])\$(?![\s$]|\d[\d.,]*\s+[A-Za-z]{2,})(?:[^$\n]{0,300}?[^\s$\\])\$(?![\w$])"
    r"|\\\((?P<round>[^\n]{1,300}?)\\\)|\\\[(?P<square>.{1,1000}?)\\\]"
    r"|!?\[\[[^\[\]\n]{1,200}\]\](?!\()|\[TOC\]|@\[[\w-]{1,40}\]\([^()\n]{0,300}\)"
    r"|\{\{[<%].{1,1000}?[>%]\}\}|\{\{[^{}\n]{1,300}\}\}|\{%[^\n]{1,300}?%\}|\{/\*.{1,500}?\*/\}"
    r"|\{[\w:+-]{1,40}\}`{1,2}[^`\n]{1,200}`{1,2}"  # a role of MyST
    r"|(?P<attributes>\{:?[ ]*[.#:][^{}\n]{1,200}\}(?:\{:?[ ]*[.#:][^{}\n]{1,200}\})?"
    r"|(?<=[\])`*_])\{[\w-]{1,40}=[^{}\n]{1,200}\})"
    # A source of Pandoc, a comment and the name of a block of Obsidian
    r"|(?P<silent>\[[^\[\]\n]{0,60}(?<![\w.])@[\w{][^\[\]\n]{0,300}\](?![(\[{:])"
    r"|(?<!\w)%%[^%\n]{1,300}%%|(?<=\s)\^[A-Za-z0-9-]{1,40}(?=[ \t]*(?:\n|\Z)))"
    # A tag of MDX with code in its attributes
    r"|(?P<tag></?[A-Za-z][\w.]*(?=[^<>\n]{0,300}=\{)"
    r"(?:[^<>{}\"']|\"[^\"]{0,200}\"|'[^']{0,200}'|\{(?:[^{}]|\{[^{}]*\}){0,300}\}){0,300}>)",
    re.DOTALL | re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?P<script>(?<=\w)~(?![\s~])[^\s~]{1,12}~(?!~)|(?<=\w)\^(?![\s^\[])[^\s^]{1,12}\^)"
    r"|(?P<mark>==(?=[^\s=])[^=\n]{1,500}(?<!\s)==)"
    r"|(?P<note>\^\[[^\[\]\n]{1,500}\])"
    r"|(?P<span>\[[^\[\]\n]{1,500}\]\{[^{}\n]{1,200}\})"
)
"""Marks around a text: ``H~2~O``, ``m^2^``, ``==marked==``, ``^[a note]``, ``[text]{.class}``."""
PAIR = "pair"
"""The markup of a link's token that stands for such marks."""
_KINDS: dict[str, Kind] = {"script": "script", "note": "badge"}
_BEGINS = frozenset("$\\![{%^~=<@")
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")
"""A word, which a text between escaped brackets has and a formula does not."""


@dataclasses.dataclass(frozen=True)
class Title:
    """A title in a line that is no text otherwise."""

    line: int
    start: int
    end: int


def parser() -> Any:
    """A parser for CommonMark with tables and what sites and READMEs have beside them."""
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.admon import admon_plugin
        from mdit_py_plugins.deflist import deflist_plugin
        from mdit_py_plugins.footnote import footnote_plugin
    except ModuleNotFoundError as error:
        missing = "mdit-py-plugins" if "mdit" in f"{error.name}" else "markdown-it-py"
        raise MissingExtraError(missing, "documents", "Markdown") from None

    found = MarkdownIt("commonmark", {"maxNesting": 40}).enable(["table", "strikethrough"])
    found.use(deflist_plugin).use(admon_plugin)
    found.use(footnote_plugin, inline=False, move_to_end=False, always_match_refs=True)
    found.inline.ruler.before("escape", KEPT, _keep)
    return found


def _keep(state: Any, silent: bool) -> bool:
    """The rule of the parser for what is within a line and is no text."""
    if state.src[state.pos] not in _BEGINS:
        return False

    if found := _PAIR.match(state.src, state.pos, state.posMax):
        if not silent:
            _add_pair(state, found)
        state.pos = found.end()
        return True

    found = _INLINE.match(state.src, state.pos, state.posMax)
    if found is None or _WORDS.search(found["round"] or found["square"] or ""):
        return False

    if not silent:
        token = state.push("html_inline" if found["tag"] else KEPT, "", 0)
        token.content = found[0]
        token.info = found.lastgroup or ""
    state.pos = found.end()
    return True


def _add_pair(state: Any, found: re.Match[str]) -> None:
    """Add the tokens of two marks and of what is between them."""
    raw, name = found[0], found.lastgroup or ""
    stop = raw.rindex("]{") if name == "span" else len(raw) - (2 if name == "mark" else 1)
    start = 2 if name in ("mark", "note") else 1
    token = state.push("link_open", "", 1)
    token.markup, token.content, token.info = PAIR, raw[:start], raw[stop:]
    token.meta["kind"] = _KINDS.get(name, "format")

    begin, last = state.pos, state.posMax
    state.pos, state.posMax = begin + start, begin + stop
    state.md.inline.tokenize(state)
    state.pos, state.posMax = begin, last
    state.push("link_close", "", -1)


def settings_end(source: str) -> int:
    """Where the text begins after settings at the top: of YAML, TOML or JSON, or fields alone."""
    lines = source.split("\n")
    at = 0
    first = lines[0].rstrip("\r \t")
    if first in _SETTINGS:
        at = len(lines[0]) + 1
        for line in lines[1:]:
            if _SETTINGS[first].fullmatch(line.rstrip("\r")):
                return at + len(line.rstrip("\r"))
            at += len(line) + 1
        return 0
    if first == "{":
        for line in lines:
            if line.rstrip("\r \t") == "}":
                return at + 1
            at += len(line) + 1
        return 0

    fields = []
    for line in lines[: _MOST_FIELDS + 1]:
        if not line.strip():
            break
        fields.append(line.rstrip("\r"))
        at += len(line) + 1
    is_fields = 0 < len(fields) <= _MOST_FIELDS and all(map(_FIELD.fullmatch, fields))
    return max(0, at - 1) if is_fields and any(map(_USUAL_FIELD.match, fields)) else 0


def without_marks(lines: Sequence[str]) -> tuple[list[str], list[Title]]:
    """The lines with empty ones for those that are no text, and the titles that were in them."""
    return _Scanner(lines).read()


class _Scanner:
    """Goes through the lines once."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)
        self._titles: list[Title] = []
        # Where each closing of a formula stands, so that none is looked for twice.
        self._ends: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            for end in re.findall(r"\$\$|\\\]|\\end\{[A-Za-z]{1,20}\*?\}|[>%]\}\}", line):
                self._ends.setdefault(end, []).append(number)

    def read(self) -> tuple[list[str], list[Title]]:
        number = 0
        while number < len(self._lines):
            number = self._read_line(number)
        return self._lines, self._titles

    def _read_line(self, number: int) -> int:
        """Read what begins in a line; the number of the line after it."""
        line = self._lines[number]

        if found := _FENCE.match(line):
            return self._fence(number, found[1], found[2])
        if found := _CONTAINER.match(line):
            return self._container(number, found)

        if found := _TAB.match(line):
            # Read as an admonition: what follows is indented text, and no code.
            self._titles.append(Title(number, found.start(2), found.end(2)))
            self._lines[number] = f"{found[1]}!!! tab"
        elif found := _ADMONITION.match(line):
            # The parser knows these, and not all forms of their titles.
            self._titles.append(Title(number, found.start(1), found.end(1)))
        elif found := _MATH.match(line):
            end = found[1] or ("\\]" if found[2] else f"\\end{{{found[3]}}}")
            if end not in line[found.end() :]:
                return self._blank_to(number, self._end_after(end, number))
        elif found := _CODE_BLOCK.match(line):
            name = found[1] or found[2]
            closing = re.compile(rf"\{{(?:%-?|\{{[<%])[ ]*(?:end|/){name}\b")
            stop = min(len(self._lines), number + _LONGEST_BLOCK)
            ends = (n for n in range(number, stop) if closing.search(self._lines[n]))
            return self._blank_to(number, next(ends, number))
        elif found := _OPENED.match(line):
            return self._blank_to(
                number, self._end_after("%}}" if found[1] == "%" else ">}}", number)
            )
        elif _ALONE.match(line):
            self._lines[number] = ""

        return number + 1

    def _end_after(self, end: str, number: int) -> int | None:
        """The line in which a block that begins in another one ends; None if there is none."""
        places = self._ends.get(end, [])
        at = bisect.bisect_right(places, number)
        if at == len(places) or places[at] > number + _LONGEST_BLOCK:
            return None
        return places[at]

    def _blank_to(self, number: int, last: int | None) -> int:
        for each in range(number, number if last is None else last + 1):
            self._lines[each] = ""
        return number + 1 if last is None else last + 1

    def _fence(self, number: int, fence: str, info: str) -> int:
        """A fence of code, which the parser knows too, or a directive with text in it."""
        closing = re.compile(rf"[ \t>]*{fence[0]}{{{len(fence)},}}[ \t]*$")
        directive = _DIRECTIVE.match(info)
        last = number + 1
        while last < len(self._lines) and not closing.match(self._lines[last]):
            last += 1
        if directive is None or directive[1] not in _OF_TEXT:
            return last + 1
        self._open(number, self._lines[number].rindex(directive[2]), directive[2])
        if last < len(self._lines):
            self._lines[last] = ""
        return self._options(number + 1)

    def _container(self, number: int, found: re.Match[str]) -> int:
        marker, rest, line = found[2], found[3].rstrip(), self._lines[number]

        if directive := _DIRECTIVE.match(rest):
            if directive[1] not in _OF_TEXT:
                closing = re.compile(rf"[ \t>]*:{{{len(marker)},}}[ \t]*$")
                stop = min(len(self._lines), number + _LONGEST_BLOCK)
                ends = (n for n in range(number + 1, stop) if closing.match(self._lines[n]))
                return self._blank_to(number, next(ends, number))

            self._open(number, line.rindex(directive[2]), directive[2])
            return self._options(number + 1)

        title = ""
        if named := _NAMED.match(rest):
            title = named[1] or named[2] or named[3] or ""
        elif rest and not rest.startswith("{"):
            return number + 1  # a text that begins with colons

        self._open(number, line.rindex(title) if title else 0, title)
        return number + 1

    def _open(self, number: int, start: int, title: str) -> None:
        """Blank the line that opens a container, and note its title."""
        if title.strip():
            self._titles.append(Title(number, start, start + len(title.rstrip())))
        self._lines[number] = ""

    def _options(self, number: int) -> int:
        """Blank the options of a directive; the line after them."""
        while number < len(self._lines) and _OPTION.match(self._lines[number]):
            self._lines[number] = ""
            number += 1
        return number


def anchors_of(title: str) -> set[str]:
    """The names that generators give to a heading: those of GitHub, and of Python-Markdown."""
    lower = title.strip().lower()
    of_github = re.sub(r"[^\w\- ]", "", lower).replace(" ", "-")
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    of_python = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
    return {of_github, of_python} - {""}
