"""Listings of programs in HTML: which ``pre`` is one, and not a poem, a letter or a table."""

import re
from collections.abc import Iterator, Sequence

from pellucid.core.texts import words_in
from pellucid.documents.html_rules import DEEPEST
from pellucid.documents.html_tokens import Token

_LISTINGS = words_in(
    "chroma code-block code-example code-snippet codehilite codeblock coderay console-output crayon"
    " crayon-plain-tag crayon-pre doctest crayon-syntax enlighterjsraw highlight hljs lineno"
    " linenos listingblock literal-block literalblock prettyprint prettyprinted programlisting"
    " smallexample smalllisp source-code sourcecode syntaxhighlighter wp-block-code"
)
"""Classes of Sphinx, docutils, DocBook, Pandoc, Jekyll, Hugo, Texinfo, Asciidoctor and of the usual
highlighters, which no other element has."""
_LISTINGS_OF_PRE = words_in("brush code commandline console lisp listing prism screen verbatim")
"""Words that are classes of other elements too, and of a ``pre`` only if it is a listing."""
_COMMON = words_in(
    "brush code commandline console fragment lisp listing literal prism rouge screen shell source"
    " src synopsis syntax terminal verbatim"
)
"""Classes of DocBook, Org and Doxygen that poems and letters have too: they say that a ``pre`` is a
listing if one of its lines is one of a program."""
_LANGUAGES = words_in(
    "bash c c++ clojure cpp csharp css d diff elixir emacs-lisp erlang fortran go haskell html ini"
    " java javascript js json jsx julia kotlin latex lua make makefile matlab objc ocaml pascal"
    " perl php powershell prolog py python python3 pycon r rb ruby rust scala scheme sql swift tcl"
    " toml tsx typescript vb vim xml yaml zsh"
)
"""Names of programming languages, and none that is the code of a language of people."""
_ONLY_AFTER_PREFIX = words_in(
    "apache asm batch c# cmake console dart docker dockerfile elisp f# fsharp graphql groovy http"
    " lisp markdown nginx none objective-c objectivec plain plaintext racket scss sh shell"
    " shell-session text vue yml"
)
"""Names in ``language-text`` that say nothing as a class of their own."""
_PREFIX = re.compile(
    r"(?:highlight|lang|language|src|source|brush|crayon)[-:](?:source-)?"
    r"(?P<language>[a-z][\w+#-]*)(?:[{,:;].*)?"
)
"""A class with the name of a language, of programs or of people."""
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
_NO_PLURAL = r"(?!(?:e?s|in|innen|en)\))"
"""The ending in brackets of ``file(s)``, which is no argument of a call."""
_CODE_LINE = re.compile(
    # A prompt, a comment, a tag, brackets alone.
    r"^\s*(?:\$\s(?!\d)\S|>>>|//|/\*|\*/|#!|#include\b|</?[A-Za-z!?][^>]*>|[{}()\[\];]+\s*$"
    # A command.
    r"|(?:sudo|git|pip|npm|apt-get)\s[a-z./-]|(?:cargo|docker|make)\s(?:-|(?:all|build|check|clean"
    r"|compose|exec|install|new|pull|push|run|test)\b)"
    # A declaration.
    r"|from\s\S+\simport\b|import\s+(?:\w+(?:\.[\w*]+)+|\w+\s+as\s\w+;?\s*$|\{|[^'\"]+\sfrom\s['\"])"
    r"|(?:package|using)\s+\w+(?:\.\w+)+;|using\s+namespace\s|(?:include|require)\w*\s*\(?['\"][\w./-]"
    r"|(?:async\s+)?function\b\s*\w*\(|class\s+\w+(?:\(.*\))?:\s*$|use\s\w+::"
    r"|(?:(?:public|private|protected|static|final)\s+)*(?:def|func|fn|struct|var|const|int|char"
    r"|bool|typedef)\s+[\w.*&<>\"'/ ]+\s*[=({;<*\[]"
    # A call.
    rf"|[a-z_][\w.]*\({_NO_PLURAL}[^()]*,)"
    rf"|\w\(\)|\w\({_NO_PLURAL}[^()]*\)\s*(?:;\s*$|\{{)|\w\((?:[^()]*[\s,=])?['\"]|\w\([^()]*="
    rf"|\w\(\w+\.\w|\w\([^()]*\w\({_NO_PLURAL}|\w[._]\w+\({_NO_PLURAL}|\w\[\]|=\s*[\w.]+\({_NO_PLURAL}"
    # An option of a command, a command of TeX.
    r"|\s--?\w[\w-]*=\S|(?<![\w:\\])\\[a-z]{2,}"
    # A block, an assignment, an operator.
    r"|\{\s*$|(?<![}%])\}\s*$|\s[:+*/-]=\s|\w\s?=\s?['\"\[{]|^\s*\w+[._]\w+\s*=\s*\S"
    r"|\w\s=\s.*;\s*(?://.*)?$|[;{,)]\s*//|^\s*#\[\w|[\w)\]]\s?[=!]==?\s?[\w(\"'\[-]|[\w)]->\w|\)\s*=>|\w::\w|&&|[\w)]\s?\|\|\s?[\w(!]"
)
"""A line that is one of a program: a prompt, a call, a bracket, an assignment, a keyword with code
behind it."""
_MAYBE_CODE_LINE = re.compile(
    rf"[^\s=]=[^\s=]|\s=\s|\w\({_NO_PLURAL}[^()]{{0,80}}\)|\w\(\w[^()]*[,{{(]\s*$"
    r"|^\s*(?:import|package|include|require)\s+[\w.*]+;?\s*$"
)
"""A line that is one of a program if another is: ``City = Rome`` and ``Yoga(advanced)`` stand in
tables and plans too."""
_BEGINS = (
    *("/*", "#!/", "#include", "<?xml", "<!DOCTYPE"),
    *("$ cargo ", "$ cd ", "$ docker ", "$ git ", "$ make ", "$ npm ", "$ pip ", "$ python"),
    "$ sudo ",
)
"""The beginning of a program or of XML, whose comments may be longer than it, and of commands,
whose output may be."""
_LEAST_OF_CODE = 0.6
"""The share of such lines in a ``pre`` without a class that is a program."""


def mark_listings(tokens: Sequence[Token]) -> None:
    """Let the start tag of each ``pre`` that is a listing say that it is not translated."""
    around: list[Token] = []
    for number, token in enumerate(tokens):
        if token.kind == "end" and around and any(t.name == token.name for t in around[-DEEPEST:]):
            while around.pop().name != token.name:
                pass
        if token.kind != "start":
            continue
        if token.name == "pre" and token.translates is None:
            holders = [t for t in around[-_NEAREST:] if t.name not in ("html", "body")]
            if _is_listing(token, holders) or _reads_as_code(tokens, number, holders):
                token.translates = False
                token.attributes = ()
        around.append(token)


def _is_listing(pre: Token, holders: Sequence[Token]) -> bool:
    """Whether a ``pre`` or what is around it says so."""
    if pre.code_language.lower() in _LANGUAGES or pre.classes & (_LANGUAGES | _LISTINGS_OF_PRE):
        return True
    return any(map(_is_of_listing, (name for t in (pre, *holders) for name in t.classes)))


def _is_of_listing(name: str) -> bool:
    """Whether a class is that of a listing, or names a programming language."""
    if name in _LISTINGS or name.startswith("brush:"):
        return True
    found = _PREFIX.fullmatch(name)
    return found is not None and found["language"] in _LANGUAGES | _ONLY_AFTER_PREFIX


def _reads_as_code(tokens: Sequence[Token], start: int, holders: Sequence[Token]) -> bool:
    """Whether the content of a ``pre`` is that of a listing: its spans, or most of its lines.

    One line is enough if a common class of it or of its parent says so too.
    """
    inner = list(_inner(tokens, start))
    spans = [each for each in inner if each.kind == "start" and each.name == "span"]
    if any(_SPANS.fullmatch(name) for each in spans for name in each.classes):
        return True

    text = "".join(each.text for each in inner if each.kind == "text")
    if text.lstrip().startswith(_BEGINS):
        return True
    lines = [line[:_READ_CHARACTERS] for line in text.splitlines() if line.strip()][:_READ_LINES]
    of_code = _count_of_code(lines)
    if any(each.classes & _COMMON for each in (tokens[start], *holders[-1:])):
        return of_code > 0
    return bool(lines) and of_code >= _LEAST_OF_CODE * len(lines)


def _count_of_code(lines: Sequence[str]) -> int:
    """How many lines are those of a program."""
    surely = [_CODE_LINE.search(line) is not None for line in lines]
    if not any(surely):
        return 0
    maybe = [_MAYBE_CODE_LINE.search(line) is not None for line in lines]
    return sum(map(max, surely, maybe))


def _inner(tokens: Sequence[Token], start: int) -> Iterator[Token]:
    """The first tokens in a ``pre``."""
    for token in tokens[start + 1 : start + 1 + _READ_TOKENS]:
        if token.kind == "end" and token.name == "pre":
            return
        yield token
