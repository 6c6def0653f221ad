"""Values of JSON and YAML that are no text: names of files, versions, codes, sizes."""

import json
import time

import pytest

from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.markup import Counts
from pellucid.documents.names import format_of
from pellucid.documents.plain import TaggedText
from pellucid.documents.translate import translate_document
from tests.documents.stand_in import translated
from tests.documents.test_untouched_bytes import Capitals

NO_TEXT = [
    *("v1.2.3", "1.2.3-beta", "image.png", "src/main.py", "./a", "/usr/bin", "application/json"),
    *("user_name", "userName", "app.title", "12px", "1.5rem", "2024-01-01T00:00Z", "en-US"),
    *("UTF-8", "utf8", "iso-8859-1", "fa-home", "fas fa-home", "fa-solid fa-user", "mdi-account"),
    *("btn btn-primary", "MMM d, yyyy", "dd.MM.yyyy HH:mm", "yyyy-MM-dd'T'HH:mm:ss", "h:mm a"),
    *("EEEE, MMMM d", "DD/MM/YYYY", "true", "false", "null"),
    *("550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204e9800998ecf8427e", "rgb(1, 2, 3)"),
    *("/users/:id", "/users/{id}/edit", "text/html; charset=utf-8", ".pdf", "^[a-z ]+$"),
    *("iVBORw0KGgoAAAANSUhEUg==", "function (a) { return 1; }"),
]
TEXT = [
    *("red", "and/or", "Yes/No", "e.g.", "U.S.", "McDonald", "well-known", "red.", "MIT", "A4"),
    *("bi-weekly", "save-button", "fa", "Add", "hmm", "dd", "mm", "a dad", "iconic", "Mm, yes"),
    *("he/she", "version v1.2.3", "see image.png", "f (x)", "COVID-19", "5 px", "True", "true."),
    *("Select a file from it", "button", "ABC123", "_blank", "POST", "EUR", "a.b c"),
]


@pytest.mark.parametrize(
    ("name", "source", "found", "left"),
    [
        (
            "a.json",
            '{"en": {"de": "red"}, "de": {"a": "rot"}, "pt-BR": ["x y"]}',
            '{"en": {"de": "RED"}, "de": {"a": "rot"}, "pt-BR": ["x y"]}',
            "de, pt-BR",
        ),
        ("a.yaml", "en:\n  a: red\nde:\n  a: rot\n", "en:\n  a: RED\nde:\n  a: rot\n", "de"),
        # other keys, and no key of the source
        (
            "a.json",
            '{"en": "red", "de": "old", "a": "b"}',
            '{"en": "RED", "de": "OLD", "a": "B"}',
            "",
        ),
        ("a.json", '{"it": "red", "de": "old"}', '{"it": "RED", "de": "OLD"}', ""),
        ("a.yaml", "en: red\nno: old\nor else: a\n", "en: RED\nno: OLD\nor else: A\n", ""),
    ],
)
def test_of_a_file_in_several_languages_one_is_translated(
    name: str, source: str, found: str, left: str
):
    counts = Counts()
    assert translated(source, name, counts=counts) == found
    note = f"what is below {left} is left, as its language is not en"
    assert [each.partition(":")[0] for each in counts.notes] == ([note] if left else [])


def in_german(source: str, name: str, of: str = "en", into: str = "de") -> tuple[str, list[str]]:
    options = ReadOptions(source_language=of, target_language=into)
    document = read_document(source.encode(), name.split(".")[-1], name, options)
    return document.write(document.segments).decode(), list(document.notes)


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("a.json", '{"a": "red", "@@locale": "en"}', '{"a": "red", "@@locale": "de"}'),
        (
            "a.json",
            '{"locale": "en-US", "translations": {"locale": "English"}}',
            '{"locale": "de", "translations": {"locale": "English"}}',
        ),
        ("a.json", '{"en": {"en": "red"}}', '{"de": {"en": "red"}}'),
        ("a.yaml", "# en\nen: # b\n  en: red\n", "# en\nde: # b\n  en: red\n"),
        ("a.yaml", '"en-GB": &a\n  b: red\n', '"de": &a\n  b: red\n'),
    ],
)
def test_a_file_says_the_language_of_its_translation(name: str, source: str, found: str):
    """Flutter refuses an app_de.arb that says "en"; Rails would replace the English texts."""
    written, notes = in_german(source, name)
    assert written == found
    assert all(note.startswith("its outermost key, en") for note in notes)
    assert bool(notes) == ("@@" not in source and "locale" not in source)
    # Not known, or the same.
    assert in_german(source, name, into="") == (source, [])
    assert in_german(found, name, of="fr") == (found, [])


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.json", '{"en": "red"}'),
        ("a.json", '{"my": {"a": "red"}}'),
        ("a.json", '[{"en": {"a": "red"}}]'),
        ("a.json", '{"a": {"@@locale": "en"}}'),
        ("a.yaml", "en: red\n"),
        ("a.yaml", "en:\n- red\n"),
        ("a.yaml", "a:\n  en:\n    b: red\n"),
    ],
)
def test_another_key_stays_whatever_language_it_may_name(name: str, source: str):
    assert in_german(source, name) == (source, [])


def test_a_key_for_norwegian_is_no_boolean():
    assert in_german("en:\n  b: red\n", "a.yaml", into="no")[0] == '"no":\n  b: red\n'


def texts(data: bytes, name: str, *keys: str) -> list[str]:
    options = ReadOptions(columns=keys)
    document = read_document(data, name.split(".")[-1], name, options)
    return [segment.text for segment in document.segments]


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_what_nobody_reads_is_left_and_counted(name: str):
    """JSON is YAML too."""
    data = json.dumps({"a": NO_TEXT, "b": TEXT}).encode()
    assert texts(data, name) == TEXT
    document = read_document(data, name.split(".")[-1], name, ReadOptions())
    assert document.write(document.segments) == data
    [note] = document.notes
    assert note.startswith(f"{len(NO_TEXT)} values left that nobody reads, such as v1.2.3")
    assert read_document(b'{"a": "red"}', "json", "a.json").notes == []


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_a_key_that_is_named_is_text(name: str):
    data = json.dumps({"a": "v1.2.3", "b": "red"}).encode()
    assert texts(data, name, "a") == ["v1.2.3"]


def of_properties(value: str) -> str:
    return f"key={value}\n"


def of_apple(value: str) -> str:
    return f'"key" = "{value}";\n'


def of_android(value: str) -> str:
    return f'<resources><string name="key">{value}</string></resources>'


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a.properties", of_properties),
        ("a.strings", of_apple),
        ("strings.xml", of_android),
    ],
)
def test_in_strings_of_apps_too_what_nobody_reads_is_left_and_counted(name: str, written):
    kind = format_of(name)
    for value in NO_TEXT:
        document = read_document(written(value).encode(), kind, name)
        assert [segment.text for segment in document.segments] == [], value
        assert document.write([]) == written(value).encode()
        # No option names the keys of these formats.
        assert document.notes == [f"1 value left that nobody reads, such as {value}"]
    for value in TEXT:
        document = read_document(written(value).encode(), kind, name)
        assert [segment.text for segment in document.segments] == [value]
        assert document.notes == []


@pytest.mark.parametrize(
    "block",
    [
        "a: >\n  A list:\n    - red\n    - old\n  goes on\n  here.\n\n  Next.\n",
        "a: >-\n\n  a cat\n\n\n    in it\n\n  red\n",
        "a: >+\n  a cat\n    in it\n\n\n  red\n\n",
        "a: >\n  red\n  \tcat\n  old\n",
        "a: >2\n    a cat\n  red\n",
        "a: |\n  a cat\n\n    in it\n  red\n",
    ],
)
def test_the_lines_of_a_block_of_yaml_stay(block: str):
    yaml = pytest.importorskip("yaml")
    source = f"{block}b: x\n"
    found = translate_document(source.encode(), Capitals(), "a.yaml").decode()
    before, after = yaml.safe_load(source), yaml.safe_load(found)
    assert after == {key: value.upper() for key, value in before.items()}
    assert found.startswith(block.split("\n")[0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # keys of a menu's command
        ("A dog runs\tCtrl+D", "A DOG RUNS\tCtrl+D"),
        ("&Open the dog\tAlt+F4", "&OPEN THE DOG\tAlt+F4"),
        ("_File\tDel", "_FILE\tDel"),
        ("Zoom in\tCtrl++", "ZOOM IN\tCtrl++"),
        ("Go home\tCtrl+Shift+Home", "GO HOME\tCtrl+Shift+Home"),
        ("Quit now\t\u2318Q", "QUIT NOW\t\u2318Q"),
        ("Run\t<Ctrl>R", "RUN\t<Ctrl>R"),
        ("Help me\tF1", "HELP ME\tF1"),
        # a line end that is written as two characters
        ("A dog\\nA man", "A DOG\\nA MAN"),
        ("Sure?\\nit is", "SURE?\\nIT IS"),
        ("A dog:\\n- red\\r\\n- old\\n", "A DOG:\\n- RED\\r\\n- OLD\\n"),
        ("A dog\\n\\nA man\\r\\n\\r\\nA cat", "A DOG\\n\\nA MAN\\r\\n\\r\\nA CAT"),
        ("Sure?\\n\\nit is.\\n so", "SURE?\\n\\nIT IS.\\n SO"),
        ("A dog\\n Some men:\\n one\\n - two", "A DOG\\n SOME MEN:\\n ONE\\n - TWO"),
    ],
)
def test_keys_and_written_line_ends_stay(text: str, found: str):
    data = json.dumps({"a": text}).encode()
    assert json.loads(translate_document(data, Capitals(), "a.json"))["a"] == found


@pytest.mark.parametrize(
    "text",
    [
        *("C:\\new\\Names", "dir\\name", "C:\\n", "use \\n for a line", 'the "\\n" sign'),
        *("a\\\\nB", "[^\\n]+", "a dog runs"),
        *("Lines end with \\r\\n on Windows.", "Separate them by \\r\\n.", "Use \\r\\n\\r\\n The"),
        *("Matches a.b\\n or c\\n D", "a dog ends in x\\n, and", "x\\n) is", "the end\\n."),
    ],
)
def test_a_backslash_before_an_n_is_not_always_a_line_end(text: str):
    [segment] = read_document(json.dumps({"a": f"{text} x"}).encode(), "json", "a.json").segments
    assert segment.pieces == (f"{text} x",)


def test_time_for_tags_among_roles_grows_with_the_length_alone():
    def seconds(count: int) -> float:
        text = ":ref:`x <y>` <b>z</b> " * count
        begun = time.process_time()
        TaggedText(text)
        return time.process_time() - begun

    assert seconds(16_000) < 8 * min(seconds(4_000) for _ in range(2))


def test_names_below_keys_of_programs_stay():
    values = {"id": "red-house", "slug": "house", "lang": "en", "timezone": "Europe/Paris"}
    source = json.dumps({**values, "title": "red house", "icon": "Red house"})
    for name, text in (("a.json", source), ("a.yaml", source)):
        found = json.loads(translated(text, name))
        assert found == {**values, "title": "HOUSE RED", "icon": "HOUSE rED"}


OF_PROGRAMS = [
    *(("type", "button"), ("type", "FeatureCollection"), ("format", "date-time")),
    *(("sql", "select name from users"), ("x", "SELECT * FROM users WHERE id = 1")),
    *(("id", "ABC123"), ("user_id", "u-17"), ("userId", "root"), ("href", "#top"), ("src", "a")),
    *(("class", "btn-lg mt-2"), ("target", "_blank"), ("rel", "noopener noreferrer")),
    *(("method", "POST"), ("align", "center"), ("currency", "EUR"), ("itemIcon", "home")),
    *(("style", "color: red; margin: 0 auto"), ("pattern", r"\d{3}-[0-9]+")),
]
OF_READERS = [
    *(("type", "Type"), ("type", "red"), ("query", "Select a cat"), ("sql", "red cat")),
    *(
        ("id", "Your name"),
        ("class", "first class"),
        ("target", "red"),
        ("method", "POST a letter"),
    ),
    *(
        ("style", "red house"),
        ("x", "SELECT A CAT FROM THE LIST"),
        ("paid", "red"),
        ("href", "Home"),
    ),
]


@pytest.mark.parametrize(("key", "value"), OF_PROGRAMS)
def test_a_value_for_a_program_stays_below_its_key(key: str, value: str):
    source = json.dumps({key: value, "title": "cat"})
    for name in ("a.json", "a.yaml"):
        assert json.loads(translated(source, name)) == {key: value, "title": "CAT"}


@pytest.mark.parametrize(("key", "value"), OF_READERS)
def test_a_text_below_the_same_keys_is_translated(key: str, value: str):
    assert texts(json.dumps({key: value}).encode(), "a.json") == [value]
