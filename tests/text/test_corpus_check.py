"""The data doctor finds every planted problem, and nothing in good text."""

import functools
import gzip
import logging
import os
import random
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid import phrasebook
from pellucid.core.errors import DataError, InputMissingError, WriteError
from pellucid.text.check.check import examine, warn_of_problems
from pellucid.text.check.rules import repeated_pairs, repeated_rows
from pellucid.text.check.scan import scan
from pellucid.text.corpus.cleaning import Rules, clean_corpus
from pellucid.text.corpus.lines import fetch_lines, iterate_blocks, iterate_raw_lines
from pellucid.text.corpus.pairs import PairFiles
from pellucid.text.corpus.rows import RowSet

SHARED = Path(__file__).parents[3] / "shared" / "data"
NEEDS_SHARED = pytest.mark.skipif(not SHARED.exists(), reason="the sample corpora are not here")
CLEAN = [
    ("multi30k/train.en", "multi30k/train.de"),
    ("multi30k/val.en", "multi30k/val.fr"),
    ("multi30k/test_2016_flickr.de", "multi30k/test_2016_flickr.en"),
    ("tatoeba_de_en/train.de", "tatoeba_de_en/train.en"),
    ("tatoeba_de_en/valid.de", "tatoeba_de_en/valid.en"),
    ("europarl20k/train.de", "europarl20k/train.en"),
    ("scan/train.in", "scan/train.out"),
    ("cmudict/train.graph", "cmudict/train.phon"),
    ("cmudict/valid.graph", "cmudict/valid.phon"),
]


@pytest.fixture(scope="module")
def pairs():
    splits = phrasebook.split(200, 20, 7)
    return [(pair.source, pair.target) for pair in splits.train]


def write(folder, pairs, names=("a.fr", "a.en")):
    """Two files of these pairs, of text or bytes."""
    paths = [folder / name for name in names]
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_bytes(b"".join(_bytes(line) + b"\n" for line in side))
    return paths


def _bytes(line):
    return line if isinstance(line, bytes) else line.encode()


def found_in(diagnosis):
    return {kind: each.first_lines for kind, each in diagnosis.findings.items() if each.count}


def test_nothing_is_found_in_good_text(tmp_path, pairs):
    diagnosis = examine(*write(tmp_path, pairs))
    assert found_in(diagnosis) == {}
    assert diagnosis.reasons == []
    assert diagnosis.misalignment is None
    assert (diagnosis.source_lines, diagnosis.target_lines) == (len(pairs), len(pairs))


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("empty", "", "A dog ."),
        ("empty", "\u3000 \xa0", "A dog ."),
        ("empty", "Un chien .", " \t"),
        ("invalid_utf8", b"caf\xe9 noir", "black coffee"),
        ("crlf", "un chien noir\r", "a black dog"),
        ("carriage_return", "un chien\rnoir", "a black dog"),
        ("odd_separator", "un chien\u2028noir", "a black dog"),
        ("nul", "un chien\0noir", "a black dog"),
        ("control", "un chien noir", "a black\x07 dog"),
        ("unusual", "un chien\ufffd noir", "a black dog"),
        ("unusual", "un gar?on noir", "a black boy"),
        ("unusual", "un chien noir", "?????? ??????"),
        ("invisible", "un chien\u200b noir", "a black dog"),
        ("invisible", "un chi\u00aden noir", "a black dog"),
        ("invisible", "un chien noir", "\u202aa black dog\u200e"),
        ("other_script", "un chien noir", "Чёрная собака"),
        ("mojibake", "un chien Ã©gal", "a black dog"),
        ("windows_1252", "un chien\x85", "a black dog"),
        ("markup", "un chien<br>", "a black dog"),
        ("markup", "un gar\\u00e7on noir", "a black boy"),
        ("quoted", '"un ""chien"" noir"', "a black dog"),
        ("tab", "un chien\tnoir", "a black dog"),
        ("subwords", "un chi@@ en noir", "a black dog"),
        ("subwords", "un chien noir", "▁a ▁black ▁d og"),
        ("too_long", "un chien " * 200, "a black dog " * 180),
        ("length_ratio", "un chien", "a black dog " * 10),
        ("source_equals_target", "Paris - Londres", "Paris - Londres"),
    ],
)
def test_one_planted_problem_is_named_with_its_line(tmp_path, pairs, kind, source, target):
    diagnosis = examine(*write(tmp_path, [*pairs[:50], (source, target), *pairs[50:]]))
    assert found_in(diagnosis) == {kind: [51]}
    assert diagnosis.findings[kind].count == 1
    assert set(diagnosis.findings[kind].examples) == {51}


@pytest.mark.parametrize(
    "line",
    [
        "what? no, a dog",
        "dogs.org/find?name=rex&sort-by.age=1",
        "dogs.org/find?sort-by=age",
        "a dog??? Yes!",
        "a dog?",
        '"a black dog"',
        '"a dog", she said, "and a cat"',
        '"a dog ""',
        "C:\\user\\uncle",
    ],
)
def test_ordinary_marks_are_no_problem(tmp_path, pairs, line):
    assert found_in(examine(*write(tmp_path, [*pairs, ("un chien noir", line)]))) == {}


def test_quotation_marks_around_cells_are_found_where_csv_wrote_them(tmp_path, pairs):
    """Excel writes them around a cell with a comma or a mark, and R around every text."""
    excel = [('"oui, ""moi"""', '"yes, ""me"""'), ('"un chien, noir"', '"a dog, black"')]
    assert found_in(examine(*write(tmp_path, [*pairs, *excel])))["quoted"] == [
        len(pairs) + 1,
        len(pairs) + 2,
    ]
    every = [(f'"{source}"', f'"{target}"') for source, target in pairs]
    assert examine(*write(tmp_path, every)).findings["quoted"].count == len(pairs)
    quotations = [*every[:50], *pairs[50:]]
    assert found_in(examine(*write(tmp_path, quotations))) == {}


def test_a_line_that_stands_beside_many_others_is_found(tmp_path, pairs):
    """A spreadsheet has N/A for what nobody translated, and pandas nan."""
    missing = [(source, "N/A") for source, _ in dict(pairs[:30]).items()]
    diagnosis = examine(*write(tmp_path, [*pairs[30:], *missing]))
    first = len(pairs) - 30 + 1
    assert found_in(diagnosis)["frequent"] == list(range(first, first + 10))
    assert diagnosis.findings["frequent"].target_count == len(missing)
    few = examine(*write(tmp_path, [*pairs, *missing[:19]]))
    same = examine(*write(tmp_path, [*pairs, *[("oui", "yes")] * 30]))
    assert "frequent" not in {**found_in(few), **found_in(same)}


def test_a_file_of_both_forms_is_told_and_duplicates_are_found_across_them(tmp_path):
    composed = [(f"Việt Nam số {number} à lớn", f"one {number} two") for number in range(20)]
    spaced = composed[4][0].replace(" ", "\u00a0"), f"\ufeff{composed[4][1]}"
    decomposed = [(unicodedata.normalize("NFD", source), target) for source, target in composed[:3]]
    paths = write(tmp_path, [*composed, *decomposed, spaced])
    found = found_in(examine(*paths))
    assert found == {
        "not_nfc": [21, 22, 23],
        "mixed_forms": [21, 22, 23],
        "invisible": [24],
        "duplicate": [21, 22, 23, 24],
    }

    # A file that is decomposed throughout mixes nothing.
    assert found_in(examine(*write(tmp_path, decomposed))) == {"not_nfc": [1, 2, 3]}

    training, test = write(tmp_path, composed), write(tmp_path, decomposed, ("t.fr", "t.en"))
    for files in ((training, test), (test, training)):
        assert examine(*files[0], test=files[1]).findings["overlap"].count == 3


def test_a_copy_is_composed(tmp_path):
    lines = [(f"Việt Nam số {number}", f"café {number}") for number in range(9)]
    decomposed = [tuple(unicodedata.normalize("NFD", each) for each in pair) for pair in lines]
    paths = write(tmp_path, decomposed)
    done = clean_corpus(
        PairFiles((paths[0],), (paths[1],)), tmp_path / "out", Rules(near_duplicates=False)
    )
    copies = [path.read_text("utf-8").splitlines() for path in done.files.all]
    assert list(zip(*copies, strict=True)) == lines


@pytest.mark.parametrize(
    "sentences",
    [
        ["Это собака", "Вот iPhone и MacBook", "Да."],
        ["これは犬です", "漢字", "カタカナ 123", "私はPythonが好き"],
        ["이것은 개", "안녕하세요"],
        ["یہ کتا ہے", "مرحبا", "می‌روم"],
        ["यह कुत्ता है", "नमस्ते"],
        ["ეს ძაღლია", "გამარჯობა"],
        ["Đây là con chó", "Ça va, garçon ?", "Żółw"],
        ["Αυτός είναι", "ἀρχή"],
    ],
)
def test_lines_of_the_script_of_their_file_are_no_others(tmp_path, sentences):
    other = "Latin text here" if not sentences[0].isascii() and "Đ" not in sentences[0] else "Это"
    pairs = [(f"{text} {n}", f"words {n}") for n in range(9) for text in sentences]
    found = examine(*write(tmp_path, [*pairs, (other, "words"), ("12 ok", "words 12")])).findings
    assert found["other_script"].first_lines == [len(pairs) + 1]


def test_duplicates_are_all_but_the_first_of_equal_pairs(tmp_path, pairs):
    halves = (pairs[3][0], "Something else entirely ."), ("Tout autre chose .", pairs[3][1])
    diagnosis = examine(*write(tmp_path, [*pairs, pairs[3], *halves, pairs[5], pairs[3]]))
    count = len(pairs)
    assert found_in(diagnosis) == {"duplicate": [count + 1, count + 4, count + 5]}


def test_repeated_rows_by_hand():
    assert repeated_rows(np.array([5, 3, 5, 5, 7, 3])).tolist() == [2, 3, 5]
    assert repeated_rows(np.array([5, 3])).tolist() == []
    assert repeated_rows(np.empty(0, np.int64)).tolist() == []


def test_repeated_pairs_are_found_in_parts_as_in_one():
    random = np.random.default_rng(1)
    source, target = random.integers(0, 40, (2, 5000)) * 0x9E3779B97F4A7C1
    pairs = list(zip(source.tolist(), target.tolist(), strict=True))
    seen: set[tuple[int, int]] = set()
    expected = [row for row, pair in enumerate(pairs) if pair in seen or seen.add(pair)]
    assert repeated_pairs(source, target).tolist() == expected
    assert repeated_pairs(source, target, together=512).tolist() == expected


def test_a_long_corpus_gives_what_a_short_one_gives(tmp_path, pairs, monkeypatch):
    """What is known of each line lies on the disk and is looked at block by block, or neither."""
    broken = [("un\0chien", "a dog"), ("", "x"), ("Paris", "Paris"), ("non", "not at all " * 9)]
    paths = write(tmp_path, [*broken, *pairs, *broken, *pairs[:30]])
    whole = examine(*paths).to_dict()
    monkeypatch.setattr("pellucid.text.corpus.lines._BLOCK_BYTES", 300)
    monkeypatch.setattr("pellucid.text.check.scan._IN_MEMORY", 20)
    monkeypatch.setattr("pellucid.text.check.check._BLOCK", 230)
    monkeypatch.setattr("pellucid.text.corpus.rows._UNPACKED_ROWS", 8)
    assert examine(*paths).to_dict() == whole
    assert whole["duplicate"]["count"] == 33  # 30, and all broken pairs but the blank one
    assert isinstance(scan(paths[0]).hashes, np.memmap)


def test_a_full_temporary_folder_is_named(tmp_path, pairs, monkeypatch):
    monkeypatch.setattr("pellucid.text.check.scan._IN_MEMORY", 20)
    monkeypatch.setattr("tempfile.TemporaryFile", functools.partial(open, "/dev/full", "wb"))
    with pytest.raises(WriteError, match=r"cannot write .*: No space left on device"):
        examine(*write(tmp_path, pairs))


@settings(max_examples=30)
@given(st.sets(st.integers(0, 99)), st.sets(st.integers(0, 99)), st.integers(0, 110))
def test_a_set_of_rows_is_a_set(one, other, row):
    rows = RowSet.of(sorted(one))
    both = RowSet.union((rows, RowSet.of(sorted(other))))
    assert both.tolist() == sorted(one | other)
    assert rows.tolist() == sorted(one)
    assert len(both) == len(one | other)
    assert both.first(3).tolist() == sorted(one | other)[:3]
    assert rows.below(row).tolist() == sorted(each for each in one if each < row)
    stop = row + 17
    assert rows.mask(row, stop).tolist() == [each in one for each in range(row, stop)]


def test_blank_pairs_are_no_duplicates_and_no_copies(tmp_path, pairs):
    diagnosis = examine(*write(tmp_path, [*pairs, ("", ""), ("", "")]))
    assert set(found_in(diagnosis)) == {"empty"}


def test_counts_are_given_for_each_side_and_for_pairs(tmp_path, pairs):
    broken = [("un\0chien", "a\0dog"), ("un\0chat", "a cat"), *pairs]
    finding = examine(*write(tmp_path, broken)).findings["nul"]
    assert (finding.count, finding.source_count, finding.target_count) == (2, 2, 1)
    assert finding.examples[1] == ("un\0chien", "a\0dog")


def test_only_the_first_lines_are_listed(tmp_path, pairs):
    finding = examine(*write(tmp_path, [("", "x")] * 30 + pairs)).findings["empty"]
    assert finding.count == 30
    assert finding.first_lines == list(range(1, 11))
    assert list(finding.examples) == [1, 2, 3]


def test_a_byte_order_mark_is_told_and_no_part_of_the_text(tmp_path, pairs):
    plain = write(tmp_path, [*pairs, pairs[0]])
    plain[1].write_bytes(b"\xef\xbb\xbf" + plain[1].read_bytes())
    assert found_in(examine(*plain)) == {"byte_order_mark": [1], "duplicate": [len(pairs) + 1]}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Ich weis das nicht, das ist Nr. {}.", "Ich weiß das nicht, das ist Nr. {}."),
        ("我已经吃过饭拉 {}", "我已经吃过饭啦 {}"),
        ("the colors of {} neighbors", "the colours of {} neighbours"),
        ("ils sont {} a la maison", "Ils sont {} à la maison."),
    ],
)
def test_text_that_is_corrected_may_be_mostly_right_already(tmp_path, wrong: str, right: str):
    """A copy is then what is to be learned; two equal files are still refused."""
    lines = [(right.format(n), right.format(n)) for n in range(70)]
    lines += [(wrong.format(n), right.format(n)) for n in range(70, 100)]
    found = examine(*write(tmp_path, lines))
    assert (found.is_correction, found.reasons) == (True, [])
    equal = examine(*write(tmp_path, lines[:70]))
    assert equal.reasons == ["source and target are the same text"]


def test_reasons_not_to_train(tmp_path, pairs):
    invalid = examine(*write(tmp_path, [*pairs, (b"\xff\xfe", "x")]))
    assert invalid.reasons == ["1 line is not UTF-8"]
    copies = examine(*write(tmp_path, [(target, target) for _, target in pairs]))
    assert copies.reasons == ["source and target are the same text"]
    half = [(source, source if row % 3 else target) for row, (source, target) in enumerate(pairs)]
    [mostly] = examine(*write(tmp_path, half)).reasons
    assert mostly.endswith(
        f"of {len(pairs)} pairs have the same text on both sides, which teaches to copy"
    )
    assert not examine(*write(tmp_path, half)).is_correction
    blank = examine(*write(tmp_path, [("", "x"), ("y", "")]))
    assert blank.reasons == ["no pair has text on both sides"]
    source, target = write(tmp_path, pairs)
    target.write_bytes(b"")
    empty = examine(source, target)
    assert empty.reasons == [
        f"{len(pairs)} source lines but 0 target lines",
        "the two sides part near line 1",
        "no pair has text on both sides",
    ]
    source.write_bytes(b"")
    assert examine(source, target).reasons == ["no pair has text on both sides"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            [("a", "b"), ("", "c")],
            "one pair has text on both sides, and one to validate on is needed too",
        ),
        (
            [("a", "b"), ("c" * 1001, "d"), ("e", "f" * 1001)],
            "only one pair with text on both sides has at most 1,000 characters on each, and longer"
            " ones are left out",
        ),
        (
            [("a", "b"), ("a", "b"), ("a", "b"), (" ", "c")],
            "all pairs are the same, and others to validate on are needed too",
        ),
    ],
)
def test_text_of_which_no_pair_could_be_held_out_is_no_text_to_train_on(tmp_path, lines, reason):
    assert examine(*write(tmp_path, lines)).reasons == [reason]


def test_overlap_ignores_case_and_punctuation(tmp_path, pairs):
    training = write(tmp_path, [*pairs, ("?!", ".")])
    source, target = pairs[10]
    test = [
        ("Phrase nouvelle .", "A new sentence ."),
        (source.upper().replace("É", "é"), "Nothing known ."),
        ("Encore une .", target.replace(".", " !")),
        ("...", "?"),
    ]
    overlap = examine(*training, test=tuple(write(tmp_path, test, ("t.fr", "t.en")))).findings[
        "overlap"
    ]
    assert overlap.first_lines == ([2, 3] if source.isascii() else [3])
    assert overlap.target_count == 1
    assert overlap.examples[3] == test[2]


def test_gzipped_files_are_read(tmp_path, pairs):
    source, target = write(tmp_path, [*pairs, ("", "x")])
    packed = tmp_path / "a.fr.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert examine(packed, target).to_dict() == examine(source, target).to_dict()
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"a\.fr\.gz is not whole gzip data") as caught:
        examine(packed, target)
    assert caught.value.hint == "unpack it by hand to see how far"


def test_a_missing_file_is_named(tmp_path, pairs):
    _, target = write(tmp_path, pairs)
    message = f"cannot read {tmp_path / 'none'}: No such file or directory"
    with pytest.raises(InputMissingError, match=re.escape(message)):
        examine(tmp_path / "none", target)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [b"", b"\n"])
def test_blocks_change_nothing(tmp_path, monkeypatch, ending, last):
    """Blocks of seven bytes and one block give the same figures."""
    path = tmp_path / "text"
    lines = ["Ein Hund.", "", "x\0y", "Größe 12, 3?", "a" * 40, "x\0y", "zu\u2028"]
    path.write_bytes(b"\xef\xbb\xbf" + ending.join(map(str.encode, lines)) + last)
    whole = scan(path)
    monkeypatch.setattr("pellucid.text.corpus.lines._BLOCK_BYTES", 7)
    assert len(list(iterate_blocks(path))) > 3
    parts = scan(path)
    assert whole.lengths.tolist() == [len(line) for line in lines]
    for name in ("lengths", "hashes", "traits"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
    assert {problem: rows.tolist() for problem, rows in whole.problems.items()} == {
        problem: rows.tolist() for problem, rows in parts.problems.items()
    }
    assert whole.has_byte_order_mark
    assert parts.has_byte_order_mark
    assert list(iterate_raw_lines(path)) == list(map(str.encode, lines))
    assert fetch_lines(path, [3, 0]) == {0: b"Ein Hund.", 3: "Größe 12, 3?".encode()}


def test_training_is_warned_in_one_line_a_kind(tmp_path, pairs, caplog):
    source, target = write(tmp_path, [("un\0chien", "a dog"), *pairs, pairs[0], ("", "x")])
    with caplog.at_level(logging.WARNING, "pellucid"):
        warn_of_problems(source, target)
    count = len(pairs) + 3
    assert [record.getMessage() for record in caplog.records] == [
        f"{source} and {target}: nul in 1 of {count} pairs, first in line 1; see pellucid check",
        f"{source} and {target}: duplicate in 1 of {count} pairs, first in line {count - 1};"
        " see pellucid check",
    ]


@pytest.mark.parametrize(
    ("name", "header", "given"),
    [
        ("pairs.tsv", "", "auto"),
        ("pairs.csv", "fr\ten\n", "auto"),
        ("pairs.data", "", "tsv"),
    ],
)
def test_training_is_warned_of_a_table_as_of_two_files(
    tmp_path, pairs, caplog, name, header, given
):
    lines = [*pairs, pairs[0], ("un chat", "un chat")]
    path = tmp_path / name
    path.write_text(header + "".join(f"{one}\t{other}\n" for one, other in lines))
    with caplog.at_level(logging.WARNING, "pellucid"):
        warn_of_problems(path, None, given=given)
    count = len(lines)
    assert caplog.messages == [
        f"{path}: duplicate in 1 of {count} pairs, first in line {count - 1}; see pellucid check",
        f"{path}: source equals target in 1 of {count} pairs, first in line {count};"
        " see pellucid check",
    ]


@pytest.mark.parametrize("lost", [0, 1])
def test_training_is_warned_of_sides_that_are_shifted(tmp_path, caplog, lost):
    """A line is lost on one side, another on the other, and all between belong to a neighbor."""
    choose = random.Random(1)
    lines = [" ".join(["word"] * choose.randint(1, 40)) for _ in range(3000)]
    sides = [list(lines), [line.replace("word", "mot") for line in lines]]
    del sides[lost][300], sides[1 - lost][900]
    source, target = write(tmp_path, list(zip(*sides, strict=True)))
    with caplog.at_level(logging.WARNING, "pellucid"):
        warn_of_problems(source, target)
    said = re.fullmatch(
        f"{source} and {target}: from line (\\d+) to (\\d+) the two sides look shifted against"
        " each other; see pellucid check",
        caplog.messages[0],
    )
    assert said is not None
    assert abs(int(said[1]) - 301) <= 5
    assert abs(int(said[2]) - 900) <= 5


def test_the_short_form_stops_early(tmp_path, pairs):
    paths = write(tmp_path, [*pairs, ("\0", "x")])
    diagnosis = examine(*paths, most_pairs=50)
    assert diagnosis.source_lines == diagnosis.target_lines == 50
    assert found_in(diagnosis) == {}


@NEEDS_SHARED
@pytest.mark.parametrize("names", CLEAN, ids=lambda names: names[0])
def test_clean_corpora_raise_no_alarm(names):
    assert examine(*(SHARED / name for name in names)).reasons == []


@NEEDS_SHARED
def test_the_dirt_of_the_messy_samples_is_found():
    news = examine(SHARED / "messy/nc-5k.en", SHARED / "messy/nc-5k.fr")
    crawl = examine(SHARED / "messy/wmt10k.de", SHARED / "messy/wmt10k.en")
    assert news.findings["empty"].count == 13
    assert crawl.findings["empty"].first_lines == [5]
    assert crawl.findings["windows_1252"].count == 8
    assert crawl.findings["mojibake"].source_count == 7
    assert (crawl.findings["markup"].source_count, news.findings["markup"].target_count) == (
        452,
        11,
    )
    assert news.reasons == crawl.reasons == []


def test_overlap_ignores_every_kind_of_space_and_a_byte_order_mark(tmp_path):
    lines = ["Oui.", "Bonjour !", "\u00ab Ça va ? \u00bb", "Nous partons."]
    training = write(tmp_path, [(line, line) for line in lines])
    spaced = [
        line.replace(" ", space) for line, space in zip(lines, "\u00a0\u202f\u2009 ", strict=True)
    ]
    test = write(tmp_path, [(line, line) for line in spaced], ("t.fr", "t.en"))
    test[0].write_bytes(b"\xef\xbb\xbf" + test[0].read_bytes())
    assert examine(*training, test=test).findings["overlap"].count == 4


def test_a_pipe_is_refused_because_it_is_read_several_times(tmp_path, pairs):
    source, target = write(tmp_path, pairs)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for files, test in (((pipe, target), None), ((source, target), (source, pipe))):
        with pytest.raises(InputMissingError, match="pipe: must be a file"):
            examine(*files, test=test)


def test_a_file_of_a_byte_order_mark_alone_is_an_empty_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf")
    assert examine(path, path).findings["empty"].count == 1
