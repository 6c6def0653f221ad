"""Marks stand on the aligned words, exactly once and well nested; what is kept is bit-equal."""

import json
import random
import re

import pytest

from pellucid.decoding.warnings import TranslationWarning
from pellucid.documents import placement
from pellucid.documents.markup import Counts, translate_segments
from pellucid.documents.placement import Aligned, Placer, SentencePair, Unit, units_of
from pellucid.documents.plain import TextDocument
from pellucid.documents.protected import protect
from pellucid.documents.segments import Alone, Close, Open, Segment
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated


def result(*pieces, **options) -> tuple:
    return translate_segments([Segment(pieces)], Swapping(), **options)[0].pieces


def test_a_pair_goes_to_the_word_that_is_aligned():
    found = result("the ", Open(0), "red", Close(0), " house stands")
    assert found == (Open(0), "RED", Close(0), " THE STANDS HOUSE")


def test_a_pair_around_several_words_stays_one_pair():
    found = result(Open(0), "red house", Close(0), " here")
    assert found == (Open(0), "HOUSE RED", Close(0), " HERE")


def test_pairs_within_pairs_stay_within_them():
    found = result("see ", Open(0), "the ", Open(1), "old", Close(1), " house", Close(0), " now")
    assert found == (Open(0), "THE SEE HOUSE ", Open(1), "OLD", Close(1), Close(0), " NOW")


def test_punctuation_outside_of_a_pair_stays_outside():
    assert result(Open(0), "red house", Close(0), ".") == (Open(0), "HOUSE RED", Close(0), ".")


def test_a_pair_over_two_sentences_begins_in_one_and_ends_in_the_other():
    found = result("One ", Open(0), "cat. Two", Close(0), " dogs.")
    text = "".join(piece if isinstance(piece, str) else "|" for piece in found)
    assert text == "|CAT oNE. DOGS tWO|."


def test_a_note_stays_behind_its_word():
    assert result("red house", Alone(7), " stands") == ("HOUSE", Alone(7), " RED STANDS")


def test_a_pair_around_the_end_of_a_word_goes_around_its_translation():
    found = result("a red", Open(0), "dish", Close(0), " house")
    assert found == (Open(0), "REDDISH", Close(0), " A HOUSE")


def test_a_sign_at_the_end_of_a_pair_stays_in_it():
    found = result(Open(0), "red house!", Close(0), " here")
    assert found == (Open(0), "HOUSE RED!", Close(0), " HERE")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mary's book isn't here", ["mary's", "book", "isn't", "here"]),
        ("l'homme d’Artagnan", ["l", "'", "homme", "d", "’", "Artagnan"]),
        ("lad\u00adder \u200bm\u0438\u0306r", ["lad\u00adder", "\u200b", "m\u0438\u0306r"]),
        ("'s gibt 'd'", ["'", "s", "gibt", "'", "d", "'"]),
        ("we'll; they’VE, a's's", ["we'll", ";", "they’VE", ",", "a", "'", "s's"]),
    ],
)
def test_the_short_forms_of_english_belong_to_the_word_before(text: str, words: list[str]):
    """Otherwise a mark on "book" may begin at the "s" of "Mary's"."""
    assert [text[unit.start : unit.end] for unit in units_of(text)] == words


@pytest.mark.parametrize(
    ("text", "read", "found"),
    [
        ("red house\told cat", ["red house", "old cat"], "HOUSE RED\tCAT OLD"),
        ("red house.\t\told cat", ["red house.", "old cat"], "HOUSE RED.\t\tCAT OLD"),
        ("1.\tred house \t old cat", ["red house", "old cat"], "1.\tHOUSE RED \t CAT OLD"),
        ("red house\n\told cat", ["red house", "old cat"], "HOUSE RED\n\tCAT OLD"),
    ],
)
def test_a_tab_divides_columns_and_stays_between_them(text: str, read: list[str], found: str):
    translator = Swapping()
    [segment] = translate_segments([Segment((text,))], translator)
    assert (translator.seen, segment.text) == (read, found)


def test_a_line_end_divides_sentences_and_stays_between_them():
    found = result("red house", Alone(0, breaks=True), "old cat")
    assert found == ("HOUSE RED", Alone(0, breaks=True), "CAT OLD")


@pytest.mark.parametrize(
    "kept",
    [
        "{name}",
        "{{ user.name }}",
        "${price}",
        "%s",
        "%(count)d",
        "%1$s",
        "%.2f",
        "{0:.1f}",
        "{n, plural, one {# cat} other {# cats}}",
        "{a, select, x {{b, select, y {{n, plural, other {# z}}} other {}}} other {}}",
        # C, PHP, Python and gettext
        *("%-5.2f", "%5d", "%lu", "%lld", "%zd", "%'d", "%*d", "%.*s", "%2$*1$d", "%u", "%c"),
        *("%<PRIu64>", "%%", "%1$-10s", "%(total).2f", "{}", "{:>5}", "{0!r:>10}", "{!s}", "$name"),
        # strftime, Java, .NET, Qt
        *("%Y-%m-%d", "%H:%M:%S", "%B", "%-d", "{0,number,#.##}", "{0:N2}", "{0,-10:C}"),
        *("%1", "%L1", "%n", "%Ln"),
        # Rails, ERB, Symfony, Drupal, Laravel
        *("%{count}", "%<n>d", "%<n>.2f", "<%= @name %>", "%name%", "@count", ":name"),
        # Vue I18n, i18next, Handlebars, Angular, FormatJS, Fluent
        *(
            "@:key.of.it",
            "@.lower:key",
            "@:{'key'}",
            "{'@'}",
            "{'{'}",
            "$t(key)",
            '$t(key, {"n": 1})',
            "{{- x}}",
        ),
        *("{{n, number}}", "{{{raw}}}", "{{> part}}", "{{ x | date:'short' }}", "{ $user-name }"),
        *("{ -brand }", "{day, date, ::yMMMd}"),
        # Android, iOS, Chrome, Django, social networks
        *("%1$d", "%@", "%1$@", "%#@files@", "%2$#@files@", "$NAME$", "$1", "{% url 'x' %}"),
        *('{{ x|date:"Y" }}', "@a_user@example.org", "#a_tag", ":smile:", "`npm install`"),
        "https://example.org/a?b=c&d=(e)",
        "www.example.org/Path",
        "https://en.example.org/Foo_(bar)",
        "https://example.org/a_(b_(c))",
        "first.last@example.org",
    ],
)
def test_what_is_not_translated_is_bit_equal_and_there_once(kept: str):
    """The stand-in changes every letter, so nothing of it can be copied by chance."""
    (text,) = result(f"the red house {kept} stands")
    assert text.count(kept) == 1
    assert "HOUSE" in text
    assert "STANDS" in text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("(see https://a.example/Foo_(bar))", "https://a.example/Foo_(bar)"),
        ("(see https://a.example/Foo)", "https://a.example/Foo"),
        ("see https://a.example/Foo_(bar).", "https://a.example/Foo_(bar)"),
        ("f(%s)", "%s"),
    ],
)
def test_a_bracket_belongs_to_an_address_if_it_was_opened_in_it(text: str, kept: str):
    _, found = protect(Segment((text,)), keep_numbers=False)
    assert list(found.values()) == [kept]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("string %Zd is in it", "%Zd"),
        ("the mode 0%o of it", "%o"),
        ("the short SHA1 %s is ambiguous", "%s"),
        ("chmod 0700 %s or %s", "0700 %s"),
        ("run chmod 0700 %s", "%s"),
        ("in all ~3 %9.9s of it", "%9.9s"),
        ("cannot open '%ls' here", "%ls"),
        ("%s Ethernet802.2 %s", "%s"),
        ("%*.s Leaf here", "%*.s"),
    ],
)
def test_placeholders_behind_a_digit_are_no_percentages(text: str, kept: str):
    """In catalogs of Debian."""
    _, found = protect(Segment((text,)), keep_numbers=False)
    assert kept.split()[-1] in found.values()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("'%s' does not stand", "'%s' NOT DOES STAND"),
        ("the (%s) red house", "(%s) RED THE HOUSE"),
        ("is %sKiB of it", "%sKiB OF IS IT"),
        ("%s%s%s:%u: red house", "%s%s%s:%u: HOUSE RED"),
        ("%s: red house", "%s: HOUSE RED"),
        ("{a}, {b} - red house", "{a}, {b} - HOUSE RED"),
        ("%s: %s", "%s: %s"),
        ("merged by %%s here", "BY MERGED %%s HERE"),
        ("by:\n%%sPlease move", "BY:\n%%s MOVE pLEASE"),
        ("valid are: &amp; and & here", "ARE VALID: &amp; AND&HERE"),
        ("press <![CDATA[<Alt>]]> now", "NOW PRESS <![CDATA[<Alt>]]>"),
    ],
)
def test_what_belongs_to_a_placeholder_stays_with_it(text: str, found: str):
    """Quotation marks around it, a unit behind it, placeholders that touch; from catalogs."""
    written = translated(json.dumps({"a": text}), "a.json")
    assert json.loads(written)["a"] == found


def placed(source: str, target: str, links: list[tuple[int, int]], inside: list[int]) -> str:
    """The words of a target that a pair around some units of the source goes around."""
    ours, theirs = units_of(source), units_of(target)
    spans = [
        ((ours[a].start, ours[a].end), (theirs[b].start, theirs[b].end), 1.0) for a, b in links
    ]
    pair = SentencePair.of(source, target, spans)
    found = Placer(pair).place(inside, (0, len(pair.target_units)), [])
    assert found is not None
    first, last = found[0]
    return target[theirs[first].start : theirs[last - 1].end]


def test_a_pair_beside_a_sign_stays_beside_it():
    """A title behind a comma, and up to the stop: the alignment misses a word at either end."""
    source, target = "by kim, the blue cats.", "von kim, die blauen katzen."
    links = [(0, 0), (0, 3), (4, 4), (5, 5)]
    assert placed(source, target, links, [3, 4, 5]) == "die blauen katzen"
    links = [(0, 0), (3, 3), (4, 4), (0, 5)]
    assert placed(source, target, links, [3, 4, 5]) == "die blauen katzen"
    # Not beyond two words, and not where no sign was.
    assert (
        placed("by the blue cats", "von die blauen katzen", [(0, 0), (0, 1), (2, 2)], [1, 2])
        == "blauen"
    )


def test_a_pair_around_words_that_stay_is_around_no_other_word():
    source, target = "see style-040 the cats", "siehe style-040 die katzen"
    links = [(0, 0), (1, 1), (2, 2), (3, 3), (3, 4), (5, 5)]
    assert placed(source, target, links, [1, 2, 3]) == "style-040"


def test_numbers_are_kept_on_request():
    class Dropping(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return super().one("".join(c for c in sentence if not c.isdigit()), align)

    [found] = translate_segments(
        [Segment(("we have 1,250.5 cats in 3 rooms",))], Dropping(), keep_numbers=True
    )
    assert [found.text.count(number) for number in ("1,250.5", "3")] == [1, 1]


@pytest.mark.parametrize(
    "text",
    ["50%des votes", "a %50 discount", "100% de rabais", "all of C# and US$", "at 12:30h"],
)
def test_a_percentage_is_no_placeholder(text: str):
    assert protect(Segment((text,)), keep_numbers=False)[1] == {}


def test_a_placeholder_behind_another_one_is_no_percentage():
    _, found = protect(Segment(("%1 %n, %1$s%2$s and 100 %%",)), keep_numbers=False)
    assert list(found.values()) == ["%1", "%n", "%1$s%2$s", "%%"]


class Reversing(Swapping):
    """Says the words from the last to the first, and copies what has no letter or a sign."""

    def one(self, sentence: str, align: bool) -> Aligned:
        words = [found.span() for found in re.finditer(r"\S+", sentence)]
        text, links = "", []
        for start, end in reversed(words):
            word = sentence[start:end]
            text += " " if text else ""
            links.append(((start, end), (len(text), len(text) + len(word)), 1.0))
            text += word.upper() if word.isalpha() else word
        return Aligned(text, tuple(links))


class Losing(Reversing):
    """Copies nothing that is no word, and turns the others around."""

    def one(self, sentence: str, align: bool) -> Aligned:
        found = super().one(re.sub(r"[%{][^ ]*", lambda each: "x" * len(each[0]), sentence), align)
        return Aligned(found.text, found.links)


@pytest.mark.parametrize("by", [Reversing(), Losing()])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("red %s of %d houses here", "RED %s OF %d HERE HOUSES"),
        ("the {} red {:>5} house", "THE {} RED {:>5} HOUSE"),
    ],
)
def test_placeholders_that_take_arguments_in_turn_keep_their_order(
    by: Reversing, text: str, found: str
):
    """A program would print a name where it is to print a number, or crash."""
    [segment] = translate_segments([Segment((text,))], by)
    assert segment.text == found


def test_placeholders_with_names_and_numbers_may_change_places():
    for text, found in (
        ("red %1$s of %2$d", "%2$d OF %1$s RED"),
        ("red {a} of {0}", "{0} OF {a} RED"),
        ("red %(a)s of %(b)d, %%", "%% %(b)d, OF %(a)s RED"),
    ):
        assert translate_segments([Segment((text,))], Reversing())[0].text == found


def test_marks_beside_placeholders_in_turn_stay_on_their_words():
    pieces = ("the ", Open(0), "red %s", Close(0), " of %d houses ", Alone(1), "here")
    [found] = translate_segments([Segment(pieces)], Reversing())
    assert_same_marks(pieces, found.pieces)
    assert re.sub(" +", " ", found.text) == "RED THE %s OF %d HERE HOUSES"


@pytest.mark.parametrize(
    "text",
    [
        "red house {% if x %}old cat {% else %}small dog {% endif %}here",
        "red house {{#if x}}old cat {{else}}small dog {{/if}}here",
        "red house <% if x %>old cat <% else %>small dog <% end %>here",
        "red house {#if x}old cat {:else}small dog {/if}here",
    ],
)
def test_no_word_goes_across_a_statement_of_a_template(text: str):
    found = result(text)[0]
    statements = re.findall(r"\{\{?[%#/:].*?\}\}?|\{\{else\}\}|<%.*?%>", text)
    assert re.findall(r"\{\{?[%#/:].*?\}\}?|\{\{else\}\}|<%.*?%>", found) == statements
    for words, translation in (("red house", "HOUSE RED"), ("old cat", "CAT OLD")):
        text = text.replace(words, translation)
    assert found == text.replace("small dog", "DOG SMALL").replace("here", "HERE")


EMPTY = TranslationWarning("empty", "nothing is left of it")


@pytest.mark.parametrize(
    "answer",
    [Aligned(""), Aligned(" "), Aligned("🙂", warnings=(EMPTY,)), Aligned(".", warnings=(EMPTY,))],
)
def test_text_without_letters_and_empty_translations_stay(answer: Aligned):
    class Silent(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return answer

    segments = [Segment((" 42 — ",)), Segment(("a ", Open(0), "b", Close(0)))]
    counts = Counts()
    assert translate_segments(segments, Silent(), counts=counts) == segments
    said = "it stays as it was, as the model gave nothing for it"
    assert counts.notes == [f"segment 2, “a b”: {said}"]
    assert counts.warnings == {"empty": 1}


@pytest.mark.parametrize(
    "answer",
    [
        Aligned("⠗⠑⠙"),  # Braille of a model for which it is usual, so there is no warning
        Aligned("A. .", warnings=(EMPTY,)),  # one of two parts of a long sentence is empty
    ],
)
def test_a_translation_of_which_something_is_left_is_taken(answer: Aligned):
    class Brief(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return answer

    [found] = translate_segments([Segment(("red",))], Brief())
    assert found.text == answer.text


def test_sentences_that_repeat_are_translated_once():
    swapping = Swapping()
    translate_segments([Segment(("red house",))] * 3, swapping)
    assert swapping.seen == ["red house"]


def test_chinese_sentences_are_joined_without_spaces():
    class Chinese(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned("红色的房子。")

    [found] = translate_segments([Segment(("One house. Two houses.",))], Chinese())
    assert found.text == "红色的房子。红色的房子。"


@pytest.mark.parametrize(
    ("translation", "text"),
    [("A red house.", "A red house. A red house."), ("赤い家。", "赤い家。\u3000赤い家。")],
)
def test_a_wide_space_stays_in_scripts_that_have_it(translation: str, text: str):
    class FromChinese(Swapping):
        source_language = "zh"

        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(translation)

    [found] = translate_segments([Segment(("红色的房子。\u3000红色的家。",))], FromChinese())
    assert found.text == text


def test_sentences_that_end_with_an_emoji_keep_their_space():
    """An emoji is as wide as a Chinese character, but no script without spaces."""

    class Smiling(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned("Rotes Haus! 😀")

    [found] = translate_segments([Segment(("One house. Two houses.",))], Smiling())
    assert found.text == "Rotes Haus! 😀 Rotes Haus! 😀"


def test_any_alignment_keeps_every_mark_once_and_nested():
    """Random marks and random links, and also none: the marks are all there, well nested."""

    class Random(Swapping):
        def __init__(self, seed: int) -> None:
            super().__init__()
            self.random = random.Random(seed)

        def one(self, sentence: str, align: bool) -> Aligned:
            text = super().one(sentence, align).text
            links = []
            for _ in range(self.random.randrange(12)):
                a, b = (
                    sorted(self.random.choices(range(len(t) + 1), k=2)) for t in (sentence, text)
                )
                links.append((tuple(a), tuple(b), self.random.random()))
            return Aligned(text, tuple(links))

    for seed in range(300):
        chance = random.Random(seed)
        pieces, opened, number = [], [], 0
        for _ in range(chance.randrange(1, 30)):
            kind = chance.random()
            if kind < 0.45:
                pieces.append(chance.choice(["red ", "house", ". ", "Old", " ", "{x}", ", ", "!"]))
            elif kind < 0.65:
                pieces.append(Open(number))
                opened.append(number)
                number += 1
            elif kind < 0.8 and opened:
                pieces.append(Close(opened.pop()))
            else:
                reads = chance.choice(["", "", "code", "x" * 200])
                pieces.append(Alone(number, reads, breaks=chance.random() < 0.2))
                number += 1
        pieces += [Close(each) for each in reversed(opened)]
        [found] = translate_segments([Segment(tuple(pieces))], Random(seed))
        assert_same_marks(pieces, found.pieces)


def assert_same_marks(before, after) -> None:
    marks = [piece for piece in before if not isinstance(piece, str)]
    found = [piece for piece in after if not isinstance(piece, str)]
    assert sorted(map(repr, found)) == sorted(map(repr, marks))
    opened = []
    for piece in found:
        if isinstance(piece, Open):
            opened.append(piece.number)
        elif isinstance(piece, Close):
            assert opened.pop() == piece.number


def test_a_word_between_two_of_a_pair_does_not_tear_it():
    """ "une grande maison rouge" is "a big red house": the pair around the first three words."""
    pair = SentencePair.of(
        "une grande maison rouge",
        "a big red house",
        [
            ((0, 3), (0, 1), 1.0),
            ((4, 10), (2, 5), 1.0),
            ((18, 23), (6, 9), 1.0),
            ((11, 17), (10, 15), 1.0),
        ],
    )
    span, _ = Placer(pair).place([0, 1, 2], (0, 4), [])
    assert span == (0, 4)


def test_where_the_alignment_is_unclear_the_position_decides():
    """The model has never seen the last two words, and attends to both alike."""
    links = [
        ((0, 3), (4, 7), 1.0),
        ((4, 7), (0, 3), 1.0),
        ((8, 11), (8, 11), 0.45),
        ((12, 15), (8, 11), 0.55),
        ((8, 11), (12, 15), 0.55),
        ((12, 15), (12, 15), 0.45),
    ]
    pair = SentencePair.of("aaa bbb ccc ddd", "eee fff ggg hhh", links)
    assert Placer(pair).place([3], (0, 4), [])[0] == (3, 4)
    # What is clear stays, wherever it is.
    assert Placer(pair).place([0], (0, 4), [])[0] == (1, 2)


def test_an_article_that_attends_to_its_noun_goes_to_the_article_of_the_source():
    links = [((0, 1), (4, 9), 0.45), ((2, 8), (4, 9), 0.55), ((2, 8), (10, 17), 1.0)]
    pair = SentencePair.of("a strong", "mit einem starken", links)
    assert Placer(pair).place([1], (0, 3), [])[0] == (2, 3)


@pytest.mark.parametrize(
    ("source", "target", "inside", "wanted"),
    [
        # text that is the same, though each of its words is there twice
        ("part X.X and Y", "Teil X.X und Y", "X.X", "X.X"),
        # the brackets of both, with words that are not aligned
        ("it is [UNDER WORK] here", "es ist als [IN ARBEIT] hier", "[UNDER WORK]", "[IN ARBEIT]"),
        # no sign alone for a word
        ("come, red one", "komm! rote", "red", "rote"),
    ],
)
def test_without_an_alignment_what_is_the_same_decides(
    source: str, target: str, inside: str, wanted: str
):
    sign = target.index("!") if "!" in target else 0
    links = [((source.index(inside), source.index(inside) + 3), (sign, sign + 1), 1.0)]
    if sign:
        begin = target.index(wanted)
        links += [(links[0][0], (begin, begin + 4), 0.4), ((0, 4), (begin, begin + 4), 0.6)]
    pair = SentencePair.of(source, target, links)
    begin = source.index(inside)
    units = pair.source_inside(begin, begin + len(inside))
    start, stop = Placer(pair).place(units, (0, len(pair.target_units)), [])[0]
    found = target[pair.target_units[start].start : pair.target_units[stop - 1].end]
    assert found == wanted


def test_no_link_or_mark_of_a_long_sentence_reads_all_of_its_units(monkeypatch: pytest.MonkeyPatch):
    """Two thousand of them would read four million units."""
    reads = []

    class Counted(list[Unit]):
        def __iter__(self):
            reads.append(len(self))
            return super().__iter__()

        def __getitem__(self, number):
            reads.append(1)
            return super().__getitem__(number)

    def counted(text: str, whole=()) -> Counted:
        return Counted(units_of(text, whole))

    monkeypatch.setattr(placement, "units_of", counted)
    spans = [(2 * n, 2 * n + 1) for n in range(2000)]
    pair = SentencePair.of("a " * 2000, "b " * 2000, [(each, each, 1.0) for each in spans])
    placer = Placer(pair)
    for number, (start, end) in enumerate(spans):
        assert pair.source_inside(start, end) == [number]
        assert placer.gap(end) == number + 1
    assert sum(reads) < 300_000


def test_a_pair_around_all_words_reads_them_a_few_times():
    """Once for each word would take a minute for some hundred pairs within each other."""
    reads = []

    class Counted(list[int]):
        def __iter__(self):
            reads.append(len(self))
            return super().__iter__()

    pair = SentencePair.of(". a a a .", ". b b b .", [])
    assert Placer(pair).whole(Counted(range(1, 4)), range(5), (0, 5)) == (1, 4)
    assert len(reads) == 2


def test_a_mark_directly_behind_a_full_stop_stays_there():
    class Same(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(sentence.replace("stands", "STANDS"))

    [found] = translate_segments([Segment(("The house stands.[^1]",))], Same())
    assert found.text == "The house STANDS.[^1]"


@pytest.mark.parametrize(
    "text", ["run.it here", "the .NET house", "see COPYING.LIB and a.b.Class (it is.)"]
)
def test_no_sentence_ends_within_a_name(text: str):
    class Same(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(sentence.upper())

    assert translate_segments([Segment((text,))], Same())[0].text == text.upper()


def test_a_long_code_between_two_signs_stays_between_them():
    class Same(Swapping):
        def one(self, sentence: str, align: bool) -> Aligned:
            return Aligned(sentence.upper(), ())

    pieces = ("open more: ", Alone(0, "x" * 90), ".")
    [found] = translate_segments([Segment(pieces)], Same())
    assert found.pieces == ("OPEN MORE: ", Alone(0, "x" * 90), ".")


def test_a_text_with_hundreds_of_placeholders_is_translated_between_them():
    """All of them by alignment would take quadratic time; this is said."""
    counts = Counts()
    source = "%s red house " * 450
    found = translate_document(source.encode(), Swapping(), "a.txt", counts=counts).decode()
    assert found == "%s HOUSE RED " * 450
    assert counts.notes == [
        "1 text has more than 400 marks and placeholders: what stands between two of them is"
        " translated by itself"
    ]


def test_empty_lines_of_a_text_are_kept_and_are_nothing_to_translate():
    document = TextDocument(b"\n\n red house\t\n\n\r\nold\n\n", "a.txt")
    assert [segment.text for segment in document.segments] == ["red house", "old"]
    assert document.write(document.segments) == b"\n\n red house\t\n\n\r\nold\n\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("red house {name} old cat", "HOUSE RED {name} CAT OLD"),
        ("see https://example.org now", "SEE https://example.org NOW"),
        ("red %1$sold cat%2$s here", "RED %1$sCAT OLD%2$s HERE"),
        ("- red house [^1] here", "- HOUSE RED [^1] HERE"),
        ("{count} red", "{count} RED"),
    ],
)
def test_placeholders_need_no_alignment_where_texts_are_translated_by_themselves(text, found):
    """As with a model without attention, or without PyTorch."""

    class NeverAligned(Swapping):
        def translate(self, sentences, *, align):
            assert not (align and sentences)
            return super().translate(sentences, align=False)

    [segment] = translate_segments([Segment((text,))], NeverAligned(), by_text=True)
    assert segment.text == found
