"""Markdown, CommonMark and what sites add to it: blocks and marks stay, text is replaced.

markdown-it-py says which lines are text and what is inside them; the source of each mark is cut
from the file, and not written again.
"""

import bisect
import dataclasses
import html
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal, get_args
from urllib.parse import unquote

from pellucid.core.errors import DataError
from pellucid.documents.attributes import attributes_of
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.html_roles import READ_AS_WORDS, element_says
from pellucid.documents.html_rules import BLOCKS
from pellucid.documents.markdown_dialects import (
    KEPT,
    PAIR,
    Title,
    anchors_of,
    has_code_cells,
    is_mdx,
    parser,
    settings_end,
    without_marks,
)
from pellucid.documents.markdown_lines import separate_lines
from pellucid.documents.markdown_settings import read_settings
from pellucid.documents.plain import decode, edited, encode, ends_sentence, without_outer_breaks
from pellucid.documents.program_values import IDENTIFIER
from pellucid.documents.protected import is_statement, protect
from pellucid.documents.segments import (
    Alone,
    Close,
    Open,
    Piece,
    Ranges,
    Segment,
    check_count,
    joined,
    segment_of,
)

_SEARCHING = re.compile(r"[\[<`]")
_MOST_SEARCHED = 10**9
"""Characters that are searched for the ends of such signs, each to the end of its paragraph, in all
of a file: some seconds. A paragraph with pictures as text has some millions of characters, and a
few signs."""
_SPAN = "pellucid_span"
"""The key of a token's metadata for where its source is."""
_ESCAPED = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|~(?=~)")
"""Characters that would begin a mark within a text."""
_BLOCK_START = re.compile(r"\A(?=(?:#{1,6}|[-+>])(?:\s|$)|>|(?:-{3,}|={3,}|~{3,})\s*$)")
_NUMBER_START = re.compile(r"\A(\d{1,9})(?=[.)](?:\s|$))")
_ATTRIBUTES = re.compile(r"^#{1,6} .*\{:?[ ]*#[^{}\n]+\}|^[ ]*\{:|\{\{[<%]", re.MULTILINE)
"""Marks of a dialect in which a heading may have attributes."""
_HASHES = re.compile(r"[ \t]+#+(?=[ \t]*(?:[\r\n]|\Z))")
"""Hashes that may end a heading."""
_ALERT = re.compile(r"\[![A-Za-z]{1,60}\][-+]?(?=\s)")
"""The mark that makes a quote a note or a warning; it has a line of its own."""
_HTML_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)")
_END_TAG = re.compile(r"</([A-Za-z][A-Za-z0-9-]*)")
_LONGEST_ELEMENT = 12
"""Tokens of an element whose content stays."""
_VOID = frozenset(("br", "img", "input", "wbr", "hr"))
_SIGNS = re.compile(r"[^\w\s<>\[\]{}\\]+")
"""The first of a pair of signs, such as ``^`` or ``**``."""
_TASK = re.compile(r"\[[ xX]\](?=\s)")
"""A box to tick at the start of an item of a list."""


@dataclasses.dataclass
class _Place:
    """A text in the file: from a character of it up to another, and its marks."""

    start: int
    end: int
    sources: dict[int, tuple[str, str]]
    joint: str
    """The marks of quotes and lists that begin the line after a hard line end."""
    in_table: bool
    anchor: str = ""
    """The name of a heading in the links of the page to it."""
    quote: str = ""
    """The quotation mark on both sides of a title."""
    escapes_dollars: bool = False
    """Whether dollars have a backslash in it, as two without one are around a formula."""


@dataclasses.dataclass
class _Aside:
    """A text in the source of a mark: what describes a picture, or the title of a link."""

    number: int
    """The number of the mark."""
    side: Literal[0, 1]
    """Whether it stands in the source that begins the mark, or in the one that ends it."""
    start: int
    end: int
    pieces: list[Piece]
    sources: dict[int, tuple[str, str]] = dataclasses.field(default_factory=dict)
    quote: str = ""
    """The quotation mark of a title; of a description there is none."""
    place: _Place | None = None
    """The text that the mark is in."""


@dataclasses.dataclass
class _Block:
    """A part in another format: a block of HTML, or the settings at the top."""

    start: int
    stop: int
    segments: Sequence[Segment]
    write: Callable[[Sequence[Segment]], str | bytes]
    first: int = 0
    """The number of its first segment."""


class MarkdownDocument:
    """A Markdown file."""

    notes: Sequence[str] = ()

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for what is not text."""
        self._source, self._encoding = decode(data, what)
        self.segments: list[Segment] = []
        self._places: list[_Place | _Aside | None] = []
        """By segment; None for one of a block of HTML, or of the settings at the top."""
        self._blocks: list[_Block] = []
        source = self._source
        self._starts = [0]
        """Where each line begins."""
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

        # The settings are blanked, so that lines have the same numbers.
        front = settings_end(source)
        if front and (settings := read_settings(source[:front])) is not None:
            self._add_block(_Block(0, front, settings.segments, settings.write))
        text = "\n" * source[:front].count("\n") + source[front:]
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._lines = source.splitlines()
        if len(text.split("\n")) - text.endswith("\n") != len(self._lines) and self._lines:
            # A line end that only Python knows (a form feed, say): read by the same rule.
            self._lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            ends = [found.end() for found in re.finditer(r"\r\n|\r|\n", source)]
            self._starts = [0, *ends, len(source)]

        # So are lines of dialects that are no text; where these may be is read in normal line ends.
        in_mdx = is_mdx(what, text)
        read, titles = without_marks(
            text.split("\n"),
            cells_are_code=has_code_cells(what, source[:front]),
            in_mdx=in_mdx,
        )
        self._parser = _parser(what, in_mdx=in_mdx)
        self._env: dict[str, Any] = {}
        """The addresses that links name (``[text][name]``), as the parser keeps them."""
        tokens = self._parser.parse("\n".join(read), self._env)
        seen = 0
        in_table = in_heading = in_title = False
        headings: list[tuple[_Place, str]] = []
        terms = _terms_in(tokens)
        for token in tokens:
            in_table = (in_table or token.type == "table_open") and token.type != "table_close"
            if token.type == "html_block" and token.map is not None:
                seen = self._add_html(token, seen)
            if token.type != "inline" or token.map is None:
                in_heading = token.type == "heading_open"
                in_title = token.type == "admonition_title_open"
                continue
            while titles and titles[0].line <= token.map[0]:
                self._add_title(titles.pop(0))
            if in_title or not token.content.strip():
                continue
            count = len(self._places)
            seen = self._add(token, seen, in_table, id(token) in terms)
            if in_heading and len(self._places) > count:
                texts = (each.content for each in token.children or [] if each.type in _SHOWN)
                place = self._places[count]
                assert isinstance(place, _Place)
                headings.append((place, "".join(texts)))
        for title in titles:
            self._add_title(title)
        self._name_headings(headings, _named_in(tokens))
        # Hugo shows no HTML, and GitHub no attributes.
        self._has_attributes = source.startswith("+++") or _ATTRIBUTES.search(source) is not None

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The file with other segments."""
        check_count(translated, self.segments)
        edits: list[tuple[int, int, str]] = []
        for block in self._blocks:
            own = translated[block.first : block.first + len(block.segments)]
            if list(own) != list(block.segments):
                written = block.write(own)
                text = written if isinstance(written, str) else written.decode()
                edits.append((block.start, block.stop, text))
        changed = self._write_asides(translated)
        for place, before, after in zip(self._places, self.segments, translated, strict=True):
            if not isinstance(place, _Place) or (before == after and id(place) not in changed):
                continue
            place.escapes_dollars = "\\$" in self._source[place.start : place.end]
            literals = _literals_of(before, self._source[place.start : place.end])
            new = self._written(after, place, literals)
            if place.anchor and not self._has_attributes:
                new = f'<a id="{html.escape(place.anchor)}"></a>{new}'
            if place.quote and not self._source[place.start : place.end].count(place.quote):
                # It would end the title.
                new = new.replace(place.quote, html.escape(place.quote))
            end = place.end
            if place.anchor and self._has_attributes:
                closing = _HASHES.match(self._source, end)
                new += f"{closing[0] if closing else ''} {{#{place.anchor}}}"
                end = closing.end() if closing else end
            edits.append((place.start, end, new))
        return encode(edited(self._source, edits), self._encoding)

    def _write_asides(self, translated: Sequence[Segment]) -> set[int]:
        """Write descriptions and titles into the sources of their marks; the ids of the places
        whose marks have changed.
        """
        changed: set[int] = set()
        asides = [
            (each, after)
            for each, before, after in zip(self._places, self.segments, translated, strict=True)
            if isinstance(each, _Aside) and before != after
        ]

        # From the last on, so that the places of those before them stay.
        for aside, after in reversed(asides):
            assert aside.place is not None
            if aside.quote:
                text = " ".join(after.text.split()).replace("\\", "\\\\")
                text = text.replace(aside.quote, f"\\{aside.quote}")
            else:
                text = _source_of(after, _Place(0, 0, aside.sources, "", False), _WAYS[0], None)

            sources = aside.place.sources
            both = list(sources[aside.number])
            raw = both[aside.side]
            both[aside.side] = raw[: aside.start] + text + raw[aside.end :]
            sources[aside.number] = both[0], both[1]
            changed.add(id(aside.place))
        return changed

    def _add(self, token: Any, seen: int, in_table: bool, are_terms: bool) -> int:
        """Add the text of a token; return where it ends. It begins after ``seen``."""
        lines, starts = self._lines, self._starts
        content = token.content.split("\n")
        first, last = token.map

        # The lines of the content are the ends of lines of the file, without quotes and indents.
        start = max(seen, starts[first])
        if in_table or len(content) == 1:
            # In the content of a cell there is no backslash before a bar.
            written = token.content.replace("|", "\\|") if in_table else token.content
            # The term of a definition list has a map without a line in it.
            stop = starts[min(max(last, first + 1), len(starts) - 1)]
            begin = self._source.find(written, start, stop)
            if begin < 0:
                return seen
            end, joint = begin + len(written), ""
        else:
            ours = lines[first : first + len(content)]
            begin_in = ours[0].rfind(content[0])
            end_in = ours[-1].rfind(content[-1]) if len(ours) == len(content) else -1
            if begin_in < 0 or end_in < 0:
                return seen
            begin = starts[first] + begin_in
            end = starts[first + len(content) - 1] + end_in + len(content[-1])
            prefix = ours[1][: max(0, ours[1].rfind(content[1]))]
            joint = self._source[starts[first] + len(ours[0]) : starts[first + 1]] + prefix

        pieces, sources, asides = _pieces(token.children or [], token.content, are_terms=are_terms)
        last = pieces[-1] if pieces else ""
        if isinstance(last, Alone) and sources[last.number][1] == "attributes":
            # Those of a heading or a paragraph, behind its text: no word of it.
            rest = self._source[begin:end].removesuffix(sources[last.number][0]).rstrip(" \t")
            stop, pieces = begin + len(rest), pieces[:-1]
            if pieces and isinstance(pieces[-1], str):
                pieces[-1] = pieces[-1].rstrip(" \t")
            del sources[last.number]
            self._add_place(pieces, _Place(begin, stop, sources, joint, in_table), asides)
            return end
        self._add_place(pieces, _Place(begin, end, sources, joint, in_table), asides)
        return end

    def _add_html(self, token: Any, seen: int) -> int:
        """Add the texts of a block of HTML; return where it ends. One with code of MDX stays."""
        lines, starts = self._lines, self._starts
        first, stop = (int(line) for line in token.map)
        start, end = starts[first], starts[stop]
        if start < seen or "{" in self._source[start:end]:
            return seen

        if self._source[start:end].split() == token.content.split():
            block = HtmlDocument(self._source[start:end])
            self._add_block(_Block(start, end, block.segments, block.text_with))
            return end

        # Behind the mark of a list, or with that of a quote before each line.
        content = token.content.removesuffix("\n").split("\n")
        ours = lines[first : first + len(content)]
        if not all(map(str.endswith, ours, content)) or len(ours) < len(content):
            return seen
        begin = start + len(ours[0]) - len(content[0])
        end = starts[first + len(content) - 1] + len(ours[-1])
        joints = {
            line.removesuffix(own) for line, own in zip(ours[1:], content[1:], strict=True) if own
        }
        joint = max(joints, key=len, default="")
        line_end = self._source[starts[first] + len(ours[0]) : starts[first + 1]]
        block = HtmlDocument(token.content.removesuffix("\n"))

        def write(segments: Sequence[Segment]) -> str:
            """The block with the marks of quotes and lists before its lines."""
            return block.text_with(segments).replace("\n", line_end + joint)

        self._add_block(_Block(begin, end, block.segments, write))
        return end

    def _add_block(self, block: _Block) -> None:
        block.first = len(self.segments)
        self._blocks.append(block)
        self.segments += block.segments
        self._places += [None] * len(block.segments)

    def _add_place(self, pieces: Sequence[Piece], place: _Place, asides: Sequence[_Aside]) -> None:
        """Add a text, and behind it what describes its pictures and links."""
        read = [
            (aside, segment)
            for aside in asides
            if (segment := segment_of(aside.pieces)).has_words
            and not IDENTIFIER.fullmatch(segment.text)
        ]
        segment = segment_of(pieces)
        if segment.has_words or read:
            self.segments.append(segment)
            self._places.append(place)
        for aside, own in read:
            aside.place = place
            self.segments.append(own)
            self._places.append(aside)

    def _add_title(self, title: Title) -> None:
        """Add the title of a container."""
        begin, end = (self._starts[title.line] + place for place in (title.start, title.end))
        content = self._source[begin:end]
        [inline] = self._parser.parseInline(content, self._env)
        pieces, sources, asides = _pieces(inline.children or [], content)
        place = _Place(begin, end, sources, "", False, quote=title.quote)
        self._add_place(pieces, place, asides)

    def _name_headings(self, headings: Sequence[tuple[_Place, str]], names: dict[str, str]) -> None:
        """Note which headings the page links to; ``names`` by their forms in lower case."""
        counts: dict[str, int] = {}
        for place, text in headings:
            for anchor in anchors_of(text):
                count = counts.get(anchor, 0)
                counts[anchor] = count + 1
                # The second heading of a name has a number.
                for form in (f"{anchor}-{count}", f"{anchor}_{count}") if count else (anchor,):
                    place.anchor = names.get(form, place.anchor)

    def _written(self, segment: Segment, place: _Place, literals: re.Pattern[str] | None) -> str:
        """The source of a segment, in which every mark is one for CommonMark's rules too.

        ``literals`` are written as they are, unless they would make marks of their own.
        """
        segment = _without_empty(segment, place)
        wanted = [
            (_TAGS.get(place.sources[piece.number][0], "link"), isinstance(piece, Close))
            for piece in segment.pieces
            if isinstance(piece, Open | Close)
        ]

        text = ""
        for kept in (literals, None) if literals else (None,):
            for way in _WAYS:
                text = _source_of(segment, place, way, kept)
                if not wanted and not kept:
                    return text

                # A star next to a sign is none, depending on what is on its other side, and two
                # stars that meet are one mark of another kind.
                expected = [each for each in wanted if way != "tags" or each[0] == "link"]
                [inline] = self._parser.parseInline(text, self._env)
                if _marks_of(inline.children or []) == expected:
                    return text
        return text


def _without_empty(segment: Segment, place: _Place) -> Segment:
    """The segment without pairs of signs around nothing, which would be read as text: "1^^"."""
    pieces: list[Piece] = []
    for piece in segment.pieces:
        if (
            isinstance(piece, Close)
            and pieces[-1:] == [Open(piece.number)]
            and _SIGNS.fullmatch(place.sources[piece.number][0])
        ):
            pieces.pop()
        else:
            pieces.append(piece)
    return Segment(tuple(pieces))


def _literals_of(segment: Segment, source: str) -> re.Pattern[str] | None:
    """A pattern of the texts that are not translated, such as an address, and need no escape.

    None if there is nothing that an escape would change.
    """
    _, kept = protect(segment, keep_numbers=False)
    found = {
        each
        for each in kept.values()
        # One character is a dash or a star, which may begin a list without its backslash.
        if len(each) > 1 and (_ESCAPED.search(each) or "$" in each) and each in source
    }
    if not found:
        return None
    # The longest first: one may be the beginning of another.
    ordered = sorted(found, key=lambda each: (-len(each), each))
    return re.compile(f"({'|'.join(map(re.escape, ordered))})")


def _marks_of(tokens: Iterable[Any]) -> list[tuple[str, bool]]:
    """The marks around text that a parser found, in order: a name, and whether it is an end."""
    found = []
    for token in tokens:
        name, _, side = token.type.rpartition("_")
        if side in ("open", "close") and token.markup != "autolink":
            found.append(("del" if name == "s" else name, side == "close"))
    return found


def _terms_in(tokens: Iterable[Any]) -> set[int]:
    """The ids of the tokens that a definition in a paragraph of its own follows."""
    texts = [token for token in tokens if token.type == "inline" and token.map is not None]
    return {
        id(token)
        for token, following in itertools.pairwise(texts)
        if following.content.startswith((": ", ":\t")) and token.map[1] + 1 == following.map[0]
    }


_SHOWN = frozenset(("text", "text_special", "code_inline"))
"""Tokens whose text is part of the name of a heading."""


def _named_in(tokens: Iterable[Any]) -> dict[str, str]:
    """The names within the page that its links have, by their forms in lower case."""
    names: dict[str, str] = {}
    for token in tokens:
        for each in token.children or []:
            address = str(each.attrs.get("href", "")) if each.type == "link_open" else ""
            found = (
                re.findall(r"""href=["']#([^"'<>]+)["']""", each.content)
                if (each.type == "html_inline")
                else []
            )
            if address.startswith("#"):
                found.append(address[1:])
            names |= {unquote(name).lower(): unquote(name) for name in found}
    return names


def _parser(what: str, *, in_mdx: bool) -> Any:
    """A parser whose inline tokens have the span of their source; it raises DataError for
    paragraphs that take it quadratic time.
    """
    found = parser(in_mdx=in_mdx)

    def check(state: Any) -> None:
        """A rule of the parser that refuses text with too much to search in."""
        searched = 0
        for token in state.tokens:
            if token.type != "inline":
                continue
            searched += len(_SEARCHING.findall(token.content)) * len(token.content)
            if searched > _MOST_SEARCHED:
                raise DataError(
                    f"{what} has so many [, < and ` in long paragraphs, up to that in line"
                    f" {token.map[0] + 1}, that it takes too long to read"
                )

    found.core.ruler.after("block", "bounded", check)
    for rule in found.inline.ruler.__rules__:
        rule.fn = _noting_spans(rule.fn)
    found.inline.ruler.__cache__ = None
    return found


def _noting_spans(rule: Callable[..., bool]) -> Callable[..., bool]:
    """A rule that notes in each token that it adds where its source is."""

    def noting(state: Any, silent: bool) -> bool:
        """The rule, and a note in each token that it adds."""
        begin, count = state.pos, len(state.tokens)
        pending = len(state.pending)
        matched = rule(state, silent)
        if matched and not silent:
            for token in state.tokens[count:]:
                # Text that waited from before the rule has no source of its own here.
                if pending and token is state.tokens[count] and token.type == "text":
                    continue
                token.meta.setdefault(_SPAN, (begin, state.pos))
        return bool(matched)

    return noting


def _pieces(
    tokens: Iterable[Any], content: str, *, are_terms: bool = False
) -> tuple[list[Piece], dict[int, tuple[str, str]], list[_Aside]]:
    """The text of inline tokens with marks, the sources of these, and the texts in the sources.

    ``are_terms`` says that a definition follows the text.
    """
    pieces: list[Piece] = []
    sources: dict[int, tuple[str, str]] = {}
    asides: list[_Aside] = []
    opened: list[int] = []
    number = 0
    tokens = list(tokens)
    skipped = 0
    ranges = Ranges()
    closed = {name.lower() for name in _END_TAG.findall(content)} if "</" in content else set()

    # What begins a line and is written as it is: an escaped box is no box.
    alert = _ALERT.match(content)
    found = alert or _TASK.match(content)
    separate = {} if found else separate_lines(content, are_terms=are_terms)
    head = found[0] if found else separate.get(0, "")
    ends = [found.start() for found in re.finditer("\n", content)]

    for index, token in enumerate(tokens):
        if skipped:
            skipped -= 1
            continue
        span = token.meta.get(_SPAN)
        raw = content[slice(*span)] if span else token.markup
        text: str | None = None
        mark: Piece | None = None
        is_end = token.type in ("softbreak", "hardbreak")
        line = bisect.bisect_left(ends, span[1]) if span and is_end else 0
        if token.type == "text" or token.type == "text_special":
            text = token.content
        elif token.type == "softbreak":
            if alert or line in separate:
                # The line of an alert or of a verse ends: the lines stay apart.
                sources[number] = ("", "break")
                mark = Alone(number, breaks=True)
                alert = None
            else:
                text = " "
        elif token.type == "hardbreak":
            # Its source holds the line end; what follows is added when it is written.
            sources[number] = ("  " if raw.startswith("\n") else "\\", "break")
            mark = Alone(number, breaks=True)
        elif token.type in ("em_open", "strong_open", "s_open"):
            sources[number] = (token.markup, token.markup)
            mark = Open(number)
        elif token.type in ("em_close", "strong_close", "s_close", "link_close"):
            mark = Close(opened.pop())
        elif token.type == "link_open" and token.markup == "autolink":
            sources[number] = (raw, "")
            mark = Alone(number, raw.strip("<>"))
            skipped = 2
        elif token.type == "link_open" and token.markup == PAIR:
            sources[number] = (token.content, token.info)
            mark = Open(number, token.meta["kind"])
        elif token.type == "link_open":
            inner = _label_end(raw)
            # Of one whose address is elsewhere, the text is the name of the address: it stays so.
            is_name = raw[inner:] in ("]", "][]")
            sources[number] = (raw[:1], f"][{raw[1:inner]}]" if is_name else raw[inner:])
            asides += _title_in(token, raw[inner:], number, 1, 0)
            mark = Open(number, "label")
        elif token.type == "code_inline":
            sources[number] = (raw, "")
            mark = Alone(number, token.content)
        elif (
            token.type == KEPT
            and token.info == "attributes"
            and (
                # Those of the link, image or code before them belong to it.
                (owner := _attributes_go_to(pieces, content, span)) is not None
            )
        ):
            before, behind = sources[owner]
            is_pair = isinstance(pieces[-1], Close)
            sources[owner] = (before, behind + raw) if is_pair else (before + raw, behind)
        elif token.type == KEPT:
            sources[number] = (raw, token.info)
            mark = Alone(number, _read_as(token), breaks=is_statement(raw))
        elif (whole := _whole_element(tokens, index, content)) is not None:
            skipped, raw, read = whole
            sources[number] = (raw, "")
            mark = Alone(number, read)
        elif token.type == "image" and span:
            sources[number] = (raw, "")
            asides += _asides_of(token, raw, number)
            mark = Alone(number)
        else:  # HTML
            sources[number] = (raw if span else token.content, "")
            source = token.content if token.type == "html_inline" else ""
            mark = _html_mark(number, source, ranges, closed)

        if head and text is not None and text.startswith(head):
            sources[number] = (head, "")
            pieces.append(Alone(number))
            number += 1
            text = text[len(head) :]
        head = separate.get(line, "") if is_end else ""
        if text:
            pieces.append(text)
        elif mark is not None:
            pieces.append(mark)
            opened += [number] if isinstance(mark, Open) else []
            number += not isinstance(mark, Close)
    return without_outer_breaks(joined(pieces)), sources, asides


_TITLE = re.compile(r"""(?<=[ \t\n])(["'])(?P<text>(?:[^"'\\]|\\.|(?!\1)["'])*)\1[ \t\n]*\)\Z""")
"""The title in the address of a picture or a link, ``](x.png "title")``."""


def _asides_of(token: Any, raw: str, number: int) -> list[_Aside]:
    """The description and the title of a picture, ``![description](x.png "title")``."""
    inner = _label_end(raw)
    if raw[inner:] in ("]", "][]"):
        return []  # its description is the name of its address
    pieces, sources, _ = _pieces(token.children or [], raw[2:inner])
    described = _Aside(number, 0, 2, inner, pieces, sources)
    return [described, *_title_in(token, raw[inner:], number, 0, inner)]


def _title_in(token: Any, raw: str, number: int, side: Literal[0, 1], before: int) -> list[_Aside]:
    """The title in the end of a mark's source, which has ``before`` characters before it."""
    found = _TITLE.search(raw)
    if found is None or not raw.startswith("]("):
        return []
    start, end = found.span("text")
    title = str(token.attrs.get("title", ""))
    return [_Aside(number, side, before + start, before + end, [title], quote=found[1])]


def _whole_element(tokens: Sequence[Any], index: int, content: str) -> tuple[int, str, str] | None:
    """An element of HTML whose content stays, such as ``<kbd>``: how many tokens are in it behind
    the first, its source, and how it is read; None for any other token.
    """
    found = _HTML_TAG.match(tokens[index].content)
    if tokens[index].type != "html_inline" or found is None or found[1]:
        return None
    name = found[2].lower()
    attributes = [(each.name, each.value) for each in attributes_of(tokens[index].content)]
    is_kept = element_says(name, attributes).translates is False
    if not is_kept and name not in READ_AS_WORDS:
        return None
    for last in range(index + 1, min(len(tokens), index + _LONGEST_ELEMENT)):
        if tokens[last].type == "html_inline" and tokens[last].content.lower() == f"</{name}>":
            start, stop = tokens[index].meta[_SPAN][0], tokens[last].meta[_SPAN][1]
            inner = "".join(token.content for token in tokens[index + 1 : last])
            return last - index, content[start:stop], inner
    return None


def _html_mark(number: int, source: str, ranges: Ranges, closed: Collection[str]) -> Alone:
    """The mark for a tag of HTML, or for what else stands alone; ``closed`` are the names of the
    end tags in the text.
    """
    if source in ("<>", "</>"):
        return Alone(number, ends=ranges.ended_by(number, ("tag", "", source == "</>")))
    found = _HTML_TAG.match(source)
    if found is None:
        return Alone(number)
    name = found[2].lower()
    attributes = [(each.name, each.value) for each in attributes_of(source)]
    is_alone = source.endswith("/>") or name in _VOID or name in BLOCKS
    range_ = None if is_alone else ("tag", name, bool(found[1]))
    return Alone(
        number,
        breaks=ends_sentence(name, source, closed),
        ends=ranges.ended_by(number, range_),
        kind=element_says(name, attributes).role,
    )


def _attributes_go_to(
    pieces: Sequence[Piece], content: str, span: tuple[int, int] | None
) -> int | None:
    """The number of the mark that attributes stand directly behind; None if it is a text."""
    last = pieces[-1] if pieces else ""
    is_beside = span is not None and span[0] > 0 and not content[span[0] - 1].isspace()
    return last.number if isinstance(last, Close | Alone) and is_beside else None


def _read_as(token: Any) -> str:
    """How a formula or a link to another page is read in a sentence."""
    if token.info in ("attributes", "silent") or token.content.startswith("!"):
        return ""
    label = token.content.removeprefix("[[").removesuffix("]]").rpartition("|")[2]
    return str(label if token.content.startswith("[[") else token.content)


def _label_end(raw: str) -> int:
    """Where the text of a link ends, at the bracket that closes it."""
    depth, place = 0, 0

    while place < len(raw):
        character = raw[place]
        if character == "\\":
            place += 1
        elif character == "`":
            # Brackets in code are no brackets.
            run = len(raw) - place - len(raw[place:].lstrip("`"))
            close = raw.find("`" * run, place + run)
            place = close + run - 1 if close >= 0 else place + run - 1
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return len(raw)


_Way = Literal["as it was", "spaced", "tags"]
_WAYS: tuple[_Way, ...] = get_args(_Way)
"""How stars are written: alone, with a space on their outer side and none on the inner one, or as
tags of HTML."""
_TAGS = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


def _source_of(segment: Segment, place: _Place, way: _Way, literals: re.Pattern[str] | None) -> str:
    """The source of a segment: its text, except ``literals``, escaped where it would begin a
    mark.
    """
    written: list[str] = []
    at_start = True
    for index, piece in enumerate(segment.pieces):
        if isinstance(piece, str):
            if way == "spaced":
                before, after = segment.pieces[max(0, index - 1)], segment.pieces[index + 1 :][:1]
                piece = piece.lstrip(" ") if isinstance(before, Open) else piece
                piece = piece.rstrip(" ") if after and isinstance(after[0], Close) else piece
            for count, part in enumerate(literals.split(piece) if literals else [piece]):
                # Every second part is a literal.
                escaped = _escaped(part, at_start=at_start)
                if place.escapes_dollars:
                    escaped = escaped.replace("$", "\\$")
                written.append(part if count % 2 else escaped)
                at_start = at_start and not part.strip()
        elif isinstance(piece, Alone):
            source, kind = place.sources[piece.number]
            at_start = kind == "break"
            written.append(source + (place.joint or "\n") if at_start else source)
        else:
            # A mark before the text: what follows begins no block.
            at_start = False
            is_end = isinstance(piece, Close)
            source = place.sources[piece.number][is_end]
            tag = _TAGS.get(source)
            if way == "tags" and tag:
                source = f"</{tag}>" if is_end else f"<{tag}>"
            elif way == "spaced" and tag:
                source = f"{source} " if is_end else f" {source}"
            written.append(source)

    text = "".join(written)
    if place.in_table:
        text = text.replace("|", "\\|")
    return text.strip(" ") if way == "spaced" else text


def _escaped(text: str, *, at_start: bool) -> str:
    text = " ".join(text.split("\n"))
    escaped = _ESCAPED.sub(lambda found: f"\\{found[0]}", text)
    if at_start:
        escaped = _BLOCK_START.sub(r"\\", _NUMBER_START.sub(r"\1\\", escaped))
    return escaped
