"""Pairs stay pairs: whatever the format, whatever the dirt."""

import gc
import gzip
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import ConfigError, DataError, InputMissingError
from pellucid.text.config import DataConfig
from pellucid.text.corpus.chunks import Chunk, read_chunks
from pellucid.text.corpus.pairs import (
    PairFiles,
    iterate_pairs,
    read_pairs,
    training_files,
    validation_files,
)


def write(folder, name, content):
    path = folder / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def plain(folder, source, target):
    return PairFiles((write(folder, "a.en", source),), (write(folder, "a.de", target),))


PAIRS = [("a house", "ein Haus"), ("a\u2028b", "c\x85d"), ("x", "y")]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_every_format_gives_the_same_pairs(tmp_path, suffix):
    source = write(tmp_path, "s" + suffix, "".join(f"{s}\n" for s, _ in PAIRS))
    target = write(tmp_path, "t" + suffix, "".join(f"{t}\n" for _, t in PAIRS))
    tsv = write(tmp_path, "p.tsv" + suffix, "".join(f"{s}\t{t}\n" for s, t in PAIRS))
    lines = [json.dumps({"target": t, "source": s, "id": 1}) for s, t in PAIRS]
    jsonl = write(tmp_path, "p.jsonl" + suffix, "\n".join(lines))
    assert list(iterate_pairs(PairFiles((source,), (target,)))) == PAIRS
    assert list(iterate_pairs(PairFiles((tsv,)))) == PAIRS
    assert list(iterate_pairs(PairFiles((jsonl,)))) == PAIRS


def test_several_files_follow_one_another_each_beside_its_partner(tmp_path):
    first, second = (write(tmp_path, f"s{i}", f"s{i}\n") for i in (1, 2))
    third, fourth = (write(tmp_path, f"t{i}", f"t{i}\n") for i in (1, 2))
    files = PairFiles((first, second), (third, fourth))
    assert list(iterate_pairs(files)) == [("s1", "t1"), ("s2", "t2")]
    assert files.all == (first, second, third, fourth)


def test_both_directions_are_all_pairs_and_then_all_pairs_the_other_way_round(tmp_path):
    names = [str(write(tmp_path, name, f"{name} 1\n{name} 2\n")) for name in ("en", "fr")]
    valid = {"valid_source": (names[0],), "valid_target": (names[1],)}
    config = DataConfig(source=(names[0],), target=(names[1],), both_directions=True, **valid)
    forth = [("en 1", "fr 1"), ("en 2", "fr 2")]
    back = [(target, source) for source, target in forth]
    assert list(iterate_pairs(training_files(config))) == forth + back
    assert list(iterate_pairs(validation_files(config))) == forth


def test_both_directions_need_files_of_two_sides_and_validation_of_their_own():
    with pytest.raises(ConfigError) as caught:
        DataConfig.parse({"source": "a.tsv", "both_directions": True, "temperature": 5}, "data")
    assert str(caught.value) == (
        "data: both_directions needs plain files, named by source and target;"
        " both_directions needs valid_source and valid_target;"
        " both_directions excludes weights and temperature"
    )


def test_the_config_names_the_files(tmp_path):
    config = DataConfig(source=("a", "b"), target=("c", "d"), valid_source=("e.tsv",))
    assert [path.name for path in training_files(config).all] == ["a", "b", "c", "d"]
    assert [path.name for path in validation_files(config).all] == ["e.tsv"]


def test_pairs_with_a_blank_side_are_dropped_in_pairs_and_counted(tmp_path):
    files = plain(tmp_path, "a\n\n  \nb\n\nc\n", "A\nx\ny\n\n\nC\n")
    pairs = read_pairs(files)
    assert (pairs.sources, pairs.targets, pairs.empty) == (["a", "c"], ["A", "C"], 4)


def test_blank_lines_of_tsv_and_jsonl_count_as_blank_pairs(tmp_path):
    tsv = PairFiles((write(tmp_path, "a.tsv", "a\tb\n\n \t\nc\td\n"),))
    jsonl = PairFiles((write(tmp_path, "a.jsonl", '{"source": "a", "target": ""}\n\n'),))
    assert (read_pairs(tsv).sources, read_pairs(tsv).empty) == (["a", "c"], 2)
    assert read_pairs(jsonl).empty == 2


def test_different_line_counts_are_named_with_the_line_where_they_part(tmp_path):
    choose = random.Random(1)
    sizes = [choose.randint(5, 60) for _ in range(400)]
    source = ["s" * size for size in sizes]
    target = ["t" * (size + choose.randint(0, 3)) for size in sizes]
    del target[122]  # line 123
    files = plain(tmp_path, "\n".join(source), "\n".join(target))
    with pytest.raises(DataError) as caught:
        list(iterate_pairs(files))
    message, line = str(caught.value).rsplit(" ", 1)
    assert message == (
        f"both sides must have as many lines, got 400 in {files.sources[0]} and 399 in"
        f" {files.targets[0]}; they part near line"
    )
    assert abs(int(line) - 123) <= 3
    assert caught.value.hint == (
        f"compare the files around line {line}: a line was lost, doubled or broken in two"
    )


@pytest.mark.parametrize("longer", ["source", "target"])
def test_a_line_too_many_at_the_end_is_found_on_either_side(tmp_path, longer):
    texts = {"source": "a\nbb\nccc\n", "target": "a\nbb\nccc\n"}
    texts[longer] += "dddd\n"
    files = plain(tmp_path, texts["source"], texts["target"])
    with pytest.raises(DataError, match="they part near line 4"):
        list(iterate_pairs(files))


def test_an_empty_file_is_refused(tmp_path):
    for files in (
        plain(tmp_path, "", ""),
        PairFiles((write(tmp_path, "a.tsv", ""),)),
        PairFiles((write(tmp_path, "a.jsonl", ""),)),
    ):
        with pytest.raises(DataError) as caught:
            list(iterate_pairs(files))
        assert str(caught.value) == f"{files.sources[0]} is empty"
        assert caught.value.hint == "a corpus needs at least one sentence pair"


def test_an_empty_file_beside_a_full_one_is_told_by_its_count(tmp_path):
    files = plain(tmp_path, "a\n", "")
    with pytest.raises(DataError, match=r"got 1 in .*a\.en and 0 in .*a\.de; .* near line 1$"):
        list(iterate_pairs(files))


def test_a_missing_partner_is_named(tmp_path):
    files = PairFiles((write(tmp_path, "a", "a\n"),), (tmp_path / "none",))
    with pytest.raises(InputMissingError, match="none: No such file or directory"):
        list(iterate_pairs(files))


@pytest.mark.parametrize(
    ("line", "count", "hint"),
    [
        ("only one", 1, ""),
        ("a\tb\tCC-BY", 3, "keep two columns, for example: cut -f1,2"),
        ("17\ta\tb", 3, "keep two columns, for example: cut -f2,3"),
        ("17\ta\t4711\tb", 4, "keep two columns, for example: cut -f2,4"),
        ("a\tb\t0.97", 3, "keep two columns, for example: cut -f1,2"),
        (
            "https://a.example/x\thttp://b.example/\ta\tb\t0.9",
            5,
            "keep two columns, for example: cut -f3,4",
        ),
        ("1\t2\t3", 3, "keep two columns, for example: cut -f1,2"),
    ],
)
def test_a_tsv_line_must_have_two_columns(tmp_path, line, count, hint):
    path = write(tmp_path, "a.tsv", f"a\tb\n{line}\n")
    with pytest.raises(DataError) as caught:
        list(iterate_pairs(PairFiles((path,))))
    assert str(caught.value) == (
        f"{path}, line 2: a line must be source, tab, target, got {count} columns"
    )
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"not JSON \(Expecting property name"),
        ("[" * 200_000, r"not JSON \(its lists are nested too deeply"),
        ("[1]", r'an object must have the texts "source" and "target", .*, got \[1\]'),
        ('{"source": "a"}', 'the texts "source" and "target", .*, got {"source": "a"}'),
        ('{"source": "a", "target": 3}', 'the texts "source" and "target", .*, got '),
        (r'{"source": "a", "target": "\ud800"}', r"got the lone surrogate U\+D800 at character 1"),
    ],
)
def test_a_bad_json_line_is_named(tmp_path, line, message):
    path = write(tmp_path, "a.jsonl", f'{{"source": "a", "target": "b"}}\n{line}\n')
    with pytest.raises(DataError, match=message) as caught:
        list(iterate_pairs(PairFiles((path,))))
    assert str(caught.value).startswith(f"{path}, line 2: ")


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.en"])
def test_reading_can_be_given_up_at_any_time(tmp_path, name):
    """A file left open would be a ResourceWarning, which fails the test."""
    if name == "a.en":
        files = plain(tmp_path, "a\nb\n", "c\nd\n")
    elif name == "a.tsv":
        files = PairFiles((write(tmp_path, name, "a\tc\nb\td\n"),))
    else:
        files = PairFiles((write(tmp_path, name, '{"source": "a", "target": "c"}\n' * 2),))
    pairs = iterate_pairs(files)
    assert next(pairs) == ("a", "c")
    pairs.close()
    gc.collect()


def test_a_given_format_wins_over_the_suffix(tmp_path):
    path = write(tmp_path, "a.txt", "a\tb\n")
    assert list(iterate_pairs(PairFiles((path,), format="tsv"))) == [("a", "b")]


LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))


@given(st.lists(st.tuples(LINE, LINE), min_size=1))
def test_any_pairs_come_back_in_order(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("pairs")
    framed = [(f"'{source}'", f"'{target}'") for source, target in pairs]
    files = plain(folder, *("".join(f"{pair[i]}\n" for pair in framed) for i in (0, 1)))
    assert list(iterate_pairs(files)) == framed


def test_lines_of_hugging_face_are_pairs_in_the_order_of_their_languages(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"id": "0", "translation": {"de": "Hund", "en": "dog"}}\n')
    assert list(iterate_pairs(PairFiles((path,)))) == [("Hund", "dog")]
    path.write_text('{"translation": {"de": "Hund", "en": "dog", "fr": "chien"}}\n')
    with pytest.raises(DataError, match="two texts by their languages, or"):
        list(iterate_pairs(PairFiles((path,))))


@pytest.mark.parametrize(
    "line", ["source\ttarget", "Source\tTarget", "src\ttgt", "TRG\tSRC", "English\tGerman"]
)
def test_a_header_of_tsv_is_told(tmp_path, line):
    path = write(tmp_path, "a.tsv", f"{line}\na\tb\n")
    with pytest.raises(DataError) as caught:
        list(iterate_pairs(PairFiles((path,))))
    assert str(caught.value) == (
        f"{path}, line 1: a file must begin with its first pair, and this line names the columns"
    )
    assert caught.value.hint == (
        "remove it, for example: tail -n +2; or name its columns as in pairs.tsv#en"
    )
    path.write_text(f"a\tb\n{line}\n")
    assert len(list(iterate_pairs(PairFiles((path,))))) == 2
    path.write_text("no\tit\na\tb\n")
    assert len(list(iterate_pairs(PairFiles((path,))))) == 2, "words of a dictionary"


@pytest.mark.parametrize("name", ["pairs.ods", "pairs.XLSX", "pairs.xlsx.gz", "pairs.xlsx"])
def test_a_spreadsheet_is_told(name):
    with pytest.raises(ConfigError) as caught:
        DataConfig.parse({"source": name}, "data")
    assert str(caught.value) == (
        f"data: source must be text or a table, got {name}: save it as .csv with the columns"
        " source and target"
    )
    assert DataConfig.parse({"source": name, "target": "b.txt"}).source == (name,)


def test_the_first_line_decides_which_language_is_the_source(tmp_path):
    lines = [{"de": "Hund", "en": "dog"}, {"en": "cat", "de": "Katze"}]
    path = write(tmp_path, "p.jsonl", "".join(json.dumps({"translation": e}) + "\n" for e in lines))
    wanted = [("Hund", "dog"), ("Katze", "cat")]
    assert list(iterate_pairs(PairFiles((path,)))) == wanted
    for chunk_bytes in (1, 1 << 19):
        chunks = read_chunks(PairFiles((path,)), chunk_bytes)
        sent = (Chunk.from_message(list(chunk.to_message())) for chunk in chunks)
        assert [pair for chunk in sent for pair in chunk.pairs()] == wanted

    path.write_text(path.read_text() + json.dumps({"translation": {"fr": "a", "en": "b"}}))
    wanted = 'line 3: an object must have the texts "de" and "en" in an object "translation", as'
    with pytest.raises(DataError, match=wanted):
        list(iterate_pairs(PairFiles((path,))))


FLAT, OTHER_ORDER = {"de": "Hund", "en": "dog"}, {"en": "cat", "de": "Katze"}
USUAL, NESTED = {"source": "a", "target": "b"}, {"translation": FLAT}


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 19])
@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([USUAL, FLAT], 'line 2: an object must have the texts "source" and "target", as'),
        (
            [USUAL, NESTED, {"translation": OTHER_ORDER}],
            'line 2: an object must have the texts "so',
        ),
        ([FLAT, NESTED], 'line 2: an object must have the texts "de" and "en", as the first'),
        ([NESTED, FLAT], 'line 2: an object must have the texts "de" and "en" in an object "tr'),
        (["", FLAT, OTHER_ORDER], [("", ""), ("Hund", "dog"), ("Katze", "cat")]),
        ([{"text": "a"}, FLAT], 'line 1: a line must be an object with the texts "source" and'),
        (["x", FLAT], "line 1: not JSON"),
    ],
)
def test_the_first_object_names_the_texts_wherever_a_chunk_ends(
    tmp_path, lines, wanted, chunk_bytes
):
    """The first line of each file here is behind a byte order mark."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    path = write(tmp_path, "p.jsonl", "\ufeff" + "".join(f"{text}\n" for text in texts))
    chunks = read_chunks(PairFiles((path,)), chunk_bytes)
    read = (pair for chunk in chunks for pair in chunk.pairs()), iterate_pairs(PairFiles((path,)))
    for pairs in read:
        if isinstance(wanted, list):
            assert list(pairs) == wanted
        else:
            with pytest.raises(DataError, match=wanted):
                list(pairs)


@pytest.mark.parametrize("damaged", ["a.en.gz", "a.de.gz"])
def test_the_damaged_file_of_two_is_named(tmp_path, damaged):
    for name in ("a.en.gz", "a.de.gz"):
        write(tmp_path, name, "one line\n" * 1000)
    path = tmp_path / damaged
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DataError, match=f"{damaged} is not whole gzip data"):
        list(read_chunks(PairFiles((tmp_path / "a.en.gz",), (tmp_path / "a.de.gz",))))
