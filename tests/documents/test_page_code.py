"""What is code in a page: statements of templates, listings of programs, and formulas of TeX."""

import html
import re
import time

import pytest

from pellucid.documents.formats import read_document
from pellucid.documents.html_files import HtmlDocument
from pellucid.documents.html_rules import PAGE
from pellucid.documents.html_templates import without_signs
from pellucid.documents.markup import translate_segments
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated


def read(source: str) -> list[str]:
    translator = Swapping()
    translate_document(source.encode(), translator, "a.html")
    return translator.seen


@pytest.mark.parametrize(
    "statement",
    [
        "<%= name %>",
        '<%= link("a", "<b>") %>',
        "<% if a > b && c %>",
        "{% if n > 1 %}",
        "{% if a < b %}",
        "{{ a && b }}",
        '{{ "a"|default("x > y") }}',
        "{{ 'a &lt; b' }}",
        "{{ a &amp;&amp; b }}",
        "${a < 3 && b}",
        "{a && b}",
        "&lt;%= name %&gt;",
        "https://a.b/?c=1&d=2",
        "https://a.b/?c=1&amp;d=2",
        "{{\n a > b\n}}",
        "<?php if ($n > 1): ?>",
        "<?= $a->b ?>",
    ],
)
def test_a_statement_of_a_template_is_bit_equal(statement: str):
    for source in (f"<p>red house {statement} old cat</p>", f"<pre>red house {statement}\nx</pre>"):
        found = translated(source, "a.html")
        assert found.count(statement) == 1
        assert "HOUSE" in found
    if statement.startswith("<?"):
        return
    for rules in ({}, {"rules": PAGE}):  # the server reads a text without attributes
        document = HtmlDocument(f"red {statement} &amp; &lt;cat", **rules)
        written = document.text_with(translate_segments(document.segments, Swapping()))
        assert statement in written
        assert "&amp;" in written.replace(statement, "")
        assert "&lt;" in written.replace(statement, "")


def test_two_ways_to_write_an_address_stay_two():
    first, second = "https://a.b/?c=1&d=2", "https://a.b/?c=1&amp;d=2"
    found = translated(f"<p>see {first} or see {second} here</p>", "a.html")
    assert 0 < found.index(first) < found.index(second)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (
            '<div {% if x > 1 %}class="a"{% endif %}>red house</div>',
            '<div {% if x > 1 %}class="a"{% endif %}>HOUSE RED</div>',
        ),
        (
            "<option <%= 'selected' if n > 1 %>>red house",
            "<option <%= 'selected' if n > 1 %>>HOUSE RED",
        ),
        (
            '<a href="<%= link("x") %>" title="red house">old</a>',
            '<a href="<%= link("x") %>" title="HOUSE RED">OLD</a>',
        ),
        (
            '<img alt="red {{ a && "b" }}" {% if a < b %}x{% endif %}>',
            '<img alt="RED {{ a && "b" }}" {% if a < b %}x{% endif %}>',
        ),
        (
            "<p><?php if ($n > 1): ?>red house<?php endif ?></p>",
            "<p><?php if ($n > 1): ?>HOUSE RED<?php endif ?></p>",
        ),
        (
            "<code>{{</code> red <b>house</b> <code>}}</code>",
            "<code>{{</code>RED <b>HOUSE</b><code>}}</code>",
        ),
        (
            """<a title="red house {{ old['cat'] }}">old</a>""",
            """<a title="HOUSE RED {{ old['cat'] }}">OLD</a>""",
        ),
        (
            '<a title="red house {{ t("x") }}">old</a>',
            '<a title="HOUSE RED {{ t("x") }}">OLD</a>',
        ),
        (
            '<a title="{% if a == "b" %}red house{% endif %}">old</a>',
            '<a title="{% if a == "b" %}HOUSE RED{% endif %}">OLD</a>',
        ),
        ("<!-- {{ --> red house }}", "<!-- {{ --> HOUSE RED}}"),
        ('<p title="{{">red house }}</p>', '<p title="{{">HOUSE RED}}</p>'),
    ],
)
def test_tags_and_templates_are_told_apart(source: str, found: str):
    assert translated(source, "a.html") == found


@pytest.mark.parametrize("php", ["<?php echo $x['y'] ?>", '<?= $x["y"] ?>', "<?= $a && $b ?>"])
def test_php_that_writes_a_word_is_one(php: str):
    source = f'<p title="red house {php}">see {php}, old cat</p>'
    swapping = Swapping()
    found = translate_document(source.encode(), swapping, "a.html").decode()
    assert swapping.seen[:2] == [f"red house {php}", f"see {php}, old cat"]
    assert found == f'<p title="HOUSE RED {php}">SEE {php}, CAT OLD</p>'


def test_statements_that_never_end_are_read_in_linear_time():
    started = time.process_time()
    for each in ("{{", "<% ", "{% <a", "<?="):
        source = each * 200_000
        assert without_signs(source) == source
    assert time.process_time() - started < 10


LISTINGS = [
    '<pre class="{}">red house</pre>'.format(name)  # noqa: UP032
    for name in (
        *("programlisting", "literal-block", "screen", "prettyprint lang-c", "brush: java"),
        *("src src-emacs-lisp", "sourceCode", "python", "wp-block-code", "crayon-plain-tag"),
        *("highlight-source-js", "language-rust", "hljs", "verbatim", "Highlight"),
    )
] + [
    '<pre lang="python">red house</pre>',
    '<pre data-lang="c++">red house</pre>',
    '<div class="highlight"><pre><span></span>red house</pre></div>',
    '<div class="listingblock"><div class="content"><pre>red house</pre></div></div>',
    '<figure class="highlight"><table><tr><td class="code"><pre>red house</pre></table></figure>',
    '<div class="highlight-python"><pre>red house</pre></div>',
    '<pre><span class="k">red</span> house</pre>',
    '<pre><span class="hljs-keyword">red</span> house</pre>',
    '<pre><b><span class="kw">red</span></b> house</pre>',
    "<pre>int main(void) {\n  red house\n}</pre>",
    "<pre>import re\nred = house(old)\nprint(red)</pre>",
    "<pre>$ git clone red\n$ cd red</pre>",
    "<pre>&lt;red&gt;\n  &lt;house/&gt;\n&lt;/red&gt;</pre>",
    '<div class="lang-python"><pre>red house</pre></div>',
    '<div class="language-text"><pre>red house</pre></div>',
    '<div class="highlight-source-js"><pre>red house</pre></div>',
    '<pre class="code-block">red house</pre>',
    '<pre class="language-js{1,3}">red house</pre>',
    '<div class="fragment"><pre>red house\nold();</pre></div>',
    '<pre class="src">red house\nold cat\ndogs = "two"</pre>',
    '<div class="terminal"><pre>$ red\nhouse\nold cat</pre></div>',
    "<pre>red --house=old</pre>",
    r"<pre>\frac{red}{house} = x</pre>",
    "<pre>$ git pull\nred house\nold cat</pre>",
    "<pre>let red = 5; // house\nlet old = cat;</pre>",
    "<pre>red = 5\nhouse = red\nold.cat(red)</pre>",
    "<pre>public class Red {\n  private int house;\n}</pre>",
    "<pre>class Red:\n    def house(self):\n        return old</pre>",
]


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_is_not_translated(listing: str):
    source = f"<p>old cat</p>{listing}<p>old cat</p>"
    assert translated(source, "a.html") == f"<p>CAT OLD</p>{listing}<p>CAT OLD</p>"


@pytest.mark.parametrize(
    "text",
    [
        "<pre>red house,\nold cat;\n  dogs</pre>",
        '<pre class="verse">red house</pre>',
        '<pre lang="de">red house</pre>',
        "<pre>From: Ann\nTo: Bob\n\nred house\n> old cat\n* dogs</pre>",
        "<pre>let us go then\nfrom red house\nimport of cats\nclass of old</pre>",
        '<pre><span class="author">red house</span></pre>',
        "<pre>red {{ house }}\nold {% cat %}</pre>",
        '<div class="highlight"><p>red house</p></div>',
        '<div class="highlight"><p>old</p></div><pre>red house</pre>',
        '<pre class="code" translate="yes">red house</pre>',
        '<html class="lang-en"><body><h1>old</h1><pre>red house</pre>',
        '<html class="language-c"><body><pre>red house</pre>',
        '<body class="language-en"><article><pre>red house</pre></article>',
        '<body class="highlight"><pre>red house</pre>',
        '<body class="src"><pre>Dear Ann,\nred house.</pre></body>',
        '<div class="lang-fr"><pre>red house</pre></div>',
        '<div class="highlight-box"><pre>red house</pre></div>',
        '<pre class="language-de">red house</pre>',
        '<pre class="literallayout">12 Main Street\nred house</pre>',
        '<pre class="fragment">red house</pre>',
        '<pre class="poem-screen">red house</pre>',
        '<section class="fragment"><div><pre>red house</pre></div></section>',
        '<section class="listing"><div><pre>red house\nold();</pre></div></section>',
        '<div class="screen"><p>x</p><pre>Dear Ann,\nred house.</pre></div>',
        '<div class="source"><pre>red house</pre></div>',
        "<pre>Monday: red(house)\nTuesday: old(cat)\nWednesday: dogs</pre>",
        "<pre>Red(house, old)\nOld(cat, dogs)\nred house</pre>",
        "<pre>Total number of file(s) red\nThe item(s) house</pre>",
        "<pre>Name = red\nAge = house\nCity = Rome</pre>",
        "<pre>Name=red\nAge=house</pre>",
        "<pre>$ 5 for red\n$ 10 for house</pre>",
        "<pre>public red\nprivate house,\nclass war;\nlet love = win</pre>",
        "<pre>make red\nmake house</pre>",
        "<pre>red -> house\nCats -> dogs</pre>",
        "<pre>red house\n=========\nOld cat\n=======</pre>",
    ],
)
def test_a_text_in_lines_is_translated(text: str):
    words = "".join(read(text))
    assert "red" in words
    assert "HOUSE" in translated(text, "a.html") or "{{" in text


FORMULAS = [
    r"\(v = at\)",
    r"\( a_1 \)",
    r"\(x\)",
    r"\[a &lt; b\]",
    "$$x = \\text{the speed}$$",
    "$$\nx = y\n$$",
    "$x^2$",
    r"$\alpha$",
    "$a + b$",
    r"\begin{align} speed &amp;= mass \end{align}",
    '<span class="math inline">speed</span>',
    '<span class="katex"><b>speed</b></span>',
    "<mjx-container>speed</mjx-container>",
    '<span class="mwe-math-element"><img alt="speed is"></span>',
    '<img class="latex" alt="speed is x">',
    '<tt class="docutils literal">speed</tt>',
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_is_not_translated(formula: str):
    found = translated(f"<p>red house {formula} old cat. dogs</p>", "a.html")
    assert found.count(formula) == 1
    assert "HOUSE" in found
    book = read_document(f"<p>{formula}</p>".encode(), "html", "a.xhtml")
    assert not any(segment.has_words for segment in book.segments)


@pytest.mark.parametrize(
    "text",
    [
        "it costs $5 and $6",
        "between $10 and $20 or $30",
        "from US$5/A$6 to $7=$8 dollars",
        r"between \( and \) we",
        "we write $$ and $$ here",
        r"\(the red house\)",
        "$HOME/red and $PATH",
    ],
)
def test_a_price_is_no_formula(text: str):
    [segment] = HtmlDocument(f"<p>{text}</p>").segments
    assert segment.pieces == (text,)


def test_a_page_of_formulas_that_stay_is_the_same():
    source = "".join(f"<p>red {each} house</p>" for each in (*FORMULAS, *LISTINGS))
    document = HtmlDocument(source)
    assert document.text_with(document.segments) == source
    shown = re.sub(r"<[^>]*>", "", "".join(segment.text for segment in document.segments))
    assert "speed" not in html.unescape(shown)
