"""References, formulas, neighbors, ranges and large first letters, in each format that has them."""

import io
import json
import re
import zipfile

import pytest

from pellucid.documents.folding import Folded
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.items import pieces_of, tree_of
from pellucid.documents.markdown import MarkdownDocument
from pellucid.documents.markup import translate_segments
from pellucid.documents.placement import Aligned
from pellucid.documents.segments import Alone, Close, Open, Segment, all_nodes, read_tree
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated


def html(source: str) -> str:
    return translated(source, "a.html")


def read_in(source: str) -> list[str]:
    stand_in = Swapping()
    translate_document(source.encode(), stand_in, "a.html")
    return stand_in.seen


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("red house<sup>1</sup> stands", "HOUSE<sup>1</sup> RED STANDS"),
        ("red house <a>[1]</a> stands", "HOUSE <a>[1]</a> RED STANDS"),
        ("red house<a>(2)</a>, old cat", "HOUSE<a>(2)</a> RED, OLD CAT"),
        ("red house<b>*</b> stands", "HOUSE<b>*</b> RED STANDS"),
        ("red house<i><sup>†</sup></i> stands", "HOUSE<i><sup>†</sup></i> RED STANDS"),
        ("red house <b>—</b> stands", "HOUSE <b>—</b> RED STANDS"),
        ("red house [<a>1</a>, <a>2</a>] stands", "HOUSE [<a>1</a>, <a>2</a>] RED STANDS"),
        (
            "red house<sup>1</sup><sup>,</sup><sup>2</sup> stands",
            "HOUSE<sup>1</sup><sup>,</sup><sup>2</sup> RED STANDS",
        ),
        ("A cat.<a>1</a> red house", "CAT a.<a>1</a> HOUSE RED"),
        (
            "<sup>1</sup>red house. <sup>2</sup>Old cat.",
            "<sup>1</sup>HOUSE RED. <sup>2</sup>CAT oLD.",
        ),
        ("red house<a role=doc-noteref>b</a> stands", "HOUSE<a role=doc-noteref>b</a> RED STANDS"),
        ("cat, <a>xii</a>, <a>7</a>", "CAT, <a>xii</a>, <a>7</a>"),
        ("<i>n</i><sup>th</sup> red house", "<i>n</i><sup>th</sup> HOUSE RED"),
        ("the K<sup>+</sup>-cat stands", "THE K<sup>+</sup>-STANDS CAT"),
        ("red <s>$10</s> <b>$5</b> house", "<s>$10</s> <b>$5</b> HOUSE RED"),
        ("on <time>2020-01-31</time> we", "<time>2020-01-31</time> WE ON"),
        ("see <a>12</a>–<a>14</a> there", "<a>12</a>–<a>14</a> THERE SEE"),
        ("read <a>5</a> <a>new cats</a> now", "<a>5</a> READ <a>CATS NEW</a> NOW"),
        ("red house<sup>[note 3]</sup> stands", "HOUSE<sup>[note 3]</sup> RED STANDS"),
        (
            "red house<sup><a>[citation needed]</a></sup> x",
            "HOUSE<sup><a>[citation needed]</a></sup> RED X",
        ),
        ("cat, <a>vi</a>, <a>li</a>, 7", "CAT, <a>vi</a>, <a>li</a>, 7"),
        ("open in <a>vi</a> and save", "IN OPEN AND <a>VI</a> SAVE"),
        ("<a>vi</a> red house", "RED <a>VI</a> HOUSE"),
        # A number for a word of the sentence, and a stop.
        ("red <b>5</b> house", "<b>5</b> RED HOUSE"),
        ("red house<b>.</b>", "HOUSE RED<b>.</b>"),
    ],
)
def test_what_has_no_letter_is_one_mark_behind_its_word(source: str, found: str):
    assert html(source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            "<code>-q</code>, <code>--quiet</code>: red house",
            "<code>-q</code>, <code>--quiet</code>: HOUSE RED",
        ),
        ("<b><code>-q</code></b> – red <i>house</i>", "<b><code>-q</code></b> – <i>HOUSE</i> RED"),
        (
            "<a><code>a</code></a> - red house. <kbd>b</kbd>: old cat",
            "<a><code>a</code></a> - HOUSE RED. <kbd>b</kbd>: CAT OLD",
        ),
        ("<code>a</code> – <code>b</code> red house", "<code>a</code> – <code>b</code> HOUSE RED"),
    ],
)
def test_code_that_a_text_explains_stays_before_it(source: str, found: str):
    assert html(source) == found


@pytest.mark.parametrize(
    ("sign", "read"),
    [(":", "red house – old cat"), (" –", "a – red house – old cat")],
)
def test_code_before_a_part_between_two_dashes_is_read_in_its_sentence(sign: str, read: str):
    translator = Swapping()
    source = f"<p><code>a</code>{sign} red house – old cat</p>"
    translate_document(source.encode(), translator, "a.html")
    assert translator.seen[0] == read


@pytest.mark.parametrize(
    "number",
    ["100+", "+1 (555) 010-0199", "£5–£10", "#1", "½", "~50%", "5,–", "10×", "2019", "24/7"],
)
def test_a_number_in_an_element_is_read_with_the_words_around_it(number: str):
    assert read_in(f"call <a>{number}</a> cats")[0] == f"call {number} cats"


@pytest.mark.parametrize(
    "formula",
    [
        "H<sub>2</sub>O",
        "m<sup>2</sup>",
        "NA<sub>f</sub>",
        "H<sub>2</sub>SO<sub>4</sub>",
        "mol<sup>−1</sup>",
        "Ca<sup>2+</sup>",
        "V<sup>th</sup>",
        "3.1<sup>e</sup>",
        "<i>x</i><sub>i</sub>",
        "<sup>14</sup>C",
    ],
)
def test_a_formula_stays_whole(formula: str):
    found = html(f"the old {formula} here now")
    assert formula in found
    assert re.sub(r"<[^>]*>", "", found.replace(formula, "")).split() != []


@pytest.mark.parametrize(
    ("source", "read", "said", "found"),
    [
        ("the 1<sup>st</sup> of May", "the 1st of May", "am 1. Mai", "am 1<sup></sup>. Mai"),
        ("a 2<sup>nd</sup> cat", "a 2nd cat", "un 2e chat", "un 2<sup>e</sup> chat"),
        ("le XIX<sup>e</sup> mur", "le XIXe mur", "the 19th wall", "the 19<sup>th</sup> wall"),
        ("M<sup>me</sup> Dupont", "Mme Dupont", "Mrs Dupont", "Mrs Dupont<sup></sup>"),
        (
            "<b>1<sup>er</sup> mai</b>, 2<sup><i>e</i></sup> jour",
            "1er mai, 2e jour",
            "2nd day, 1st May",
            "<b>2<sup><i>nd</i></sup></b> day, 1<sup>st</sup> May",
        ),
        (
            "1<sup>st</sup> and 1<sup>st</sup>",
            "1st and 1st",
            "1. e 1o",
            "1<sup></sup>. e 1<sup>o</sup>",
        ),
    ],
)
def test_the_raised_ending_of_an_ordinal_is_translated_with_it(
    source: str, read: str, said: str, found: str
):
    seen = []

    class Saying:
        source_language = "en"

        def translate(self, sentences: list[str], *, align: bool) -> list[Aligned]:
            seen.extend(sentences)
            return [Aligned(said, ()) for _ in sentences]

    result = translate_document(source.encode(), Saying(), "a.html").decode()
    assert seen == [read]
    assert result == found


def test_a_raised_ending_that_is_gone_leaves_no_signs_in_markdown():
    assert translated("a 1^st^ cat", "a.md") == "1^ST^ A CAT"
    folded = MarkdownDocument(b"a 1^st^ cat", "a.md")
    [segment] = folded.segments
    opened, closed = segment.marks
    assert folded.write([Segment(("am 1", opened, closed, ". Tag"))]) == b"am 1. Tag"


@pytest.mark.parametrize(
    ("source", "read", "found"),
    [
        ("the %1$s<sup>th</sup> here", "the %1$s here", "%1$s<sup>th</sup>"),
        ("the %dx<sup>2</sup> here", "the %dx here", "%dx<sup>2</sup>"),
        ("see http://x.org/a<sup>1</sup> here", "see http://x.org/a here", "/a<sup>1</sup>"),
        ("ask a.b@x.eu<sub>1</sub>", "ask a.b@x.eu", "a.b@x.eu<sub>1</sub>"),
        ("a <sup>1</sup>N@x.org here", "a N@x.org here", "<sup>1</sup>N@x.org"),
        ("an H<sub>2</sub>SO<sub>4</sub>www.x.org", "an H2SO4www.x.org", "<sub>4</sub>www.x.org"),
    ],
)
def test_an_index_beside_a_placeholder_or_an_address_cuts_nothing_from_it(
    source: str, read: str, found: str
):
    assert read_in(source)[0] == read
    assert found in html(source)


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("a red house long <sup>Note:</sup> and more", ["a red house long Note: and more"]),
        ("<sup>Note:</sup> red cats <sub>below</sub>", ["Note: red cats below"]),
        ("<sup>Note</sup>", ["Note"]),
        # the mark of a word: the sentence is read with code, and again without
        (
            "<b><code>foo()</code></b><sup>Note</sup> red house",
            ["foo() red house", "red house"],
        ),
        ("le 1 <sup>er</sup> mai, house<sup>see</sup> now", ["le 1 mai, house now"]),
        ("in v<i><sub>max</sub></i> now", ["in v now"]),
    ],
)
def test_a_raised_word_that_touches_no_other_is_read(source: str, read: list[str]):
    assert read_in(source) == read


@pytest.mark.parametrize("word", ["Haus", "spielen", "Hut"])
def test_a_word_with_a_note_is_no_formula(word: str):
    assert read_in(f"das {word}<sup>2</sup> hier") == [f"das {word} hier"]


@pytest.mark.parametrize(
    ("source", "read"),
    [
        # a note behind a word that ends in a combining mark, or has no case
        ("पानी<sup>2</sup> ठंडा है", ["पानी ठंडा है"]),
        ("जल<sup>2</sup> ठंडा है", ["जल ठंडा है"]),
        ("यह पानी<b>12</b> है", ["यह पानी है"]),
        ("สวัสดี<sup>1</sup> ครับ", ["สวัสดี ครับ"]),
        ("你好<sup>1</sup>世界", ["你好世界"]),
        ("בית<sup>1</sup> כאן", ["בית כאן"]),
        ("नमस्ते <sup>टिप्पणी</sup> दुनिया", ["नमस्ते टिप्पणी दुनिया"]),
        # an accent by itself is a part of its letter
        ("<sup>14</sup>E\u0301cole est belle", ["E\u0301cole est belle"]),
        ("H<sub>2</sub>E\u0301a is red", ["H2E\u0301a is red", "is red"]),
        ("cafe\u0301<sup>2</sup> noir", ["cafe\u0301 noir"]),
        # the number of a verse, before a word of one letter
        ("<sup>1</sup>В начале было слово", ["В начале было слово"]),
        ("<sup>3</sup>Y dijo", ["Y dijo"]),
    ],
)
def test_words_are_words_with_their_marks_and_in_every_script(source: str, read: list[str]):
    assert read_in(source) == read


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<a>Red house</a><a>Blue car</a>", ["Red house", "Blue car"]),
        ("<a>Red house</a> <button>Blue car</button>", ["Red house", "Blue car"]),
        ("<a>Red</a> | <b>Blue car</b> · <i>Cat</i>", ["Red", "Blue car", "Cat"]),
        ("Home page | <a>Red house</a>", ["Home page", "Red house"]),
        ("<a>Red</a> <span class='x badge'>New</span>", ["Red", "New"]),
        ("<span>Red house</span><span>Blue car</span>", ["Red house", "Blue car"]),
        ("<x-a>Red house</x-a><x-b>Blue car</x-b>", ["Red house", "Blue car"]),
        ("see <a>red house</a><a>blue car</a> here", ["see red house", "blue car here"]),
        # These are one sentence.
        ("<b>Red:</b> <i>an old house</i>", ["Red: an old house"]),
        ("<span>The</span> <span>dog</span> <span>runs</span>", ["The dog runs"]),
        ("<span>un</span><span>known</span>", ["unknown"]),
        # A bar with spaces divides whatever is on its sides.
        ("the <a>red house</a> | here", ["here", "the red house"]),
        ("by <a>Ann</a> | 3 cats | <time>now</time>", ["3 cats", "now", "by Ann"]),
        ("by <a>Ann</a> | <a>May 5</a> | <a>3 cats</a>", ["May 5", "3 cats", "by Ann"]),
        # The name of a list of links, the sections of a page, what wikis have behind a heading
        ("Share: <a>Red house</a> <a>Blue car</a>", ["Share:", "Red house", "Blue car"]),
        ("1.2 <a>Red house</a> ... 12", ["Red house"]),
        ("Red house <a>[edit]</a>", ["Red house", "edit"]),
        (
            "<span>Red house</span><span class=mw-editsection><i>[</i><a>edit</a><i>]</i></span>",
            ["Red house", "edit"],
        ),
        ("Red house<sup>now with more</sup>", ["Red house", "now with more"]),
        ("<span>From 10 €</span><span>Read more</span>", ["From 10 €", "Read more"]),
        ("<b>Price</b><span>Free of charge</span>", ["Price", "Free of charge"]),
        ("<b>Pay</b><span>Pal</span>", ["PayPal"]),
    ],
)
def test_neighbors_are_as_many_texts(source: str, found: list[str]):
    assert read_in(source) == found


@pytest.mark.parametrize("sign", ["»", "/", ">", "|", "›", "·"])
def test_a_sign_between_the_steps_of_a_path_comes_once(sign: str):
    sign = sign.replace(">", "&gt;")
    source = f"<a>Home</a> {sign} <a>Red cats</a> {sign} red house"
    found = f"<a>hOME</a> {sign} <a>CATS rED</a> {sign} HOUSE RED"
    assert html(source) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<a>A dog</a>", "<a>A dog rennt.</a>"),
        ("<b><i>A dog</i></b>", "<b><i>A dog rennt.</i></b>"),
        ("(<a>A dog</a>)", "(<a>A dog rennt.</a>)"),
        ("1. <a>A dog</a> ..... 12", "1. <a>A dog rennt.</a> ..... 12"),
        ("<img><a>A dog</a><img>", "<img><a>A dog rennt.</a><img>"),
        ("<a>A dog</a>.", "<a>A dog. rennt</a>."),
        # a large first letter with its vowel sign, and without
        ("<b>पा</b>नी है", "<b>पा</b>नी है rennt."),
        ("<b>प</b>ानी है", "<b>पा</b>नी है rennt."),
    ],
)
def test_a_mark_around_the_whole_goes_around_the_whole(source: str, found: str):
    class Stopping(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(f"{sentence} rennt.")

    document = HtmlDocument(source)
    assert document.text_with(translate_segments(document.segments, Stopping())) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<span>T</span>he dog runs", "<span>D</span>OG tHE RUNS"),
        ("<b>“T</b>he dog", "<b>“t</b>HE DOG"),
        ("<i><b>T</b>he</i> dog runs", "<b>D</b>OG <i>tHE</i> RUNS"),
        ("<span>L</span>’homme dort", "<span>l</span>’DORT HOMME"),
        # A word, and no large letter.
        ("<b>A</b> dog", "DOG <b>a</b>"),
    ],
)
def test_a_large_first_letter_is_part_of_its_word(source: str, found: str):
    assert html(source) == found


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("don<i>’</i>t go from 1859<b>–</b>1930", "don’t go from 1859–1930"),
        ("<i>Anne</i><b>-</b>Marie and rock<span>&amp;</span>roll", "Anne-Marie and rock&roll"),
        ("it costs 5<b>€</b> or 5 <b>%</b> now", "it costs 5€ or 5 % now"),
        ("it costs 5<b>.50</b>, 12<span>,000</span> now", "it costs 5.50, 12,000 now"),
        ("red houses <b>&amp;</b> old cats", "red houses & old cats"),
        ("red houses<b>*</b> and<sup>†</sup> cats", "red houses and cats"),
    ],
)
def test_signs_of_a_word_or_a_number_are_read_whatever_their_format(source: str, read: str):
    assert read_in(f"<p>{source}</p>")[0] == read


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("press <button>red</button> now", ["press red now"]),
        ("a <x-tip>red</x-tip> <output>house</output> stands", ["a red house stands"]),
        ("the <picture><source><img></picture> house", ["the  house"]),
        (
            "take <select><option>red house<option>cat</select> now",
            ["red house", "cat", "take  now"],
        ),
        ("say <textarea>red house</textarea> now", ["red house", "say  now"]),
        ("red <video>no video</video> house", ["no video", "red  house"]),
        ("<ruby>red<rt>aka</rt></ruby> house", ["red house"]),
        ("the <select><option>red house", ["red house", "the"]),
    ],
)
def test_phrasing_content_cuts_no_sentence(source: str, found: list[str]):
    assert sorted(read_in(source)) == sorted(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('<div translate="no">a b<p translate="yes">c d</p>e f</div>', ["c d"]),
        ('<div translate="no">a b<p translate>c d<i translate=no>e f</i></p></div>', ["c d"]),
        ('<p>a b <i translate="no">c <b translate="yes">d e</b></i> f</p>', ["d e", "a b  f"]),
        ('<p translate="maybe">a b</p>', ["a b"]),
        ('<code translate="yes">a b</code>', ["a b"]),
        ('<p translate="no" class="x">a <script translate="yes">b c</script></p>', []),
        ('<a class="u-url mention">@<span>user</span></a> hallo du', [" hallo du"]),
        ('<p>see <a class="mention hashtag">#<span>RedHouse</span></a></p>', ["see "]),
        ('<span role="doc-pagebreak" title="xii">xii</span>red house', ["red house"]),
        ('<nav epub:type="page-list"><a>iv</a><a title="a b">Cover</a></nav>', []),
        ('<div translate="no"><p translate="yes">c d<p>a b</div>', ["c d"]),
        ('<ul translate="no"><li translate="yes">c <b>d</b><li>a b</ul>e f', ["c d", "e f"]),
        ('<div translate="no"><p translate="yes">c d</div><p>e f', ["c d", "e f"]),
    ],
)
def test_what_an_element_says_of_its_translation_holds_for_it(source: str, found: list[str]):
    assert [each.text for each in HtmlDocument(source).segments] == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<span class='tag-x'>New</span> red house", ["New", "red house"]),
        ("red house <span class=badge>sale now</span>", ["red house", "sale now"]),
        ("see <span class=badge>new</span> here", ["see new here"]),
        ("<title>Red house | Blue cars</title>", ["Red house", "Blue cars"]),
        ("<title>Red house {{ x | date }}</title>", ["Red house {{ x | date }}"]),
        ("<a>Home</a> / <a>Cats</a> / Blue car", ["Home", "Cats", "Blue car"]),
        ("see <a>cats</a> / <a>dogs</a>", ["see cats / dogs"]),
        ("<b>1.2</b><i>Red house</i>", ["Red house"]),
        ("<a><span>1</span> <span>Red house</span></a>", ["Red house"]),
        ("<span>red house</span><span>3 days ago</span>", ["red house", "3 days ago"]),
    ],
)
def test_what_stands_beside_a_text_is_no_part_of_it(source: str, found: list[str]):
    """Badges, titles of pages, paths, and numbers of headings, as generators write them."""
    seen = [each for each in read_in(source) if any(map(str.isalpha, each))]
    assert seen[: len(found)] == found


def test_ranges_of_two_elements_are_pairs():
    found = translate_segments(
        [Segment(("the one ", Alone(0), "red house", Alone(1, ends=0), " stands"))], Swapping()
    )
    assert found == [Segment(("ONE THE ", Alone(0), "HOUSE RED", Alone(1, ends=0), " STANDS"))]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('<bpt id="1">[b]</bpt>', '<ept id="1">[/b]</ept>'),
        ('<bpt id="1" rid="7"/>', '<ept id="2" rid="7"/>'),
        ('<bx id="1"/>', '<ex id="1"/>'),
        ('<sc id="1"/>', '<ec startRef="1"/>'),
        ('<x id="START_LINK" ctype="x-a"/>', '<x id="CLOSE_LINK" ctype="x-a"/>'),
        ('<x id="START_TAG_SPAN_1"/>', '<x id="CLOSE_TAG_SPAN"/>'),
        ("&lt;b&gt;", "&lt;/b&gt;"),
    ],
)
def test_pairs_of_xliff_are_never_closed_before_they_are_opened(begin: str, end: str):
    source = f"<source>the {begin}red{end} house stands</source>"
    found = translated(
        f'<xliff version="1.2"><file><body><trans-unit>{source}</trans-unit></body></file></xliff>',
        "a.xlf",
    )
    assert f">{begin}RED{end} THE STANDS HOUSE</target>" in found


def test_pairs_of_angular_within_each_other_keep_their_partners():
    begin, end = '<x id="START_TAG_B"/>', '<x id="CLOSE_TAG_B"/>'
    source = f"<source>{begin}red {begin}old{end} house{end} stands here</source>"
    found = translated(
        f'<xliff version="1.2"><file><body><trans-unit>{source}</trans-unit></body></file></xliff>',
        "a.xlf",
    )
    assert f">{begin}{begin}OLD{end} RED STANDS HOUSE{end} HERE<" in found


def test_ranges_that_overlap_begin_before_they_end():
    """With one alignment or another, and none."""
    pieces = ("red ", Alone(0), "old ", Alone(1), "cat", Alone(2, ends=0), " is", Alone(3, ends=1))
    for words in ("red old cat is", "is cat old red", "x"):

        class Fixed(Swapping):
            def one(self, sentence: str, align: bool, words: str = words) -> Aligned:
                links = [
                    ((sentence.index(each), sentence.index(each) + len(each)), found.span(), 1.0)
                    for found in re.finditer(r"\w+", words)
                    if (each := found[0]) in sentence
                ]
                return Aligned(words, tuple(links))

        [found] = translate_segments([Segment(pieces)], Fixed())
        marks = [mark.number for mark in found.marks]
        assert sorted(marks) == [0, 1, 2, 3]
        assert marks.index(0) < marks.index(2)
        assert marks.index(1) < marks.index(3)


def test_marks_with_an_order_keep_it():
    head = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    found = translated(f"{head}the red<00:00:01.000> house<00:00:02.000> stands\n", "a.vtt")
    assert found.index("<00:00:01.000>") < found.index("<00:00:02.000>")
    times = [Alone(0, in_order=True), Alone(1, in_order=True)]
    found = translate_segments([Segment(("red", times[0], " house", times[1], " now"))], Swapping())
    assert list(found[0].marks) == times


@pytest.mark.parametrize(
    ("source", "name", "found"),
    [
        ("red house<sup>1</sup> stands\n", "a.md", "HOUSE<sup>1</sup> RED STANDS\n"),
        ("the H<sub>2</sub>O here\n", "a.md", "H<sub>2</sub>O HERE THE\n"),
        ("red [house](x) <b>old cat</b> is\n", "a.md", "[HOUSE](x) RED <b>CAT OLD</b> IS\n"),
        ("[Red house](x) | [Blue car](y)\n", "a.md", "[HOUSE rED](x) | [CAR bLUE](y)\n"),
        ("red house **†** stands\n", "a.md", "HOUSE **†** RED STANDS\n"),
        ('{"a":"red house<sup>1</sup> is"}', "a.json", '{"a":"HOUSE<sup>1</sup> RED IS"}'),
        ('{"a":"red H<sub>2</sub>O is"}', "a.json", '{"a":"H<sub>2</sub>O IS RED"}'),
        ('msgid "red house<b>*</b> is"\nmsgstr ""', "a.po", None),
    ],
)
def test_references_stay_in_texts_of_programs_and_writers(source: str, name: str, found: str):
    written = translated(source, name)
    if found is None:
        assert 'msgstr "HOUSE<b>*</b> RED IS"' in written
    else:
        assert written == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Tom &amp; Jerry run", "tOM&amp;RUN jERRY"),
        ("&quot;red house&quot; cat &#8212; is", "&quot;RED HOUSE&quot;CAT&#8212;IS"),
        ("a < b &amp; c", "A&lt;B&amp;C"),
        ("File &Open of x; y", "oPEN fILE OF &X; Y"),
        ("red &bogus; house", "BOGUS RED &; HOUSE"),
    ],
)
def test_references_of_html_in_strings_are_read_as_characters(text: str, found: str):
    """``&Open`` is a key of a menu, and no reference."""
    written = json.loads(translated(json.dumps({"a": text}), "a.json"))["a"]
    if "&bogus" in text or "&Open" in text:
        assert "&amp;" not in written
    else:
        assert written == found
    source = text.replace("&", "&amp;").replace("<", "&lt;")
    unit = f"<trans-unit><source>{source}</source></trans-unit>"
    target = translated(f'<xliff version="1.2"><file>{unit}</file></xliff>', "a.xlf")
    expected = written.replace("&", "&amp;").replace("<", "&lt;")
    assert f">{expected}</target>" in target


def archive(parts: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written:
        for name, text in parts.items():
            written.writestr(name, text)
    return data.getvalue()


def part_of(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        return read.read(name).decode()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx_of(runs: str) -> str:
    """The paragraph of runs in a Word file, translated."""
    source = f'<w:document xmlns:w="{WORD}"><w:body><w:p>{runs}</w:p></w:body></w:document>'
    written = translate_document(archive({"word/document.xml": source}), Swapping(), "a.docx")
    found = part_of(written, "word/document.xml")
    return found[found.index("<w:p>") + 5 : found.index("</w:p>")]


def words_of_docx(runs: str) -> str:
    return re.sub("<[^>]*>", "", docx_of(runs))


@pytest.mark.parametrize(
    "properties",
    ['<w:vertAlign w:val="superscript"/>', '<w:position w:val="6"/>', "<w:b/>"],
)
def test_a_typed_number_of_a_note_stays_behind_its_word_in_docx(properties: str):
    note = f"<w:r><w:rPr>{properties}</w:rPr><w:t>1</w:t></w:r>"
    found = docx_of(
        f'<w:r><w:t>red house</w:t></w:r>{note}<w:r><w:t xml:space="preserve"> stands</w:t></w:r>'
    )
    assert re.sub("<[^>]*>", "", found).strip() == "HOUSE1 RED STANDS"
    assert properties in found


@pytest.mark.parametrize(
    ("before", "signs", "after", "found"),
    [
        ("m s", ["<w:noBreakHyphen/><w:t>1</w:t>"], " red cat", "s^‑1| RED M CAT|"),
        ("mol", ["<w:noBreakHyphen/><w:t>1</w:t>"], " red cat", "mol^‑1| CAT RED|"),
        ("10", ["<w:t>-</w:t>", "<w:t>3</w:t>"], " red cat", "10^-3| CAT RED|"),
        ("x", ["<w:t>–</w:t>"], "ray here", "x^–|ray HERE|"),
    ],
)
def test_a_raised_sign_of_docx_stays_raised(before: str, signs: list[str], after: str, found: str):
    raised = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
    exponent = "".join(f"{raised}{sign}</w:r>" for sign in signs)
    plain = '<w:r><w:t xml:space="preserve">'
    written = docx_of(f"{plain}{before}</w:t></w:r>{exponent}{plain}{after}</w:t></w:r>")
    pieces = written.replace(f"</w:r>{raised}", "^").replace("</w:r>", "|")
    assert re.sub("<[^>]*>", "", pieces) == found


def test_a_sign_from_another_font_is_a_letter_of_its_word_in_docx():
    """The font that the rest of the text has lacks the apostrophe."""
    sign = '<w:r><w:rPr><w:rFonts w:ascii="Symbol"/></w:rPr><w:t>’</w:t></w:r>'
    found = docx_of(f"<w:r><w:t>we don</w:t></w:r>{sign}<w:r><w:t>t go</w:t></w:r>")
    assert "Symbol" not in found


@pytest.mark.parametrize(
    ("properties", "blank", "is_kept"),
    [
        ('<w:u w:val="single"/>', "     ", True),
        ('<w:highlight w:val="red"/>', "\u00a0 ", True),
        ("<w:strike/>", "  ", True),
        ('<w:u w:val="none"/><w:strike w:val="0"/>', "     ", False),
        ('<w:shd w:fill="auto"/>', "     ", False),
        ('<w:u w:val="single"/>', " ", False),
        ("<w:b/>", "     ", False),
    ],
)
def test_a_line_to_write_on_stays_between_its_words_in_docx(
    properties: str, blank: str, is_kept: bool
):
    plain = '<w:r><w:t xml:space="preserve">'
    line = f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{blank}</w:t></w:r>'
    found = docx_of(f"{plain}the name is </w:t></w:r>{line}{plain} red cat</w:t></w:r>")
    assert (f"{plain}NAME THE RED IS </w:t></w:r>{line}" in found) == is_kept
    assert ("rPr" in found) == is_kept


@pytest.mark.parametrize(("before", "after"), [("<w:ins>", "</w:ins>"), ("", "")])
def test_a_field_that_ends_in_another_holder_begins_before_it_ends(before: str, after: str):
    """ "Red" and "cats" change places, and with them the marks beside them."""
    marks = [f'<w:fldChar w:fldCharType="{each}"/>' for each in ("begin", "separate", "end")]
    marks.insert(1, "<w:instrText>HYPERLINK x</w:instrText>")
    head, tail = "".join(f"<w:r>{each}</w:r>" for each in marks[:3]), f"<w:r>{marks[3]}</w:r>"
    now, red, cats, here = (
        f'<w:r><w:t xml:space="preserve">{each}</w:t></w:r>'
        for each in ("now see ", "red ", "cats", " here")
    )
    found = docx_of(f"{now}{head}{red}{before}{cats}{tail}{after}{here}")
    places = [found.index(each) for each in marks]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("instruction", "shown"),
    [
        ("hyperlink x", "RED CAT"),
        ("FORMTEXT", "RED CAT"),
        (" FormText ", "RED CAT"),
        ("PAGE", "red cat"),
        ("", "red cat"),
    ],
)
def test_what_people_wrote_into_a_field_of_docx_is_translated(instruction: str, shown: str):
    text = "<w:r><w:t>red cat</w:t></w:r>"
    marks = [f'<w:r><w:fldChar w:fldCharType="{e}"/></w:r>' for e in ("begin", "separate", "end")]
    written = f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    field = f"{marks[0]}{written}{marks[1]}{text}{marks[2]}"
    simple = f'<w:fldSimple w:instr="{instruction}">{text}</w:fldSimple>'
    for each in (field, simple):
        found = docx_of(f"<w:r><w:t>the house:</w:t></w:r>{each}<w:r><w:t>, see</w:t></w:r>")
        assert f">{shown}<" in found


@pytest.mark.parametrize("end", ["\n", "\r\n  ", "\n\t"])
def test_a_line_end_of_the_file_ends_no_sentence_of_docx(end: str):
    found = words_of_docx(f"<w:r><w:t>red cat sat on{end}the mat. We</w:t></w:r>")
    assert found == "CAT RED ON SAT MAT THE. wE"


@pytest.mark.parametrize("value", ["1", "-3", "1pt"])
def test_a_slightly_shifted_word_of_docx_is_a_word(value: str):
    """As converters from PDF write it; even where it touches another word."""
    shifted = f'<w:r><w:rPr><w:position w:val="{value}"/></w:rPr><w:t>ten</w:t></w:r>'
    found = words_of_docx(
        f'<w:r><w:t xml:space="preserve">the red </w:t></w:r>{shifted}<w:r><w:t>fold</w:t></w:r>'
    )
    assert found == "RED THE TENFOLD"


@pytest.mark.parametrize(
    ("runs", "found"),
    [
        ([("the red ", None), ("    ", "u"), (" cat", None)], "RED |_    | THE CAT"),
        ([("red cat sat on\nthe mat", None)], "CAT RED ON SAT MAT THE"),
        ([("the red ", None), ("ten", "5000"), ("fold", None)], "RED THE |^TENFOLD"),
        ([("red house", None), ("1", "30000"), (" stands", None)], "HOUSE|^1| RED STANDS"),
        ([("red house", None), ("[1]", "30000"), (".", None)], "HOUSE RED|^[1]|."),
        ([("red ", None), ("house", "b"), ("*", "30000"), (" is", None)], "HOUSE|^*| RED IS"),
        ([("1", "30000"), (" Red house", None)], "^1| HOUSE rED"),
        ([("H", None), ("2", "-25000"), ("O is old", None)], "H|^2|O OLD IS"),
        ([("red house", None), ("1,2", "30000"), (" is", None)], "HOUSE|^1,2| RED IS"),
    ],
)
def test_raised_and_lowered_runs_of_slides_stay_beside_their_words(runs: list, found: str):
    pptx = pytest.importorskip("pptx")
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    paragraph = slide.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    for text, form in runs:
        run = paragraph.add_run()
        run._r.t.text = text
        run.font.bold = form == "b" or None
        run.font.underline = form == "u" or None
        if form and form not in ("b", "u"):
            run.font._element.set("baseline", form)
    packed = io.BytesIO()
    deck.save(packed)

    written = translate_document(packed.getvalue(), Swapping(), "a.pptx")
    shapes = pptx.Presentation(io.BytesIO(written)).slides[0].shapes
    pieces = [
        "^" * ("baseline" in run.font._element.attrib) + "_" * bool(run.font.underline) + run.text
        for run in shapes[0].text_frame.paragraphs[0].runs
    ]
    assert "|".join(pieces) == found


def test_a_raised_number_stays_behind_its_word_in_odt():
    spaces = "".join(
        f' xmlns:{each}="urn:oasis:names:tc:opendocument:xmlns:{each}:1.0"'
        for each in ("text", "style", "office")
    )
    source = (
        f'<office:document-content{spaces}><style:style style:name="T1"><style:text-properties'
        ' style:text-position="super 58%"/></style:style><text:p>m<text:span text:style-name="T1">'
        "2</text:span> red house<text:span>*</text:span> is</text:p></office:document-content>"
    )
    written = translate_document(archive({"content.xml": source}), Swapping(), "a.odt")
    found = part_of(written, "content.xml")
    assert 'm<text:span text:style-name="T1">2</text:span>' in found
    assert "HOUSE<text:span>*</text:span>" in found


@pytest.mark.parametrize(
    ("position", "found"),
    [("super", "house"), ("sub 58%", "house"), ("-33% 58%", "house"), ("3% 100%", "HOUSE")],
)
def test_a_text_of_odt_is_raised_from_a_tenth_of_a_line_on(position: str, found: str):
    spaces = "".join(
        f' xmlns:{each}="urn:oasis:names:tc:opendocument:xmlns:{each}:1.0"'
        for each in ("text", "style", "office")
    )
    source = (
        f'<office:document-content{spaces}><style:style style:name="T1"><style:text-properties'
        f' style:text-position="{position}"/></style:style><text:p>the red'
        '<text:span text:style-name="T1">house</text:span></text:p></office:document-content>'
    )
    written = translate_document(archive({"content.xml": source}), Swapping(), "a.odt")
    assert f"{found}</text:span>" in part_of(written, "content.xml")


def test_folding_takes_linear_time():
    """Each of these would take minutes otherwise; what is compared is the work of parts."""
    marks = [piece for n in range(20_000) for piece in (Open(n), Close(n))]
    assert Folded(Segment(tuple(marks))).parts == [Segment(())]
    starts = tuple(Alone(n) for n in range(20_000))
    ends = tuple(Alone(20_000 + n, ends=n) for n in range(20_000))
    for pieces in (("a", *starts, "b", *ends), ("a", *starts, "b", *reversed(ends), "c")):
        folded = Folded(Segment(pieces))
        again = folded.unfolded([[*part.pieces] for part in folded.parts])
        assert len(again.marks) == 40_000


def test_an_identity_changes_nothing_that_was_folded():
    pieces = ("a ", Open(0, "script"), " 1 ", Close(0), "b", Open(1), "C", Close(1), "ar")
    folded = Folded(Segment(pieces))
    assert folded.unfolded([part.pieces for part in folded.parts]) == Segment(pieces)


def test_a_comments_mark_stays_at_the_end_of_its_range():
    pieces = ("the one ", Alone(0), "red house", Alone(1, ends=0), Alone(2), " stands")
    [found] = translate_segments([Segment(pieces)], Swapping())
    assert found.pieces == ("ONE THE ", *pieces[1:2], "HOUSE RED", *pieces[3:5], " STANDS")


def test_a_pair_leaves_the_words_of_its_neighbors_to_them():
    """The words of the first pair come between the first and the other words of the second."""

    class Turned(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            words = {"C": "c", "A": "a", "B": "b", "D": "d", "E": "e"}
            text = " ".join(words)
            links = [
                ((sentence.index(ours),) * 2, (text.index(theirs),) * 2, 1.0)
                for theirs, ours in words.items()
            ]
            return Aligned(text, tuple(((a, a + 1), (b, b + 1), w) for (a, _), (b, _), w in links))

    pieces = (Open(0), "a b", Close(0), " ", Open(1), "c d e", Close(1), " f")
    [found] = translate_segments([Segment(pieces)], Turned())
    assert found.pieces == ("C ", Open(0), "A B", Close(0), " ", Open(1), "D E", Close(1))


def test_a_pair_with_words_is_never_around_nothing():
    """Without any alignment each goes around a word that is left."""

    class Silent(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned("eins zwei drei")

    pieces = ("x ", Open(0), "a b", Close(0), " ", Open(1), "c d", Close(1), " y")
    [found] = translate_segments([Segment(pieces)], Silent())
    text = "".join(piece if isinstance(piece, str) else "|" for piece in found.pieces)
    around = text.split("|")[1::2]
    assert len(set(around)) == 2
    assert set(around) < {"eins", "zwei", "drei"}


def test_a_reference_behind_a_pair_stays_behind_it():
    assert html("see <i>the red</i><sup>1</sup> house") == "<i>THE SEE HOUSE RED</i><sup>1</sup>"


@pytest.mark.parametrize("text", ["past!—and red. A cat", "red.)", "MSO_ID.FRENCH is here"])
def test_sentences_without_a_space_between_stay_so(text: str):
    class Capitals(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(sentence.upper())

    [found] = translate_segments([Segment((text,))], Capitals())
    assert found.text == text.upper()


def test_what_is_said_again_stays_to_the_byte():
    class Same(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(sentence)

    pieces = ("R", Open(0, "script"), "i ", Close(0), "are (", Open(1), "), ", Close(1), "but")
    assert translate_segments([Segment(pieces)], Same()) == [Segment(pieces)]


def test_marks_may_be_nested_to_any_depth():
    depth = 2000
    opened, closed = map(Open, range(depth)), map(Close, reversed(range(depth)))
    pieces = (*opened, "red house", *closed)
    _, root = read_tree(pieces)
    assert [node.number for node in all_nodes(root)] == list(range(depth))
    assert tuple(pieces_of(tree_of(pieces))) == pieces
