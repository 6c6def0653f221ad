"""The meaning of tags: which end a sentence, and which hold what is not translated."""

import dataclasses
from collections.abc import Sequence

from pellucid.core.texts import words_in
from pellucid.documents.html_roles import READ_AS_WORDS
from pellucid.documents.segments import NOT_KNOWN, Languages

BLOCKS = words_in(
    "html head body title base template frame frameset noframes address article aside blockquote"
    " center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5"
    " h6 header hgroup hr legend li listing main marquee menu nav ol optgroup option p plaintext"
    " pre search section summary ul xmp table caption colgroup col tbody thead tfoot tr td th"
)
"""Elements that end a sentence. Any other is within one, also one that HTML does not know, such as
a custom element: so browsers show it. Source: HTML Standard, 15.3, flow content and tables."""
OPAQUE = READ_AS_WORDS | words_in(
    "script style svg math object rt rp rtc xmp iframe noembed noframes"
)
"""Elements whose content is not translated: readings say how the words of the original are spoken,
and that of the last four is no HTML for browsers."""
HELD = frozenset(("select", "datalist", "textarea", "audio", "video", "canvas"))
"""Elements that are one mark in a sentence and hold texts of their own."""
_VOID = words_in("area base br col embed hr img input link meta param source track wbr")


@dataclasses.dataclass(frozen=True)
class TagRules:
    """The meaning of tags."""

    is_xml: bool = False
    """Whether a tag means nothing by its name: all are inline but those of ``divides``."""
    divides: frozenset[str] = frozenset()
    """Elements that end a sentence, in lower case, beside those that do anyway."""
    inline: frozenset[str] = frozenset()
    """Elements within a sentence, whatever else they are."""
    opaque: frozenset[str] = frozenset()
    """Elements whose content is not translated, beside those whose content never is."""
    finds_outline: bool = False
    """Whether elements that hold elements and no text of their own end a sentence, and so do those
    in them."""
    keeps_lines: bool = False
    """Whether the end of a line ends a sentence, and stays, in every element."""
    with_attributes: bool = False
    """Whether the attributes that people read are translated."""
    languages: Languages = NOT_KNOWN
    """The languages of the page and of its translation, which names the second as its own."""

    def is_inline(self, name: str) -> bool:
        """Whether a sentence goes on across this tag."""
        if name in self.inline:
            return True
        return name not in self.divides and (self.is_xml or name not in BLOCKS)

    def is_opaque(self, name: str) -> bool:
        """Whether what is in this element stays as it is."""
        return name in self.opaque or (not self.is_xml and name in OPAQUE)

    def is_void(self, name: str) -> bool:
        """Whether this element has no end tag."""
        return not self.is_xml and name in _VOID


PAGE = TagRules(with_attributes=True)
"""The rules of a document in HTML."""
KEEPS_LINES = frozenset(("pre", "textarea"))
"""Elements in which the ends of lines count."""
_TABLE_PARTS = frozenset(("caption", "colgroup", "thead", "tbody", "tfoot"))
_HEAD_PARTS = frozenset(("html", "head", "title", "base", "template"))
_IN_HOLDERS = words_in("body frame frameset noframes marquee legend optgroup option col td th tr")
"""Blocks that begin in a holder of their own, and in no paragraph."""
ENDED_BY = {
    "head": BLOCKS - _HEAD_PARTS,
    "li": frozenset(("li",)),
    **dict.fromkeys(("dt", "dd"), frozenset(("dt", "dd"))),
    "p": BLOCKS - _HEAD_PARTS - _TABLE_PARTS - _IN_HOLDERS,
    **dict.fromkeys(("rb", "rt", "rp"), frozenset(("rb", "rt", "rtc", "rp"))),
    "rtc": frozenset(("rb", "rtc")),
    "option": frozenset(("option", "optgroup", "hr")),
    "optgroup": frozenset(("optgroup", "hr")),
    **dict.fromkeys(("td", "th"), frozenset(("td", "th", "tr", *_TABLE_PARTS))),
    "tr": frozenset(("tr", *_TABLE_PARTS)),
    "caption": frozenset(("col", "tr", "td", "th", *_TABLE_PARTS)),
    "colgroup": frozenset(("tr", "td", "th", *_TABLE_PARTS)),
    **dict.fromkeys(("thead", "tbody", "tfoot"), _TABLE_PARTS),
}
"""Elements whose end tag may be left out, and those whose beginning ends them, in documents that
are valid or not. Source: HTML Standard, 13.1.2.4, optional tags, and 13.2.6.4, how they are
parsed."""
DEEPEST = 60
"""Open elements that an end tag is looked for in; more would take quadratic time. An inline element
within as many others ends the sentence, as a block does."""
_ENDING = frozenset().union(*ENDED_BY.values())
_SCOPES = frozenset(("button", "select", "datalist", "object", "svg", "math"))
"""Elements within a sentence in which none that is around them ends."""


def implied_ends(opened: Sequence[str], name: str) -> int:
    """How many of the innermost open elements end where an element begins, without end tags.

    Whatever is open in one that ends, ends with it, if its end tag may be left out too or it is no
    block.
    """
    count = 0
    for depth, each in enumerate(reversed(opened) if name in _ENDING else (), start=1):
        if name in ENDED_BY.get(each, ()):
            count = depth
        elif each in _SCOPES or (each in BLOCKS and each not in ENDED_BY):
            break
    return count
