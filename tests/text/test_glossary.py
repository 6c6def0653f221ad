"""Which terms a text has, and which files are glossaries."""

import time
from pathlib import Path

import pytest

from pellucid.core.errors import DataError, InputMissingError
from pellucid.text.glossary import (
    LARGEST_GLOSSARY,
    Glossary,
    Term,
    count_present,
    holds_phrase,
    parse_glossary,
)

HEAD = "source\ttarget\tforms\tcase\tdomain\n"
FILE = HEAD + (
    "dog\tHund|Hunde\tdogs\t\tanimals\n"
    "hot dog\tHotdog\t\t\tfood\n"
    "Polish\tpolnisch\t\texact\n"
    "run*\tlaufen|läuft\n"
    "well-known\tbekannt\n"
    "\n"
    "犬\tHund\n"
    "नमस्ते\thallo\n"
)


def found(text: str, glossary: Glossary) -> list[tuple[str, tuple[str, ...]]]:
    return [(text[each.start : each.end], each.targets) for each in glossary.matches(text)]


@pytest.fixture(scope="module")
def glossary() -> Glossary:
    return Glossary(parse_glossary(FILE, "terms.tsv"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog and two DOGS.", [("dog", ("Hund", "Hunde")), ("DOGS", ("Hund", "Hunde"))]),
        ("Dogma, hotdog, dog's", [("dog", ("Hund", "Hunde"))]),
        ("A hot dog, a hot\tDog.", [("hot dog", ("Hotdog",)), ("hot\tDog", ("Hotdog",))]),
        ("Polish the Polish shoe; polish", [("Polish", ("polnisch",))] * 2),
        ("runners run, rerun", [("runners", ("laufen", "läuft")), ("run", ("laufen", "läuft"))]),
        ("a well-known man, a well known one", [("well-known", ("bekannt",))]),
        ("我的犬很大", [("犬", ("Hund",))]),
        ("नमस्ते नमस्तेजी", [("नमस्ते", ("hallo",))]),
        ("", []),
        ("nothing here", []),
    ],
)
def test_terms_are_whole_words_the_longest_first(glossary, text, expected):
    assert found(text, glossary) == expected


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("women's softball", "A girl plays women’s softball.", "women’s softball"),
        ("women’s softball", "A girl plays women's softball.", "women's softball"),
        ("women's softball", "women`s softball", "women`s softball"),
        ("women's softball", "women´s softball", "women´s softball"),
        ("women's softball", "Womenʼs softball", "Womenʼs softball"),
        ("women's softball", "women‘s  softball", "women‘s  softball"),
        ("women's softball", "women’s\nsoftball", "women’s\nsoftball"),
        ("women's softball", "women’s\u00a0softball", "women’s\u00a0softball"),
        (
            "women's softball",
            "(wo\u00admen&#8217;s&nbsp;softball)",
            "wo\u00admen&#8217;s&nbsp;softball",
        ),
        ("women's softball", "women&apos;s softball", "women&apos;s softball"),
        ("Q&A", "our Q&amp;A page", "Q&amp;A"),
        ("l'eau", "C’est l’eau", "l’eau"),
        ("5' board", "a 5′ board", "5′ board"),
        ("п'ять", "п’ять", "п’ять"),
        ("п'ять", "пʼять", "пʼять"),
        ("e-mail", "an e‑mail", "e‑mail"),
        ("e-mail", "an e‐mail", "e‐mail"),
        ("e-mail", "an e–mail", "e–mail"),
        ("e-mail", "an e−mail", "e−mail"),
        ("e–mail", "an e-mail", "e-mail"),
        ("e-mail", "ｅ－ｍａｉｌ", "ｅ－ｍａｉｌ"),
        ("בית-ספר", "בית־ספר", "בית־ספר"),
        ('צה"ל', "צה״ל", "צה״ל"),
        ('the "red" line', "the “red” line", "the “red” line"),
        ('the "red" line', "the «red» line", "the «red» line"),
        ("café", "cafe\u0301", "cafe\u0301"),
        ("cafe\u0301", "a café", "café"),
        ("find", "ﬁnd it", "ﬁnd"),
        ("ガラス", "ｶﾞﾗｽの", "ｶﾞﾗｽ"),
        ("Straße", "DIE STRASSE", "STRASSE"),
        ("Straße", "DIE STRAẞE", "STRAẞE"),
        ("STRASSE", "die Straße", "Straße"),
        ("straß*", "STRASSENBAHN", "STRASSENBAHN"),
        ("Ausschuss", "der Ausschuß", "Ausschuß"),
        ("Ausschuß", "der Ausschuss", "Ausschuss"),
        ("Ausschuss*", "der Ausschuß", "Ausschuß"),
        ("müssen", "müßen, müssen", "müssen"),
        ("mußten", "sie mussten", "mussten"),
        ("weiß", "weiss", "weiss"),
        ("draussen", "draußen", "draußen"),
        ("Straße", "die Strasse", "Strasse"),
        ("Strasse", "die Straße", "Straße"),
        ("Straßen", "die Strassen", "Strassen"),
        ("Größe", "die Grösse", "Grösse"),
        ("große", "die grosse", "grosse"),
        ("grosser", "die großer", "großer"),
        ("Füße", "die Füsse", "Füsse"),
        ("Grüße", "die Grüsse", "Grüsse"),
        ("dermaßen", "die dermassen", "dermassen"),
        ("genießen", "die geniessen", "geniessen"),
        ("Straße*", "die Strassen", "Strassen"),
        ("straß*", "die Strassenbahn", "Strassenbahn"),
        ("Rußland", "die Russland", "Russland"),
        ("Maßnahme", "die Massnahme", "Massnahme"),
        ("Maß", "die Mass", "Mass"),
        ("Bußgeld", "die Bussgeld", "Bussgeld"),
        ("Maß*", "das Maß", "Maß"),
        ("Maß*", "des Maßes", "Maßes"),
        ("Maß*", "MASSE", "MASSE"),
        ("ısı", "Isı iletimi", "Isı"),
        ("ışık", "IŞIK", "IŞIK"),
        ("il", "İl merkezi", "İl"),
        ("istanbul", "İstanbul'da", "İstanbul"),
        ("istanbul", "i\u0307stanbul", "i\u0307stanbul"),
        ("İstanbul", "Istanbul", "Istanbul"),
        ("IT", "it", "it"),
        ("οδός", "ΟΔΌΣ", "ΟΔΌΣ"),
        ("ΟΔΌΣ", "οδός", "οδός"),
        ("οδηγίες χρήσης", "ΟΔΗΓΙΕΣ ΧΡΗΣΗΣ", "ΟΔΗΓΙΕΣ ΧΡΗΣΗΣ"),
        ("ΟΔΗΓΙΕΣ", "οι οδηγίες", "οδηγίες"),
        ("كتاب", "في كِتَابٌ", "كِتَابٌ"),
        ("كتاب", "كتـــاب", "كتـــاب"),
        ("שלום", "שָׁלוֹם", "שָׁלוֹם"),
        ("\u200fשלום\u200f", "כן שלום", "שלום"),
        ("ſo", "SO", "SO"),
        ("کتاب‌خانه", "در کتاب‌خانه", "کتاب‌خانه"),
        ("کتاب‌خانه", "در کتابخانه", "کتابخانه"),
        ("کتابخانه", "در کتاب‌خانه", "کتاب‌خانه"),
        ("خانه", "در خانه", "خانه"),
        ("ශ්රී", "ශ්‍රී ලංකා", "ශ්‍රී"),
        ("c#", "in C#, und", "C#"),
        ("C++", "C++11", "C++"),
        ("C", "C+D", "C"),
        ("کلید", "این كليد است", "كليد"),
        ("كليد", "این کلید است", "کلید"),
        ("știință", "o ştiinţă", "ştiinţă"),
        ("ştiinţă", "o s\u0327tiint\u0327ă", "s\u0327tiint\u0327ă"),
        ("ёлка", "Елка", "Елка"),
        ("елка", "е\u0308лка", "е\u0308лка"),
        ("CO2", "das CO₂", "CO₂"),
    ],
)
def test_a_term_is_found_in_each_spelling_that_is_read_as_it(term, text, expected):
    assert [each for each, _ in found(text, Glossary([Term((term,), ("x",))]))] == [expected]


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("Maße", "Die Masse ist klein."),
        ("νόμος", "ο νομός"),
        ("ή", "Η μέρα"),
        ("Masse", "Die Maße sind klein."),
        ("Maß*", "Die Massen"),
        ("Buße", "Die Busse"),
        ("Busse", "Die Buße"),
        ("Maßen", "Die Massen"),
        ("Bußen", "Die Bussen"),
        ("Flosse", "Die Floße"),
        ("rußen", "Die Russen"),
        ("Maß*", "Die Massage"),
        ("Buß*", "Die Bussard"),
        ("Paß*", "Die Passagier"),
        ("Floß*", "Die Flossen"),
        ("ılık", "ilik"),
        ("ılık", "İLİK"),
        ("خانه", "در کتاب‌خانه"),
        ("کتاب", "در کتاب‌خانه"),
        ("क्ष", "अक्‍षर"),
        ("ять", "пʼять"),
        ("п", "пʼять"),
        ("Haus-Hof", "Haus – Hof"),
        ("e-mail", "e—mail"),
        ("email", "e-mail"),
        ("were", "we’re"),
        ("$5", "it costs $5.00"),
        ("10", "10,000 people"),
        ("C", "in C# geschrieben"),
        ("C", "C++11"),
        ("C#", "die Sprache C"),
        ("Notepad", "mit Notepad++"),
    ],
)
def test_a_term_is_not_found_in_another_word(term, text):
    assert found(text, Glossary([Term((term,), ("x",))])) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("R&foo; x", (2, 5)),
        ("R&ampfoo; foo", (10, 13)),
        ("&foo; x", (1, 4)),
        ("&amp;foo; x", (5, 8)),
        ("&semi;foo", (6, 9)),
    ],
)
def test_a_term_within_what_is_no_entity_is_found_at_its_place(text, place):
    [match] = Glossary([Term(("foo",), ("X",))]).matches(text)
    assert (match.start, match.end) == place


def test_case_counts_in_other_spellings_too():
    term = Term(("Women's",), ("x",), exact=True)
    assert found("women’s Women’s", Glossary([term])) == [("Women’s", ("x",))]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("C’est l’eau", "l'eau"),
        ("C'est l'eau", "l’eau"),
        ("C&apos;est l&apos;eau", "l'eau"),
        ("per e‑mail", "e-mail"),
        ("per E–Mail", "E-Mail"),
        ("ein Hun\u00add", "Hund"),
        ("le cafe\u0301", "café"),
        ("در کتابخانه", "کتاب‌خانه"),
        ("İl merkezi", "Il"),
        ("новая елка", "ёлка"),
        ("wenig CO₂", "CO2"),
    ],
)
def test_a_phrase_is_held_in_another_spelling(text, phrase):
    assert holds_phrase(text, [phrase])


@pytest.mark.parametrize(
    ("text", "phrase"),
    [("die Masse", "Maße"), ("DIE MASSE", "Maße"), ("کتاب‌خانه", "خانه"), ("Istanbul", "İstanbul")],
)
def test_a_phrase_is_not_held_by_another_word(text, phrase):
    assert not holds_phrase(text, [phrase])


def test_a_term_of_invisible_letters_is_in_no_text():
    assert found("a dog", Glossary([Term(("\u3164", "dog"), ("x",))])) == [("dog", ("x",))]
    assert not holds_phrase("a dog", ["\u3164"])


def test_terms_of_either_apostrophe_are_counted():
    glossary = Glossary([Term(("water's",), ("l'eau",)), Term(("dog",), ("Hund",))])
    assert count_present(glossary, ["The water’s here"], ["C’est l’eau"]) == (1, 1)


def test_a_target_begins_a_sentence_in_title_case():
    assert Glossary([Term(("dog",), ("ძაღლი", "ǆep"))]).required("dog") == (
        ("ძაღლი", "ǆep", "ǅep"),
    )


def test_entries_of_one_term_share_their_targets_and_a_whole_form_comes_before_a_stem():
    terms = [Term(("bank",), ("Bank",)), Term(("bank",), ("Ufer",)), Term(("ban*",), ("Bann",))]
    assert found("bank", Glossary(terms)) == [("bank", ("Bank", "Ufer"))]
    assert found("bans", Glossary(terms)) == [("bans", ("Bann",))]


def test_each_term_is_required_once_and_may_begin_a_sentence(glossary):
    assert glossary.required("a well-known dog, a dog") == (
        ("bekannt", "Bekannt"),
        ("Hund", "Hunde"),
    )
    assert glossary.required("Polish") == (("polnisch",),)
    assert glossary.required("cat") == ()


def test_domains_choose_entries(tmp_path: Path):
    path = tmp_path / "terms.tsv"
    path.write_text(FILE, encoding="utf-8")
    assert len(Glossary.read(path)) == 7
    assert found("hot dog, dog, run", Glossary.read(path, ["animals"])) == [
        ("dog", ("Hund", "Hunde")),
        ("dog", ("Hund", "Hunde")),
        ("run", ("laufen", "läuft")),
    ]


def test_a_glossary_or_a_domain_without_entries_is_said(tmp_path: Path, caplog):
    """Else nothing would be required, and nobody would know."""
    path = tmp_path / "terms.tsv"
    path.write_text("source\ttarget\tdomain\n", encoding="utf-8")
    assert len(Glossary.read(path)) == 0
    path.write_text("source\ttarget\tdomain\ndog\tHund\tanimals\n", encoding="utf-8")
    assert len(Glossary.read(path, ["animals", "animal"])) == 1
    assert [each.getMessage() for each in caplog.records] == [
        f"{path} has no entries",
        f"{path} has no entries of the domain 'animal'; did you mean animals?",
    ]


@pytest.mark.parametrize(
    ("source", "target", "odd"),
    [
        ("dog", "Hund / Hunde", "Hund / Hunde"),
        ("dog", "Hund; Hunde", "Hund; Hunde"),
        ("dog", "Hund, Hunde", "Hund, Hunde"),
        ("dog (noun)", "Hund", "dog (noun)"),
        ("犬", "dog、hound", "dog、hound"),
        ("km/h", "км/ч", ""),
        ("1,000", "1.000", ""),
        ("Berlin, Germany", "Berlin, Deutschland", ""),
        ("NATO (abbr.)", "NATO (Abk.)", ""),
    ],
)
def test_signs_of_another_kind_of_glossary_are_said(source: str, target: str, odd: str, caplog):
    """They are required as they stand; what both sides have may be meant."""
    parse_glossary(f"source\ttarget\ncat\tKatze\n{source}\t{target}\n", "terms.tsv")
    said = "is searched for and required as it stands; between several forms write |"
    messages = [each.getMessage() for each in caplog.records]
    assert messages == [f"terms.tsv: line 3, {odd!r}: {said}, and leave out remarks"] * bool(odd)


def test_a_phrase_is_held_as_words_of_its_own():
    assert holds_phrase("Zwei Hunde.", ["Hund", "Hunde"])
    assert not holds_phrase("Die Hundehütte", ["Hund", "Hunde"])
    assert holds_phrase("Ein roter  Hund", ["roter Hund"])
    assert not holds_phrase("", ["Hund"])


def test_a_byte_order_mark_and_other_line_ends_are_read(tmp_path: Path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(b"\xef\xbb\xbftarget\tsource\r\nHund\tdog\r\n")
    assert Glossary.read(path).terms == (Term(("dog",), ("Hund",)),)


def test_marks_that_a_spreadsheet_writes_around_a_cell_are_no_part_of_the_term(tmp_path: Path):
    path = tmp_path / "terms.tsv"
    path.write_text('source\ttarget\n"5"" disk"\t"""Disk"""\nno "one"\tkeiner\n', encoding="utf-8")
    assert [(term.sources, term.targets) for term in Glossary.read(path).terms] == [
        (('5" disk',), ('"Disk"',)),
        (('no "one"',), ("keiner",)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog\tHund\n", "must begin with a line that names its columns"),
        ("source\ttarget\tnote\n", "must begin with a line that names its columns"),
        ("source\ttarget\tsource\n", "must begin with a line that names its columns"),
        ("", "must begin with a line that names its columns"),
        (HEAD + "dog\n", "line 2: target must hold a word"),
        (HEAD + "\tHund\n", "line 2: source must hold a word"),
        (HEAD + "dog\tHund\t\t\t\tmore\n", "line 2: must have 5 columns, has more"),
        (HEAD + "dog\tHund\t\tnever\n", "line 2: case must be any or exact, got 'never'"),
        (HEAD + "dog\tHund*\n", "line 2: a target must be whole words"),
        (HEAD + "*\tHund\n", "line 2: a term must have a letter or a digit"),
        (HEAD + "dog\t\x00a\n", "line 2: a term must be text"),
        (HEAD + "&shy;\tHund\n", "line 2: a term must have a letter or a digit"),
        (HEAD + f"dog\t{'x' * 201}\n", "line 2: a term must have at most 200 characters"),
        (HEAD + f"dog\t{'|'.join(map(str, range(80)))}\n", "target must have at most 64 forms"),
        (HEAD + "a\tb\n" * 100_001, "must have at most 100,000 entries"),
    ],
)
def test_what_is_no_glossary_is_refused_in_a_line(text, message):
    with pytest.raises(DataError, match=message) as caught:
        parse_glossary(text, "terms.tsv")
    assert str(caught.value).startswith("terms.tsv")
    assert len(str(caught.value)) < 400


def test_the_first_problems_are_named_together_and_not_all_of_many():
    with pytest.raises(DataError) as caught:
        parse_glossary(HEAD + "dog\n" * 1000, "terms.tsv")
    assert "line 2:" in str(caught.value)
    assert "line 3:" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_file_that_is_no_text_too_large_or_missing_is_refused(tmp_path: Path):
    path = tmp_path / "terms.tsv"
    path.write_bytes(HEAD.encode() + b"\xff\xfe\x00")
    with pytest.raises(DataError, match="must be UTF-8 text, is not at byte"):
        Glossary.read(path)
    with path.open("wb") as file:
        file.truncate(LARGEST_GLOSSARY + 1)
    with pytest.raises((DataError, InputMissingError)):
        Glossary.read(path)
    with pytest.raises(InputMissingError, match="cannot read"):
        Glossary.read(tmp_path / "none.tsv")


def test_a_large_glossary_is_searched_by_first_words():
    """30,000 entries and a line of 20,000 words: with a scan of all entries it would take hours."""
    rows = "".join(f"w{number} x\tt{number}\n" for number in range(30_000))
    glossary = Glossary(parse_glossary("source\ttarget\n" + rows, "terms.tsv"))
    line = " ".join(f"w{number} {'x' if number % 2 else 'y'}" for number in range(10_000))
    begun = time.process_time()
    assert len(glossary.matches(line)) == 5000
    assert time.process_time() - begun < 5


def test_marks_stand_behind_the_terms_that_are_wanted(glossary):
    line = "A hot dog and two dogs run."
    assert glossary.marked(line) == "A hot dog ⟦Hotdog⟧ and two dogs ⟦Hund⟧ run ⟦laufen⟧."
    assert glossary.marked(line, lambda phrases: "Hunde" in phrases) == (
        "A hot dog and two dogs ⟦Hund⟧ run."
    )
    assert glossary.marked("none") == "none"
    assert glossary.marked("one d\u00adog&apos;s") == "one d\u00adog ⟦Hund⟧&apos;s"
    assert glossary.fingerprint == Glossary(glossary.terms).fingerprint
    assert glossary.fingerprint != Glossary(glossary.terms[1:]).fingerprint
