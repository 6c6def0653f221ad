"""JSON is read without leniency, and every problem has a place."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.serve.server.errors import InvalidError
from pellucid.serve.server.strict_json import MalformedError, depth_of, parse_strictly, shown

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


def problems(body: bytes) -> list[tuple[str, str]]:
    with pytest.raises(InvalidError) as caught:
        parse_strictly(body, 32, 10_000)
    return [(each.field, each.message) for each in caught.value.problems]


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_what_is_json_is_read_as_the_standard_parser_reads_it(value: object):
    for escaped in (True, False):
        text = json.dumps(value, ensure_ascii=escaped)
        assert parse_strictly(text.encode(), 1000, 10_000) == value


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b'{"a": NaN}', "a", "must be a finite number"),
        (b'{"a": [1, -Infinity]}', "a.1", "must be a finite number"),
        (b'{"a": 1e999}', "a", "must be a finite number"),
        (b'{"a": {"b": 1' + b"0" * 100_000 + b"}}", "a.b", "must be a number of at most 40 digits"),
        (b'{"a": 0.' + b"1" * 100_000 + b"}", "a", "must be a number of at most 40 digits"),
        (b'{"a": 1, "a": 1}', "a", "must be given once"),
        (rb'{"a": ["x", "\ud800"]}', "a.1", "must not hold a lone surrogate"),
        (rb'{"a": "\udc00\ud800"}', "a", "must not hold a lone surrogate"),
        (rb'{"\ud800": 1}', "body", "a name must not hold a lone surrogate"),
        (b"NaN", "body", "must be a finite number"),
    ],
)
def test_what_no_field_can_hold_is_named(body: bytes, field: str, message: str):
    assert problems(body) == [(field, message)]


def test_a_pair_of_surrogates_is_a_character():
    assert parse_strictly(rb'"\ud83d\ude42"', 32, 1) == "🙂"


def test_all_problems_are_told_at_once():
    assert [field for field, _ in problems(rb'{"a": NaN, "b": ["\ud800"], "c": 1}')] == ["a", "b.0"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON: Expecting value at character 0"),
        (b"{'a': 1}", "the body is not JSON: "),
        (b"\xff\xfe{\x00}\x00", "the body must be UTF-8, byte 0 is not"),
        ('{"a": "é"}'.encode("latin-1"), "the body must be UTF-8, byte 7 is not"),
        (b'\xef\xbb\xbf{"a": 1}', "the body must not start with a byte order mark"),
        (b"[" * 33 + b"]" * 33, "arrays and objects must be nested at most 32 deep"),
        (b"[" * 9_999, "arrays and objects must be nested at most 32 deep"),
        (b'{"a":' * 9_999, "arrays and objects must be nested at most 32 deep"),
        (b"[" * 100_000, "a body must hold at most 10000 values"),
        (b"[" + b"1," * 9_999 + b"1]", "a body must hold at most 10000 values"),
        (b'"\x01"', "the body is not JSON: Invalid control character at character 1"),
        (b'"a', "the body is not JSON: Unterminated string starting at character 0"),
    ],
)
def test_what_is_not_json_is_told(body: bytes, message: str):
    with pytest.raises(MalformedError, match=f"^{message}"):
        parse_strictly(body, 32, 10_000)


def test_brackets_in_strings_do_not_count():
    assert depth_of(r'{"[[[\"[[": ["]", "\\"], "b": {}}') == 2
    assert parse_strictly(json.dumps(["[" * 100]).encode(), 1, 2) == ["[" * 100]


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_the_depth_is_how_deep_it_is(value: object):
    def depth(inner: object) -> int:
        if isinstance(inner, list):
            return 1 + max(map(depth, inner), default=0)
        if isinstance(inner, dict):
            return 1 + max(map(depth, inner.values()), default=0)
        return 0

    assert depth_of(json.dumps(value)) == depth(value)


@pytest.mark.parametrize("text", ['"\\"' * 350_000, '"' + '\\"' * 500_000 + "\\", "[]" * 500_000])
def test_a_megabyte_of_marks_takes_no_more_than_a_moment(text: str):
    """D8: linear, or this would take minutes."""
    begun = time.process_time()
    depth_of(text)
    assert time.process_time() - begun < 20


def test_a_long_name_is_not_repeated_by_each_problem_below_it():
    body = b'{"' + b"x" * 100_000 + b'": [' + b"NaN," * 99 + b"NaN]}"
    assert sum(len(field) for field, _ in problems(body)) < 100 * 300


def test_values_are_told_back_short_in_ascii_and_on_one_line():
    for value in ("é" * 10**6, ["x" * 10**6] * 3, {"a\n": {"b" * 10**6: 1}}, 10**39, None):
        text = shown(value)
        assert len(text) <= 43
        assert text.isascii()
        assert text.isprintable()
    assert shown("a") == "'a'"
    assert shown("x" * 50) == "'" + "x" * 39 + "..."
