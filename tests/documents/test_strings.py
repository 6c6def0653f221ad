"""Values of JSON and YAML that are no text: names of files, versions, codes, sizes."""

import json

import pytest

from pellucid.documents.formats import ReadOptions, read_document
from pellucid.documents.segments import notes_of

NO_TEXT = [
    *("v1.2.3", "1.2.3-beta", "image.png", "src/main.py", "./a", "/usr/bin", "application/json"),
    *("user_name", "userName", "app.title", "12px", "1.5rem", "2024-01-01T00:00Z", "en-US"),
    *("550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204e9800998ecf8427e", "rgb(1, 2, 3)"),
]
TEXT = [
    *("red", "and/or", "Yes/No", "e.g.", "U.S.", "McDonald", "well-known", "red.", "MIT", "A4"),
    *("he/she", "version v1.2.3", "see image.png", "f (x)", "COVID-19", "5 px"),
]


def in_german(source: str, name: str, of: str = "en", into: str = "de") -> tuple[str, list[str]]:
    options = ReadOptions(source_language=of, target_language=into)
    document = read_document(source.encode(), name.split(".")[-1], name, options)
    return document.write(document.segments).decode(), list(notes_of(document))


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("a.json", '{"a": "red", "@@locale": "en"}', '{"a": "red", "@@locale": "de"}'),
        (
            "a.json",
            '{"locale": "en-US", "translations": {"locale": "en"}}',
            '{"locale": "de", "translations": {"locale": "en"}}',
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
        ("a.json", '{"en": {"a": "red"}, "fr": {"a": "rouge"}}'),
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
    [note] = notes_of(document)
    assert note.startswith(f"{len(NO_TEXT)} values left that nobody reads, such as v1.2.3")
    assert notes_of(read_document(b'{"a": "red"}', "json", "a.json", ReadOptions())) == []


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_a_key_that_is_named_is_text(name: str):
    data = json.dumps({"a": "v1.2.3", "b": "red"}).encode()
    assert texts(data, name, "a") == ["v1.2.3"]
