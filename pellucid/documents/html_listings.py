"""Listings of programs in HTML: which ``pre`` is one, and not a poem, a letter or a table."""

import re
from collections.abc import Iterator, Sequence

from pellucid.documents.html_tokens import Token

_LISTINGS = frozenset(
    (
        *(
            "brush",
            "chroma",
            "code",
            "codehilite",
            "codeblock",
            "coderay",
            "commandline",
            "console",
        ),
        *("console-output", "crayon", "doctest", "fragment", "highlight", "hljs", "lineno"),
        *("linenos", "lisp", "listing", "listingblock", "literal", "literal-block"),
        *(
            "literalblock",
            "literallayout",
            "prettyprint",
            "prettyprinted",
            "prism",
            "programlisting",
        ),
        *("rouge", "screen", "shell", "smallexample", "smalllisp", "sourcecode", "src", "synopsis"),
        *("syntax", "syntaxhighlighter", "terminal", "verbatim"),
    )
)
"""Classes of Sphinx, docutils, DocBook, Pandoc, Jekyll, Hugo, Org, Texinfo, Doxygen, Asciidoctor
and of the usual highlighters."""
_LANGUAGES = frozenset(
    (
        *(
            "bash",
            "c",
            "c++",
            "clojure",
            "cpp",
            "csharp",
            "css",
            "d",
            "diff",
            "elixir",
            "emacs-lisp",
        ),
        *("erlang", "fortran", "go", "haskell", "html", "ini", "java", "javascript", "js", "json"),
        *("jsx", "julia", "kotlin", "latex", "lua", "make", "makefile", "matlab", "objc", "ocaml"),
        *("pascal", "perl", "php", "powershell", "prolog", "py", "python", "python3", "pycon", "r"),
        *("rb", "ruby", "rust", "scala", "scheme", "sql", "swift", "tcl", "toml", "tsx"),
        *("typescript", "vb", "vim", "xml", "yaml", "zsh"),
    )
)
"""Names of programming languages, and none that is the code of a language of people."""
_PREFIX = re.compile(r"(?:highlight|lang|language|src|source|brush|crayon|wp-block-code)\b")
_SPANS = re.compile(
    r"(?:hljs|pl|token|tok|cm|org|sy\d|kw\d|co\d|st\d|br|me\d|nu)\b.*|mord|keyword\w*|comment"
    r"|preprocessor|stringliteral|k[cdnprtw]?|n[abcdefilnovx]?|m[bfhio]|o|ow|p|[scg][a-z0-9]?|go|gp"
    r"|kw|dt|dv|fu|bu|cf|im|va|ot|pp"
)
"""Classes of the spans that highlighters write: Pygments, highlight.js, Prism, GitHub, Pandoc,
Doxygen, GeSHi."""
_NEAREST = 6
"""Elements around a ``pre`` whose classes are read."""
_READ_TOKENS, _READ_LINES, _READ_CHARACTERS = 200, 40, 200
"""The tokens and lines at the beginning of a ``pre`` that are read, and characters of a line."""
_CODE_LINE = re.compile(
    r"^\s*(?:\$\s\S|>>>|//|/\*|\*/|#!|#include\b|</?[A-Za-z!?][^>]*>|[{}()\[\];]+\s*$"
    r"|(?:sudo|git|pip|npm|apt-get|docker|cargo|make)\s[a-z./-]|from\s\S+\simport\b"
    r"|(?:import|package|using|include|require|def|func|function|fn|class|struct|let|var|const|public"
    r"|private|static|void|int|char|typedef)\s+[\w.*&<>\"'/]+\s*(?:[=:({;<,*]|$))"
    r"|\{\s*$|(?<![}%])\}\s*$|\w\([^()]{0,80}\)|\w\(\w[^()]*[,{(]\s*$|\S=\S|\s[:+*/-]?=\s|->|::|&&|\|\|"
)
"""A line that is one of a program: a prompt, a call, a bracket, an assignment, a keyword."""
_BEGINS = ("/*", "#!/", "#include", "<?xml", "<!DOCTYPE")
"""The beginning of a program or of XML, whose comments may be longer than it."""
_LEAST_OF_CODE = 0.6
"""The share of such lines in a ``pre`` without a class that is a program."""


def mark_listings(tokens: Sequence[Token]) -> None:
    """Let the start tag of each ``pre`` that is a listing say that it is not translated."""
    around: list[Token] = []
    for number, token in enumerate(tokens):
        if token.kind == "end" and around and any(t.name == token.name for t in around[-_DEEPEST:]):
            while around.pop().name != token.name:
                pass
        if token.kind != "start":
            continue
        if token.name == "pre" and token.translates is None:
            holders = around[-_NEAREST:]
            if _is_listing(token, holders) or _reads_as_code(tokens, number):
                token.translates = False
                token.attributes = ()
        around.append(token)


_DEEPEST = 60
"""Open elements that an end tag is looked for in; more would take quadratic time."""


def _is_listing(pre: Token, holders: Sequence[Token]) -> bool:
    """Whether a ``pre`` or what is around it says so."""
    if pre.code_language.lower() in _LANGUAGES or any(map(_is_of_listing, pre.classes)):
        return True
    return any(each in _LISTINGS or _PREFIX.match(each) for t in holders for each in t.classes)


def _is_of_listing(name: str) -> bool:
    """Whether the class of a ``pre`` is that of a listing."""
    words = {name, *re.split(r"[-_:]", name)}
    return name in _LANGUAGES or bool(words & _LISTINGS) or _PREFIX.match(name) is not None


def _reads_as_code(tokens: Sequence[Token], start: int) -> bool:
    """Whether the content of a ``pre`` is that of a listing: its spans, or most of its lines."""
    inner = list(_inner(tokens, start))
    spans = [each for each in inner if each.kind == "start" and each.name == "span"]
    if any(_SPANS.fullmatch(name) for each in spans for name in each.classes):
        return True

    text = "".join(each.text for each in inner if each.kind == "text")
    if text.lstrip().startswith(_BEGINS):
        return True
    lines = [line for line in text.splitlines() if line.strip()][:_READ_LINES]
    of_code = sum(_CODE_LINE.search(line[:_READ_CHARACTERS]) is not None for line in lines)
    return bool(lines) and of_code >= _LEAST_OF_CODE * len(lines)


def _inner(tokens: Sequence[Token], start: int) -> Iterator[Token]:
    """The first tokens in a ``pre``."""
    for token in tokens[start + 1 : start + 1 + _READ_TOKENS]:
        if token.kind == "end" and token.name == "pre":
            return
        yield token
