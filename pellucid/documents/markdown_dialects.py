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
from pellucid.core.texts import words_in
from pellucid.documents.formulas import is_prose
from pellucid.documents.segments import Kind
from pellucid.text.scripts import is_of_word

KEPT = "pellucid_kept"
"""The type of a token for what is within a line and is no text."""

_ENDS = {
    "---": re.compile(r"(?:---|\.\.\.)[ \t]*"),
    "+++": re.compile(r"\+\+\+[ \t]*"),
    "{": re.compile(r"\}[ \t]*"),
}
"""How settings begin, of YAML, TOML and JSON, and the line that ends them."""
_SETTING = {
    "---": re.compile(r"""["']?\w[\w .-]{0,60}["']?[ \t]*:(?:\s|$)|\{[{%]"""),
    "+++": re.compile(r"""\[|["']?\w[\w.-]{0,60}["']?[ \t]*="""),
    "{": re.compile(r"""[ \t]*(?:"[^"]{1,60}"[ \t]*:|\}[ \t]*$)"""),
}
"""The line that settings begin with; a text between two rules has none."""
_FIELD = re.compile(r"[A-Za-z][\w-]{0,30}:(?:[ \t].*)?|[ \t]+\S.*")
_USUAL_FIELD = re.compile(
    r"(?:(title|slug)|date(?=:.*\d)|authors?|tags|category|template|layout|status|lang|summary):"
    r"([ \t]*\S+[ \t]*$)?",
    re.IGNORECASE,
)
"""A setting that pages without a line around their settings have, as Pelican's and MkDocs' do. A
title or a single word says that it is one; of the others, which a text may have too, two do."""
_MOST_FIELDS = 60

_CONTAINER = re.compile(r"([ \t>]*)(:{3,}|/{3,})[ \t]*(.*)$")
_DIRECTIVE = re.compile(r"\{([A-Za-z][\w:.-]{0,60})\}[ \t]*(.*)$")
_OPTION = re.compile(r"[ \t>]*:[\w-]{1,40}:.*$")
_RULE = re.compile(r"[ \t>]*---[ \t]*$")
"""The line around options that are written as YAML."""
_NAMED = re.compile(
    r"[\w-]{1,40}(?:\[(.*?)\]|[ \t]*\|[ \t]*(.*?)|[ \t]+([^{].*?)|())"
    r"(?<![ \t])(?:[ \t]*\{[^{}]*\})?$"
)
"""A container's name, and its title: ``note[Title]{.class}``, ``tip Title``, ``note | Title``."""
_TITLE_ATTRIBUTE = re.compile(
    r"[\w-]{0,40}(?:\[[^\[\]]*\])?[ \t]*"
    r"\{(?:[^{}\"']|\"[^\"]*\"|'[^']*'){0,300}?(?<![\w-])title=(?P<quote>[\"'])(?P<title>.+?)(?P=quote)"
)
"""The title of a container of Quarto or Pandoc, ``{.callout-note title="Title"}``."""
_TITLED = words_in(
    "admonition attention caution danger error hint important note seealso tip todo warning"
    " versionadded versionchanged deprecated versionremoved dropdown card tab-item grid-item-card"
    " sidebar topic margin aside details exercise proof theorem definition lemma axiom algorithm"
    " assumption conjecture corollary criterion observation property proposition remark example"
    " rubric centered table list-table epigraph pull-quote"
)
"""Directives of MyST with text in the line that opens them; others have a path or a name there."""
_OF_CODE = re.compile(
    r"(?:code|code-(?:block|cell)|sourcecode|highlight|(?:literal)?include|parsed-literal|raw|math"
    r"|eval-rst|csv-table|toctree|tableofcontents|contents|index|glossary|bibliography|tags"
    r"|productionlist|auto\w+|mermaid|graphviz|graph|digraph|plantuml|uml|tikz|plot|altair-plot"
    # Engines of Quarto, knitr and Jupyter
    r"|r|python3?|julia|bash|sh|zsh|shell|sql|ojs|observable|stan|dot|js|javascript|ts|typescript"
    r"|css|s[ac]ss|html|rcpp|rscript|cat|powershell|terminal|awk|gawk|sed|node|perl|php|psql"
    r"|mysql|ruby|scala|groovy|haskell|octave|matlab|maxima|sas|stata|c|cc|cpp|c\+\+|go|rust"
    r"|fortran(?:95)?|coffee|d3|ditaa|asy|lein|clojure|exec|verbatim|embed|targets|bslib|typst"
    r"|latex|json|yaml|xml|webr(?:-r)?|pyodide(?:-python)?|shinylive-\w+|glue(?:_sql)?"
    r"|bokeh-plot|doctest|test(?:code|setup|cleanup|output)|jupyter-\w+|ipython|iframe|image|video"
    r"|youtube|embed|math-macros|substitution|only-code|prompt|console|thebe-button)"
)
"""Directives of MyST without Markdown inside: code, data, formulas, lists of another syntax; and
cells of code."""
_CELL_OPTION = re.compile(r"[ \t>]*(?:#|//|--|%%?|/\*|;|\*|!)\|[ \t]")
"""The first line of a cell of code in Quarto, whatever its language: ``#| label: plot``."""
_OF_QUARTO = re.compile(r"^(?:format|execute|knitr|output|engine)[ \t]*:", re.MULTILINE)
"""A setting of pages whose code runs: of Quarto, or of R Markdown."""
_TAB = re.compile(r'([ \t]*)===[!+]*[ \t]+"(.+)"[ \t]*$')
_ADMONITION = re.compile(r'[ \t>]*(?:!!!|\?\?\?\+?)[^"]*"(.+)"[ \t]*$')
_ALONE = re.compile(
    r"[ \t>]*(?:"
    r"\[TOC\]|\[\[_?TOC_?\]\]|\$\{toc\}|</?>"  # <>: a fragment of MDX
    r"|\{:?[ ]*[.#:][^{}]*\}"  # {: .class}, {#id}, {:toc}
    r"|\{\{[<%](?:(?![%>]\}\}).)*[%>]\}\}|\{%(?:(?!%\}).)*%\}"
    r"|\([\w.:-]{1,100}\)="  # a target of MyST
    r"|::[A-Za-z][\w-]{0,40}(?:\[[^\[\]]*\])?(?:\{[^{}]*\})?"  # ::include{file=a.md}
    r"|\*\[[^\]]{1,60}\]:.*"  # an abbreviation
    r"|%%(?:(?!%%).)*%%|\{/\*(?:(?!\*/\}).)*\*/\}"
    r"|;?-{1,8}8<-{1,8}(?:[ \t].*)?"  # a snippet of PyMdown: --8<-- "file.md"
    r"|<<<[ \t]*@?[\w./~-]+\S*(?:[ \t]*\{[^{}]*\})?(?:[ \t]*\[[^\[\]]*\])?"  # of VitePress
    r"|!!![ \t]*include[ \t]*\([^()]*\)[ \t]*!!!|!include[ \t]+\S+|@import[ \t]+[\"'][^\"']+[\"'].*"
    r"|\\[A-Za-z]{2,40}\*?(?:\[[^\[\]]*\]|\{[^{}]*\})*"  # a command of LaTeX
    r")[ \t]*$",
    re.IGNORECASE,
)
"""Lines that hold nothing else."""
_MODULE = re.compile(
    r"(?:import[ \t]+(?:(?:[\w${},* \t]+[ \t]from[ \t]+)?['\"][^'\"]+['\"];?|[\w$, \t]*\{[^{}]*)"
    r"|export[ \t]+(?:\{[^{}]*(?:\}(?:[ \t]*from[ \t]*['\"].*|;)?)?|\*.*[ \t]from[ \t]*['\"].*)"
    r"|export[ \t]+(?:default[ \t]+)?(?:(?:const|let|var)[ \t]+[^=]+=.*|class\b[^.,;]*\{.*"
    r"|(?:async[ \t]+)?function\b[ \t]*\*?[ \t]*[\w$]*[ \t]*\((?:.*\{.*)?)"
    r"|export[ \t]+default[ \t]+(?:[\w$.]+;|[A-Z][\w$.]*|[\w$.]+\(.*|[({\[\"'`].*|.*=>.*))[ \t]*$"
)
"""A line of JavaScript in MDX, which has a sign of code behind its words."""
_SNIPPETS = re.compile(r"[ \t>]*-{1,8}8<-{1,8}[ \t]*$")
"""The line before and behind names of files, which PyMdown puts in their place."""
_PATH = re.compile(r"[ \t>]*(?:;?[ \t]*\S*)[ \t]*$")
_OPENED = re.compile(r"[ \t>]*\{\{([<%])(?!.*[%>]\}\})")
_CODE_BLOCK = re.compile(
    r"[ \t>]*(?:\{%-?[ ]*(highlight|comment|mermaid|code|math|katex)\b"
    r"|\{\{[<%][ ]*(highlight|mermaid|math|katex)\b)"
)
_MATH = re.compile(r"[ \t>]*(?:(\$\$)|(\\\[)|\\begin\{([A-Za-z]{1,20}\*?)\})")
_LABEL = re.compile(r"[ \t]*(?:\([\w.:-]{1,100}\)|\{[^{}]*\}|[.,;])?[ \t]*$")
"""The name of a formula, or a stop, behind its end."""
_LONGEST_BLOCK = 500
"""Lines of a formula or a shortcode."""
_CLOSING = re.compile(
    r"\$\$|\\\]|\\end\{[A-Za-z]{1,20}\*?\}|[>%]\}\}|^[ \t>]*(?P<colons>:{3,})[ \t]*$"
    r"|\{(?:%-?|\{[<%])[ ]*(?:end|/)(?P<name>highlight|comment|mermaid|code|math|katex)\b"
)
_DEEPEST = 20
"""Directives or tabs within each other, each of which the parser has to read again."""
_NOTHING = "<!---->"
"""A block without text, as the parser reads it."""

_IN_KEY = r"[A-Za-z0-9_\u00c0-\u024f]"
_CAPITAL = r"(?-i:[A-Z\u00c0-\u00de])"
_KEY = (
    r"(?:(?:fig|tbl|tab|sec|eqn?|lst|thm|lem|cor|prp|cnj|def|exm|exr|sol|rem|alg|app|chap?):"
    rf"(?={_IN_KEY}))?{_IN_KEY}"
    rf"(?:{_IN_KEY}|(?:[#+/-]|\\_)(?={_IN_KEY})"
    rf"|\.(?!{_CAPITAL})(?={_IN_KEY})|\.(?={_IN_KEY}{{1,40}}\d)"
    # The number of a source, or the server of a name: @doe:2020, @DBLP:conf/x/Doe20, @bob:chat.org
    rf"|:(?=(?:{_IN_KEY}|[/.-]){{0,60}}\d)|:(?={_IN_KEY}{{1,40}}\.{_IN_KEY}{{2}})){{0,100}}"
)
"""The key of a source or of a place: ``doe2020``, ``fig:one``. Words behind it that only a sign
divides from it are text: "@bob...great", "@bob:please", "@everyone.Please"."""
_INLINE = re.compile(
    r"\$\$[^$]{1,1000}\$\$"
    r"|(?<![\w$\\])\$(?P<dollar>(?![\s$]|\d[\d.,]*(?:\s|\s?/\s?)\s*[A-Za-z]{2,})"
    r"(?:[^$\n]{0,300}?[^\s$\\]))\$(?![\w$])"
    r"|\\\((?P<round>[^\n]{1,300}?)\\\)|\\\[(?P<square>.{1,1000}?)\\\]"
    # A command of LaTeX with what it applies to, and a reference of Pandoc or Quarto
    r"|(?<!\\)\\begin\{(?P<environment>[A-Za-z]{1,20}\*?)\}.{1,1000}?\\end\{(?P=environment)\}"
    r"|(?<!\\)\\[A-Za-z]{1,40}\*?"
    r"(?:\[[^\[\]\n]{0,300}\]|\{(?:[^{}\n]|\{[^{}\n]{0,300}\}){0,300}\}){1,9}"
    r"|(?<![\w@#&/.=?%+~-])-?@(?:\{[^{}\n]{1,200}\}|"
    rf"{_KEY})"
    r"|!?\[\[[^\[\]\n]{1,200}\]\](?!\()|\[TOC\]|@\[[\w-]{1,40}\]\([^()\n]{0,300}\)"
    r"|\{\{[<%].{1,1000}?[>%]\}\}|\{\{[^{}\n]{1,300}\}\}|\{%[^\n]{1,300}?%\}|\{/\*.{1,500}?\*/\}"
    r"|\{[\w:+-]{1,40}\}`{1,2}[^`\n]{1,200}`{1,2}"  # a role of MyST
    r"|(?P<attributes>\{:?[ ]*[.#:][^{}\n]{1,200}\}(?:\{:?[ ]*[.#:][^{}\n]{1,200}\})?"
    r"|(?<=[\])`*_])\{[\w-]{1,40}=[^{}\n]{1,200}\})"
    # A source of Pandoc, a comment and the name of a block of Obsidian
    r"|(?P<silent>\[[^\[\]\n]{0,60}(?<![\w.])@[\w{][^\[\]\n]{0,300}\](?![(\[{:])"
    r"|(?<!\w)%%[^%\n]{1,300}%%|(?<=\s)\^[A-Za-z0-9-]{1,40}(?=[ \t]*(?:\n|\Z)))"
    # A fragment of MDX, or a tag with code in its attributes
    r"|(?P<tag><>(?=.{0,1000}?</>)|</>|</?[A-Za-z][\w.]*(?=[^<>\n]{0,300}=\{)"
    r"(?:[^<>{}\"']|\"[^\"]{0,200}\"|'[^']{0,200}'|\{(?:[^{}]|\{[^{}]*\}){0,300}\}){0,300}>)",
    re.DOTALL | re.IGNORECASE,
)
_PAIR = re.compile(
    r"(?P<script>(?<=\w)~(?![\s~])[^\s~]{1,12}~(?!~)|(?<=\w)\^(?![\s^\[])[^\s^]{1,12}\^)"
    r"|(?P<mark>==(?=[^\s=])[^=\n]{1,500}(?<!\s)==)"
    r"|(?P<note>\^\[[^\[\]\n]{1,500}\])"
    r"|(?P<span>\[[^\[\]\n]{1,500}\]\{[^{}\n]{1,200}\})"
    r"|(?P<tex>(?<!\\)\\(?:emph|text(?:bf|it|sc|sf|rm|sl|md|up|normal)|underline|uline|enquote|mbox"
    r"|(?:href|textcolor|colorbox)\{[^{}\n]{0,300}\})\{[^{}\n]{1,500}\})"
    r"|(?P<texnote>(?<!\\)\\footnote\{[^{}\n]{1,500}\})"
)
"""Marks around a text: ``H~2~O``, ``m^2^``, ``==marked==``, ``^[a note]``, ``[text]{.class}``, and
commands of LaTeX with a text, ``\\emph{text}``."""
PAIR = "pair"
"""The markup of a link's token that stands for such marks."""
_KINDS: dict[str, Kind] = {"script": "script", "note": "badge", "texnote": "badge"}
_SHORTCODE = re.compile(
    r"\{\{[<%][ ]*(?P<hugo>[\w-]+)|\{%-?[ ]*(?!end)(?P<liquid>\w+)"
    r"|(?P<end>\{\{[<%][ ]*/|\{%-?[ ]*end)"
)
_IMPORTS = re.compile(r"^import\s[^\n]{1,200}\sfrom\s*['\"]", re.MULTILINE)
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?^[ \t]*\1", re.MULTILINE | re.DOTALL)
_TAG_START = re.compile(
    r"[ \t]*<(?:/?[A-Z][\w.]*|/?(?:div|section|details|figure|center))(?=[\s/>]|$)"
)
_TAG_LINES = re.compile(
    r"\s*<(?:/[\w.]+\s*|[\w.]+(?:\s+[\w:.-]+(?:=(?:\"[^\"]*\"|'[^']*'|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}))?"
    r"|\s+\{\.{3}[^{}]*\})*\s*/?)>\s*"
)
"""A tag of MDX, with nothing beside it."""
_TAG_TITLE = re.compile(
    r"(?<![\w-])(?:title|label|alt|description|caption|summary|subtitle|header|placeholder|aria-label)"
    r"=(?P<quote>[\"'])(?P<text>[^\"'{}<>]*[^\W\d_][^\"'{}<>]*)(?P=quote)"
)
_LONGEST_AROUND = 2_000
"""Characters of a text that a shortcode is around."""
_EXAMPLE = re.compile(r"@[\w-]{0,60}\)[ \t]")
_BEGINS = frozenset("$\\![{%^~=<@-")
_WORDS = re.compile(r"(?<!\\)(?<![^\W\d_])(?:[^\W\d_]{4,}|[\u3040-\u9fff\uac00-\ud7af]{2,})")
"""A word, which a text between escaped brackets has and a formula does not."""


@dataclasses.dataclass(frozen=True)
class Title:
    """A title in a line that is no text otherwise."""

    line: int
    start: int
    end: int
    quote: str = ""
    """The quotation mark on both of its sides."""


def parser(*, in_mdx: bool = False) -> Any:
    """A parser for CommonMark with tables and what sites and READMEs have beside them; MDX has no
    indented code.
    """
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
    return found.disable("code") if in_mdx else found


def _keep(state: Any, silent: bool) -> bool:
    """The rule of the parser for what is within a line and is no text."""
    if state.src[state.pos] not in _BEGINS:
        return False

    if _is_item(state.src, state.pos):
        return False

    if found := _PAIR.match(state.src, state.pos, state.posMax):
        if not silent:
            _add_pair(state, found)
        state.pos = found.end()
        return True

    found = _INLINE.match(state.src, state.pos, state.posMax)
    if (
        found is None
        or _WORDS.search(found["round"] or found["square"] or "")
        or is_prose(found["dollar"] or "")
    ):
        return False

    if not silent:
        token = state.push("html_inline" if found["tag"] else KEPT, "", 0)
        token.content = found[0]
        token.info = "silent" if _is_around(state.src, found) else found.lastgroup or ""
    state.pos = found.end()
    return True


def _is_item(source: str, place: int) -> bool:
    """Whether a name of Pandoc is the mark of an item: ``(@good) An example``."""
    if not _EXAMPLE.match(source, place):
        return False
    line = source[source.rfind("\n", 0, place) + 1 : place]
    return line.strip(" \t") == "("


def _is_around(source: str, found: re.Match[str]) -> bool:
    """Whether a shortcode begins or ends a text, as a tag does; others are read as a word."""
    code = _SHORTCODE.match(found[0])
    if code is None or code["end"]:
        return code is not None
    closing = f"/{code['hugo']}" if code["hugo"] else f"end{code['liquid']}"
    return source.find(closing, found.end(), found.end() + _LONGEST_AROUND) >= 0


def _add_pair(state: Any, found: re.Match[str]) -> None:
    """Add the tokens of two marks and of what is between them."""
    raw, name = found[0], found.lastgroup or ""
    stop = raw.rindex("]{") if name == "span" else len(raw) - (2 if name == "mark" else 1)
    start = 2 if name in ("mark", "note") else 1
    if name in ("tex", "texnote"):
        start = raw.rindex("{") + 1
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
    if first in _ENDS:
        filled = (line for line in lines[1:] if line.strip() and not line.startswith("#"))
        is_empty = (begin := next(filled, "")) and _ENDS[first].fullmatch(begin.rstrip("\r"))
        if not is_empty and not _SETTING[first].match(begin):
            return 0
        for line in lines:
            if at and _ENDS[first].fullmatch(line.rstrip("\r")):
                return at + len(line.rstrip("\r"))
            at += len(line) + 1
        return 0

    fields = []
    for line in lines[: _MOST_FIELDS + 1]:
        if not line.strip():
            break
        fields.append(line.rstrip("\r"))
        at += len(line) + 1
    is_fields = 0 < len(fields) <= _MOST_FIELDS and all(map(_FIELD.fullmatch, fields))
    usual = [found for found in map(_USUAL_FIELD.match, fields) if found]
    is_sure = len(usual) > 1 or any(found[1] or found[2] for found in usual)
    return max(0, at - 1) if is_fields and is_sure else 0


def has_code_cells(what: str, settings: str) -> bool:
    """Whether the cells of a page are code, as in Quarto, by its name or its settings."""
    return what.lower().endswith((".qmd", ".rmd")) or _OF_QUARTO.search(settings) is not None


def is_mdx(what: str, source: str) -> bool:
    """Whether a page is MDX, by its name or because it imports components, as in Docusaurus."""
    if what.lower().endswith(".mdx"):
        return True
    return bool(_IMPORTS.search(source) and _IMPORTS.search(_FENCED.sub("", source)))


def without_marks(
    lines: Sequence[str], *, cells_are_code: bool = False, in_mdx: bool = False
) -> tuple[list[str], list[Title]]:
    """The lines with empty ones for those that are no text, and the titles that were in them.

    With ``cells_are_code`` a block with a name in braces is code, as in Quarto. In MDX what is
    between the lines of two tags is Markdown, and no indented line is code.
    """
    scanner = _Scanner(lines, cells_are_code=cells_are_code, in_mdx=in_mdx)
    # Each time, what was within a directive or a tab is read by the parser as what it is.
    for _ in range(_DEEPEST):
        if not scanner.read():
            break
    return scanner.lines, sorted(scanner.shifted_titles(), key=lambda title: title.line)


def _margins(lines: Sequence[str]) -> list[int]:
    """The white space before each line that MDX does not count: that of the first line behind a
    tag, which a list in it must not be behind.
    """
    margins: list[int] = []
    margin, is_first = 0, False
    for line in lines:
        indent = len(line) - len(line.lstrip(" \t"))
        if _TAG_START.match(line):
            margin, is_first = 0, True
        elif is_first and line.strip():
            margin, is_first = indent, False
        margins.append(min(margin, indent))
    return margins


class _Scanner:
    """Goes through the lines that the parser does not take for code."""

    def __init__(self, lines: Sequence[str], *, cells_are_code: bool, in_mdx: bool) -> None:
        self._margins = _margins(lines) if in_mdx else [0] * len(lines)
        self.lines = [line[cut:] for line, cut in zip(lines, self._margins, strict=True)]
        self._cells_are_code = cells_are_code
        self._in_mdx = in_mdx
        self.titles: list[Title] = []
        self._blocks = parser(in_mdx=in_mdx)
        self._blocks.core.ruler.enableOnly(["normalize", "block"])
        self._is_read = [False] * len(self.lines)

        # Where each closing stands, and how many brackets are open: none is looked for twice.
        self._ends: dict[str, list[int]] = {}
        self._depths = [0]
        for number, line in enumerate(lines):
            for found in _CLOSING.finditer(line):
                end = found["name"] or (":::" if found["colons"] else found[0])
                self._ends.setdefault(end, []).append(number)
            opened, closed = (sum(map(line.count, brackets)) for brackets in ("([{", ")]}"))
            self._depths.append(self._depths[-1] + opened - closed)

    def shifted_titles(self) -> list[Title]:
        """The titles with their places in the lines as they were."""
        return [
            dataclasses.replace(
                each,
                start=each.start + self._margins[each.line],
                end=each.end + self._margins[each.line],
            )
            for each in self.titles
        ]

    def read(self) -> bool:
        """Read the lines that are no code; whether others may be code now, to be read again."""
        code = {
            token.map[0]: token
            for token in self._blocks.parse("\n".join(self.lines))
            if token.type in ("fence", "code_block")
        }
        again = False
        number = 0
        while number < len(self.lines):
            if number in code:
                again |= code[number].type == "fence" and self._read_fence(code[number])
                number = code[number].map[1]
            elif self._is_read[number]:
                number += 1
            else:
                was_tab = _TAB.match(self.lines[number])
                after = self._read_line(number)
                again |= was_tab is not None
                self._is_read[number:after] = [True] * (after - number)

                # A fence within what was blanked may have hidden the lines behind it.
                if any(n in code and code[n].map[1] > after for n in range(number + 1, after)):
                    return True
                number = after
        return again

    def _read_line(self, number: int) -> int:
        """Read what begins in a line; the number of the line after it."""
        line = self.lines[number]

        if found := _CONTAINER.match(line):
            return self._read_container(number, found)
        if self._in_mdx and (after := self._read_tag(number)) > number:
            return after

        if found := _TAB.match(line):
            # Read as an admonition: what follows is indented text, and no code.
            self.titles.append(Title(number, *found.span(2), '"'))
            self.lines[number] = f"{found[1]}!!! tab"
        elif found := _ADMONITION.match(line):
            # The parser knows these, and not all forms of their titles.
            self.titles.append(Title(number, *found.span(1), '"'))
        elif found := _MATH.match(line):
            end = found[1] or ("\\]" if found[2] else f"\\end{{{found[3]}}}")
            if end not in line[found.end() :]:
                return self._read_formula(number, found.end(), end, is_latex=bool(found[3]))
        elif found := _CODE_BLOCK.match(line):
            name = found[1] or found[2]
            closing = re.compile(rf"\{{(?:%-?|\{{[<%])[ ]*(?:end|/){name}\b.*?[%>]\}}{{1,2}}")
            last = self._end_after(name.lower(), number - 1)
            return self._blank_to(number, last, closing)
        elif found := _OPENED.match(line):
            last = self._end_after("%}}" if found[1] == "%" else ">}}", number)
            return self._blank_to(number, last)
        elif _MODULE.match(line):
            return self._blank_to(number, self._statement_end(number))
        elif _SNIPPETS.match(line):
            return self._blank_to(number, self._snippets_end(number))
        elif _ALONE.match(line):
            self.lines[number] = ""

        return number + 1

    def _read_tag(self, number: int) -> int:
        """Blank the lines of a tag of MDX that has them for itself, and note its titles; the line
        after them, or the same one.
        """
        if not _TAG_START.match(self.lines[number]):
            return number
        stop = min(len(self.lines), number + _MOST_FIELDS)
        for last in range(number, stop):
            if not self.lines[last].strip() or (last > number and "<" in self.lines[last]):
                break
            if _TAG_LINES.fullmatch("\n".join(self.lines[number : last + 1])):
                for each in range(number, last + 1):
                    for found in _TAG_TITLE.finditer(self.lines[each]):
                        self.titles.append(Title(each, *found.span("text"), found["quote"]))
                return self._blank_to(number, last)
        return number

    def _end_after(self, end: str, number: int) -> int | None:
        """The line in which a block that begins in another one ends; None if there is none."""
        places = self._ends.get(end, [])
        at = bisect.bisect_right(places, number)
        if at == len(places) or places[at] > number + _LONGEST_BLOCK:
            return None
        return places[at]

    def _snippets_end(self, number: int) -> int:
        """The line in which a block of names of files ends."""
        stop = min(len(self.lines), number + _MOST_FIELDS)
        for last in range(number + 1, stop):
            if _SNIPPETS.match(self.lines[last]):
                return last
            if not _PATH.match(self.lines[last]):
                break
        return number

    def _statement_end(self, number: int) -> int:
        """The line in which the brackets that a line opens are closed."""
        stop = min(len(self.lines), number + _LONGEST_BLOCK)
        before = self._depths[number]
        return next((n for n in range(number, stop) if self._depths[n + 1] <= before), number)

    def _blank_to(
        self, number: int, last: int | None, closing: re.Pattern[str] | None = None
    ) -> int:
        """Blank the lines of a block, the last one up to what closes it; the line after them."""
        last = number if last is None else last
        found = closing.search(self.lines[last]) if closing else None
        rest = self.lines[last][found.end() :] if found else ""
        for each in range(number, last + 1):
            self.lines[each] = ""
        if rest.strip() and not _LABEL.match(rest):
            self.lines[last] = rest.lstrip()
        return last + 1

    def _read_formula(self, number: int, start: int, end: str, *, is_latex: bool) -> int:
        """Blank a formula of several lines; a text that begins or ends like one stays."""
        last = self._end_after(end, number)
        if last is None:
            # An environment without an end is a mistake in a formula, no text.
            return self._blank_to(number, None) if is_latex else number + 1

        closing = re.compile(re.escape(end))
        found = closing.search(self.lines[last])
        body = [self.lines[number][start:], *self.lines[number + 1 : last]]
        body.append(self.lines[last][: found.start()] if found else "")
        is_whole = not body[0].strip() or all(line.strip(" \t>") for line in body[:-1])
        if not is_latex and (not is_whole or is_prose("\n".join(body))):
            return number + 1
        return self._blank_to(number, last, closing)

    def _read_fence(self, token: Any) -> bool:
        """Open a directive with text in it; whether the fence is one, and no code."""
        first, stop = token.map
        line = self.lines[first]
        directive = _DIRECTIVE.match(token.info.strip())
        if directive is None or self._cells_are_code or not _has_text(directive[1]):
            return False
        if first + 1 < stop and _CELL_OPTION.match(self.lines[first + 1]):
            return False

        at = line.index(token.markup)
        self._open(first, directive, line.index("{", at))
        if line[:at].strip(" \t>"):
            # An item of a list, which must not begin with two empty lines.
            self.lines[first] = f"{line[:at]}{_NOTHING}"
        closing = re.compile(rf"[ \t>]*{token.markup[0]}{{{len(token.markup)},}}[ \t]*$")
        if stop - 1 > first and closing.match(self.lines[stop - 1]):
            self.lines[stop - 1] = ""
        self._blank_options(first + 1)
        return True

    def _read_container(self, number: int, found: re.Match[str]) -> int:
        marker, rest, begin = found[2], found[3].rstrip(), found.start(3)

        if directive := _DIRECTIVE.match(rest):
            if _has_text(directive[1]):
                self._open(number, directive, begin)
                return self._blank_options(number + 1)

            closing = re.compile(rf"[ \t>]*:{{{len(marker)},}}[ \t]*$")
            places = self._ends.get(":::", [])
            at = bisect.bisect_right(places, number)
            for last in places[at : bisect.bisect(places, number + _LONGEST_BLOCK)]:
                if closing.match(self.lines[last]):
                    return self._blank_to(number, last)
            return self._blank_to(number, None)

        if attribute := _TITLE_ATTRIBUTE.match(rest):
            start, end = (begin + place for place in attribute.span("title"))
            self.titles.append(Title(number, start, end, attribute["quote"]))
            self.lines[number] = ""
        elif named := _NAMED.match(rest):
            group = next(n for n in range(1, 5) if named[n] is not None)
            self._open(number, named, begin, group)
        elif rest and not rest.startswith("{"):
            pass  # a text that begins with colons
        else:
            self.lines[number] = ""
        return number + 1

    def _open(self, number: int, found: re.Match[str], begin: int, group: int = 2) -> None:
        """Blank the line that opens a container, and note its title, which a group has found in
        the part from a character of the line on.
        """
        is_title = found.re is not _DIRECTIVE or _name_of(found[1]) in _TITLED
        if is_title and found[group].strip():
            start, end = (begin + place for place in found.span(group))
            self.titles.append(
                Title(number, start, end - len(found[group]) + len(found[group].rstrip()))
            )
        self.lines[number] = ""

    def _blank_options(self, number: int) -> int:
        """Blank the options of a directive; the line after them."""
        if number < len(self.lines) and _RULE.match(self.lines[number]):
            stop = min(len(self.lines), number + _MOST_FIELDS)
            last = next((n for n in range(number + 1, stop) if _RULE.match(self.lines[n])), None)
            return number if last is None else self._blank_to(number, last)
        while number < len(self.lines) and _OPTION.match(self.lines[number]):
            self.lines[number] = ""
            number += 1
        return number


def _name_of(directive: str) -> str:
    """The name of a directive without its domain (``prf:theorem``)."""
    return directive.lower().removeprefix("prf:")


def _has_text(directive: str) -> bool:
    """Whether Markdown is inside a directive."""
    return _OF_CODE.fullmatch(_name_of(directive)) is None


def anchors_of(title: str) -> set[str]:
    """The names that generators give to a heading: those of GitHub, and of Python-Markdown."""
    lower = title.strip().lower()
    # Letters of many scripts have marks of their own, which a regular expression takes for no word.
    kept = (each for each in lower if is_of_word(each) or each in "_- ")
    of_github = "".join(kept).replace(" ", "-")
    ascii_only = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    of_python = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
    return {of_github, of_python} - {""}
