"""Tags and entities are found, and text with the same marks is not."""

import pytest

from pellucid.text.check.check import examine
from pellucid.text.check.markup import has_markup
from pellucid.text.check.scan import repaired, scan_block


@pytest.mark.parametrize(
    "line",
    [
        "<p>One &quot;word&quot;</p>",
        "it&amp;#39;s",
        "it&#39;s",
        "&#x2019;",
        "&lt;br&gt;",
        "a<br>b",
        "a<BR />b",
        "Smiths &amp; Sons",
        "Smiths &amp Sons",
        "a&nbsp;b",
        "caf&eacute;",
        "Parliament &apos;s",
        "& quot ; x & quot ;",
        "& # 39 ;",
        '<a href="x">link',
        '<g id="1">x</g>',
        "<span class=x>",
        "x</seg>",
        "<unknown/>",
        "<!-- x -->",
        "<![CDATA[x]]>",
        "<!DOCTYPE html>",
        "M\\u00fcnchen",
    ],
)
def test_markup_is_found(line):
    assert has_markup(line)
    assert scan_block(f"a\n{line}".encode()).problems["markup"].tolist() == [1]


@pytest.mark.parametrize(
    "line",
    [
        "a < b and c > d",
        "I <3 you",
        "x<y>z",
        "<unk>",
        "<laughs>",
        "<John Doe>",
        "Doe <doe@example.com>",
        "R&D; AT&T; Q&A",
        "black & white; red & green;",
        "?a=1&lt=2&amp=3&copy=4",
        "&ampere",
        "-> <- <-> <=> <<x>> << b >>",
    ],
)
def test_text_with_the_same_marks_is_none(line):
    assert not has_markup(line)
    assert scan_block(line.encode()).problems["markup"].tolist() == []


def test_a_side_of_markup_is_not_good_and_stays(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.de"
    source.write_text("".join(f"<p>number &quot;{n}&quot;</p>\n" for n in range(20)))
    target.write_text("".join(f"Nummer „{n}“\n" for n in range(20)))
    found = examine(source, target).findings["markup"]
    assert (found.count, found.source_count, found.target_count) == (20, 20, 0)
    assert found.examples[1] == ("<p>number &quot;0&quot;</p>", "Nummer „0“")
    assert repaired("<p>&quot;</p>") == "<p>&quot;</p>"
