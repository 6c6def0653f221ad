"""Catalogs of gettext: plural forms of the target language, charsets, and what stays."""

import gettext
import shutil
import subprocess

import pytest

from pellucid.core.errors import DataError
from pellucid.documents.formats import ReadOptions
from pellucid.documents.markup import Counts
from pellucid.documents.plurals import (
    _HEADER,
    _HEADERS,
    header_of,
    numbers_of_forms,
    read_expression,
)
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import Swapping, translated
from tests.documents.test_untouched_bytes import Identity


def head(*fields: str) -> str:
    return 'msgid ""\nmsgstr ""\n' + "".join(f'"{each}\\n"\n' for each in fields) + "\n"


UTF_8 = "Content-Type: text/plain; charset=UTF-8"
CATS = 'msgid "%d old cat"\nmsgid_plural "%d old cats"\nmsgstr[0] ""\nmsgstr[1] ""\n'
ONE_CAT = 'msgid "one old cat"\nmsgid_plural "%d old cats"\nmsgstr[0] ""\nmsgstr[1] ""\n'


def said(source: str | bytes, language: str = "") -> tuple[str, list[str]]:
    counts = Counts()
    data = source.encode() if isinstance(source, str) else source
    options = ReadOptions(target_language=language)
    found = translate_document(data, Swapping(), "a.po", counts=counts, options=options)
    return found.decode(), counts.notes


@pytest.mark.parametrize("header", sorted(set(_HEADERS.values())))
def test_rules_of_plural_forms_are_those_that_the_standard_library_reads(header: str):
    found = _HEADER.search(header)
    assert found is not None
    theirs, ours = gettext.c2py(found[2]), read_expression(found[2])
    assert [ours(n) for n in range(1200)] == [theirs(n) for n in range(1200)]
    assert all(numbers_of_forms(header))


@pytest.mark.parametrize(
    "rule",
    [
        "n != 1",
        "n == 1 ? 0 : n == 2 ? 1 : 2",
        "!(n == 1) && !!n",
        "n % 10 == 1 && n % 100 != 11 || n > 7 && n < 9",
        "(n + 2) * 3 / 4 % 3",
        "n ? n > 1 ? 2 : 1 : 0",
        "1 + 2 * n % 3 - 1",
    ],
)
def test_expressions_of_c_are_read_as_the_standard_library_reads_them(rule: str):
    theirs, ours = gettext.c2py(rule), read_expression(rule)
    assert [int(ours(n)) for n in range(300)] == [int(theirs(n)) for n in range(300)]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("nplurals=2; plural=n//1;", "needs a number or n, has '/'"),
        ("nplurals=2; plural=__import__('os');", "cannot be read at \"__import__\\('os'\\)\""),
        ("nplurals=2; plural=(n;", "needs '\\)', has 'its end'"),
        ("nplurals=2; plural=n%0;", "divides by zero for 0"),
        ("nplurals=2; plural=n;", "has 2 forms, its rule gives 2 for 2"),
        ("nplurals=99; plural=0;", "must have 1 to 10 forms, has 99"),
        ("nplurals=2; plural=" + "(" * 50 + "n" + ")" * 50 + ";", "nested too deeply"),
        ("nplurals=2; plural=" + "n+" * 600 + "n;", "at most 1000 characters"),
        ("nplurals=2", "must have nplurals and plural"),
        ("nplurals=2; plural=n n;", "cannot be read at 'n'"),
    ],
)
def test_a_rule_that_gettext_could_not_use_is_refused(header: str, message: str):
    with pytest.raises(DataError, match=message):
        numbers_of_forms(header)


@pytest.mark.parametrize("language", ["sr@latin", "sr_RS.UTF-8", "sr-Latn-RS", "SR"])
def test_a_language_has_its_rule_whatever_its_script_and_country(language: str):
    assert header_of(language) == header_of("sr") is not None


def test_a_catalog_gets_the_plural_forms_that_its_head_says():
    russian = "Plural-Forms: " + (header_of("ru") or "")
    found, notes = said(head(UTF_8, russian) + CATS + "\n" + ONE_CAT)
    assert notes == []
    forms = 'msgstr[0] "%d CAT OLD"\nmsgstr[1] "%d CATS OLD"\nmsgstr[2] "%d CATS OLD"\n'
    # The first form is for 21 and 31 too: "one old cat" would be wrong there.
    others = forms.replace("CAT OLD", "CATS OLD")
    assert found == head(UTF_8, russian) + (
        CATS.partition("msgstr")[0] + forms + "\n" + ONE_CAT.partition("msgstr")[0] + others
    )


def test_a_form_for_one_thing_alone_is_that_of_the_singular():
    german = "Plural-Forms: nplurals=2; plural=(n != 1);"
    found, _ = said(head(UTF_8, german) + ONE_CAT)
    assert found.endswith('msgstr[0] "OLD ONE CAT"\nmsgstr[1] "%d CATS OLD"\n')
    # In French 0 has the form of 1.
    found, _ = said(head(UTF_8, german.replace("!=", ">")) + ONE_CAT)
    assert found.endswith('msgstr[0] "%d CATS OLD"\nmsgstr[1] "%d CATS OLD"\n')


@pytest.mark.parametrize(
    ("fields", "language", "forms"),
    [
        ([UTF_8, "Language: ru_RU"], "", 3),
        ([UTF_8, "Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;"], "cs", 3),
        ([UTF_8, "Language: ar", "Plural-Forms: "], "", 6),
        ([UTF_8], "ja", 1),
    ],
)
def test_a_template_gets_the_plural_forms_of_the_language(
    fields: list[str], language: str, forms: int
):
    source = head(*fields) + CATS
    found, notes = said(source, language)
    assert notes == []
    assert f"Plural-Forms: nplurals={forms};" in found
    assert found.count("Plural-Forms") == 1
    assert found.count("msgstr[") == forms
    assert_compiles(found)


def assert_compiles(catalog: str | bytes) -> None:
    """Where gettext is installed, its own check agrees."""
    if (program := shutil.which("msgfmt")) is not None:
        data = catalog.encode() if isinstance(catalog, str) else catalog
        done = subprocess.run(
            [program, "-c", "-o", "/dev/null", "-"], input=data, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()


def test_plural_forms_that_nobody_knows_are_said():
    found, notes = said(head(UTF_8) + CATS, "und")
    assert 'msgstr[1] "%d CATS OLD"' in found
    assert notes == [
        "plural forms are filled as far as they are there: its head says nothing of them"
    ]
    _, notes = said(head(UTF_8, "Plural-Forms: nplurals=2; plural=n/0;") + CATS)
    assert notes[0].endswith("the rule of Plural-Forms divides by zero for 0")


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("ISO-8859-1", "grüne häuser"),
        ("ISO-8859-2", "żółty dom"),
        ("windows-1251", "красный дом"),
        ("KOI8-R", "красный дом"),
        ("EUC-JP", "赤い 家"),
        ("Shift_JIS", "赤い ソ表"),
        ("Big5", "紅色 房屋"),
        ("GB18030", "红色 房屋"),
    ],
)
def test_a_catalog_is_read_and_written_in_the_charset_that_it_declares(charset: str, text: str):
    source = head(f"Content-Type: text/plain; charset={charset}") + f'msgid "{text}"\nmsgstr ""\n'
    found = translate_document(source.encode(charset), Swapping(), "a.po").decode(charset)
    first, second = text.split()
    assert f'msgid "{text}"' in found
    assert f'msgstr "{second.swapcase()} {first.swapcase()}"' in found
    assert_compiles(found.encode(charset))


@pytest.mark.parametrize("charset", ["ISO-8859-1", "ASCII", "CHARSET"])
def test_a_charset_that_lacks_a_character_becomes_utf_8(charset: str):
    class Russian(Swapping):
        def one(self, sentence, align):
            from pellucid.documents.placement import Aligned

            return Aligned("дом")

    field = f"Content-Type: text/plain; charset={charset}"
    source = head("Project-Id-Version: a", field) + 'msgid "house"\nmsgstr ""\n'
    counts = Counts()
    found = translate_document(source.encode(), Russian(), "a.po", counts=counts).decode()
    assert found == source.replace(charset, "UTF-8").replace('e"\nmsgstr ""', 'e"\nmsgstr "дом"')
    # A template has no charset to lose.
    assert counts.notes == [] if charset == "CHARSET" else len(counts.notes) == 1
    assert_compiles(found)


@pytest.mark.parametrize("charset", ["UTF-7", "rot13", "unicode_escape", "EBCDIC-FR", "UTF-16"])
def test_other_charsets_are_refused_by_name(charset: str):
    source = head(f"Content-Type: text/plain; charset={charset}") + 'msgid "a"\nmsgstr ""\n'
    with pytest.raises(DataError, match=f"declares the charset {charset}, which is not supported"):
        translated(source, "a.po")


def test_bytes_that_are_not_in_the_charset_are_refused_with_their_place():
    source = head("Content-Type: text/plain; charset=EUC-JP").encode() + b'msgid "\xff"\n'
    with pytest.raises(DataError, match=rf"must be in EUC-JP, .* byte {source.index(255) + 1} is"):
        translate_document(source, Swapping(), "a.po")


def test_what_is_fuzzy_or_obsolete_stays_and_is_said():
    rest = (
        '#, fuzzy, c-format\n#| msgid "a %d"\nmsgid "red %d"\nmsgstr "rot %d"\n\n'
        '#~ msgid "old"\n#~ msgstr ""\n'
    )
    found, notes = said(head(UTF_8) + rest)
    assert found == head(UTF_8) + rest
    note = (
        "marked fuzzy, and gettext does not use them; those with a translation are left as in the"
        " file: msgattrib --clear-fuzzy --empty empties them first"
    )
    assert notes == [f"1 entry is {note}"]

    found, notes = said(head(UTF_8) + rest + '\n#, fuzzy\nmsgid "red"\nmsgstr ""\n')
    assert found.endswith('#, fuzzy\nmsgid "red"\nmsgstr "RED"\n')
    assert notes == [f"2 entries are {note}"]


def test_keys_of_texts_and_other_values_that_nobody_reads_have_no_translation():
    """A program that has none shows the source. ``E_xit`` is a word with the key for it."""
    keys = ["user.login.title", "ERROR_NOT_FOUND", "dd/MM/yyyy", "utf-8"]
    rest = "".join(f'\nmsgid "{each}"\nmsgstr ""\n' for each in keys)
    found, notes = said(head(UTF_8) + rest + '\nmsgid "E_xit"\nmsgstr ""\n')
    assert found == head(UTF_8) + rest + '\nmsgid "E_xit"\nmsgstr "e_XIT"\n'
    assert notes == ["4 values left that nobody reads, such as user.login.title"]


@pytest.mark.parametrize(("source", "found"), [("/month", "/MONTH"), ("true", "TRUE")])
def test_words_that_are_values_elsewhere_are_translated_where_a_program_marks_them(
    source: str, found: str
):
    assert said(f'{head(UTF_8)}\nmsgid "{source}"\nmsgstr ""\n') == (
        f'{head(UTF_8)}\nmsgid "{source}"\nmsgstr "{found}"\n',
        [],
    )


def test_another_language_in_the_head_is_said():
    _, notes = said(head(UTF_8, "Language: de_AT"), "fr")
    assert notes == ["its head says Language: de_AT, and the model translates into fr"]
    assert said(head(UTF_8, "Language: de_AT"), "de")[1] == []


def test_an_apostrophe_begins_no_quotation_in_a_message_of_java():
    class Article(Swapping):
        def one(self, sentence, align):
            from pellucid.documents.placement import Aligned

            return Aligned(f"l'{sentence}")

    source = head(UTF_8) + '#, java-format\nmsgid "house {0}"\nmsgstr ""\n'
    found = translate_document(source.encode(), Article(), "a.po").decode()
    assert 'msgstr "l’house {0}"' in found


def test_lines_of_a_template_of_django_are_one_text():
    """Each of them was a sentence; the lines of a list in a terminal are."""
    block = 'msgid ""\n"\\n"\n"    red house\\n"\n"    stands <b>here</b>.\\n"\n"  "\nmsgstr ""\n'
    found, _ = said(head(UTF_8) + block)
    assert '"\\n"\n"    HOUSE RED <b>HERE</b> STANDS.\\n"\n"  "\n' in found.partition("msgstr ")[2]
    unchanged = translate_document((head(UTF_8) + block).encode(), Identity(), "a.po").decode()
    assert (
        unchanged == (head(UTF_8) + block).removesuffix('""\n') + block[6 : block.index("msgstr")]
    )

    terminal = 'msgid "red:\\n  house\\n  cat\\n"\nmsgstr ""\n'
    assert '"RED:\\n"\n"  HOUSE\\n"\n"  CAT\\n"\n' in said(head(UTF_8) + terminal)[0]


def test_names_of_translators_are_no_text():
    """GNOME and KDE show what stands there as names."""
    credits = 'msgid "translator-credits"\nmsgstr ""\n'
    names = 'msgctxt "NAME OF TRANSLATORS"\nmsgid "Your names"\nmsgstr ""\n'
    source = f"{head(UTF_8)}{credits}\n{names}"
    assert said(source) == (source, [])


def test_a_head_that_names_no_language_gets_that_of_the_translation():
    entry = 'msgid "red"\nmsgstr ""\n'
    empty, named = (head(UTF_8, f"Language: {code}") for code in ("", "pt_BR"))
    assert said(empty + entry, "pt-BR")[0].startswith(named)
    assert said(empty + entry)[0].startswith(empty)
    assert said(named + entry, "pt")[0].startswith(named)
    assert said(empty, "pt")[0] == empty
    assert said(head(UTF_8) + entry, "pt")[0].startswith(head(UTF_8))


def test_a_last_entry_without_a_line_for_its_translation_gets_one():
    found, _ = said(head(UTF_8) + 'msgid "red"\n')
    assert found.endswith('\nmsgid "red"\nmsgstr "RED"\n')
    found, _ = said(head(UTF_8) + CATS.partition("msgstr")[0], "ja")
    assert found.count("msgstr") == 2
    assert "Plural-Forms: nplurals=1; plural=0;" in found
    assert_compiles(found)


def test_a_plural_form_of_what_has_no_plural_is_refused():
    with pytest.raises(
        DataError, match=r"told apart, as 'red' has msgstr\[0\] and no msgid_plural"
    ):
        said(head(UTF_8) + 'msgid "red"\nmsgstr[0] ""\n')


def test_a_plural_form_with_a_broken_number_is_written_as_polib_reads_it():
    broken = CATS.replace("msgstr[1]", "msgstr[1[2]]")
    found, _ = said(head(UTF_8) + broken, "ja")
    assert found.count("msgstr[") == 1
    assert_compiles(found)
