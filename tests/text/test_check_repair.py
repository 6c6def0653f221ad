"""Cleaned copies hold the good pairs, mended; the log holds every other line and why."""

import json
import re

import pytest

from pellucid import phrasebook
from pellucid.core.errors import DataError, OutputExistsError
from pellucid.core.files import verify_folder
from pellucid.text.check.check import KEPT_KINDS, examine
from pellucid.text.corpus.cleaning import DROPPED_NAME, CleanText, Rules, clean_corpus
from pellucid.text.corpus.pairs import PairFiles

GOOD = [f"the number {number} is not {number * 7} .".encode() for number in range(40)]


def corpus(folder, extra=(), names=("a.en", "a.de")):
    paths = [folder / name for name in names]
    for side, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        lines = [*(line + b"!" * side for line in GOOD), *(pair[side] for pair in extra)]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    return paths


def cleaned(source, target, folder) -> CleanText:
    rules = Rules(near_duplicates=False)
    return clean_corpus(PairFiles((source,), (target,)), folder, rules, logs=True)


def test_bad_pairs_are_dropped_and_logged_and_marks_mended(tmp_path):
    extra = [
        (b"a clean\0 line\r", b"eine\xe2\x80\xa8Zeile"),
        (b"", b"nichts"),
        (GOOD[2], GOOD[2] + b"!"),
        (b"caf\xe9", b"Kaffee"),
        (b"the very same", b"the very same"),
        (b"\0", b"only NUL"),
    ]
    paths = corpus(tmp_path, extra)
    done = cleaned(*paths, tmp_path / "out")
    assert (done.read, done.kept) == (46, 41)
    [source, target] = done.files.all
    assert source.read_bytes().split(b"\n") == [*GOOD, b"a clean line", b""]
    assert target.read_bytes().split(b"\n")[-2:] == [b"eine Zeile", b""]
    log = (tmp_path / "out" / DROPPED_NAME).read_bytes()
    entries = [json.loads(line) for line in log.splitlines()]
    assert [(entry["line"], entry["reason"]) for entry in entries] == [
        (42, "empty"),
        (43, "duplicate"),
        (44, "invalid_utf8"),
        (45, "source_equals_target"),
        (46, "empty"),
    ]
    assert entries[2]["source"] == "caf\\xe9"
    assert entries[1]["target"] == GOOD[2].decode() + "!"
    assert verify_folder(tmp_path / "out")["pairs"]["dropped"] == done.dropped


def test_the_cleaned_copies_are_clean(tmp_path):
    paths = corpus(tmp_path, [(b"x\r", b"\x85\xc2\x85y"), (b"a\x1bb", b"c")])
    again = examine(*cleaned(*paths, tmp_path / "out").files.all)
    assert {kind for kind, found in again.findings.items() if found.count} == set()


def test_all_kinds_of_finding_but_those_said_to_stay_are_gone(tmp_path):
    pairs = [
        (each.source.encode(), each.target.encode()) for each in phrasebook.split(400, 8, 7).train
    ]
    extra = [
        *(pair[::-1] if row < 8 else pair for row, pair in enumerate(pairs)),
        ("mojibake Ã©".encode(), b"Mojibake"),
        ("it\x92s".encode(), b"<p>es ist</p>"),
        ("so\u00adft".encode(), "weich\ue000".encode()),
        (b"one column\tand another", b"ei@@ ne Spalte und noch eine"),
        ("очень далеко отсюда".encode(), "weit weg, cafe\u0301 und café".encode()),
        (GOOD[3] + b" ", GOOD[3].replace(b" ", b"  ") + b"!"),
        (b"the very same", "the\u00a0very same".encode()),
        (b'"a ""word"""', b"ein Wort"),
        *((f"text number {number} of many".encode(), b"N/A") for number in range(30)),
        (b"x" * 1001, b"y" * 1001),
        (b"short", b"z" * 400),
        (b"a\x1bb\0\ra\r\n", b"c\x0b\r\n"),
        (b"caf\xe9", b""),
    ]
    source, target = corpus(tmp_path, extra)
    source.write_bytes(b"\xef\xbb\xbf" + source.read_bytes())
    before = examine(source, target)
    assert {kind for kind, found in before.findings.items() if not found.count} == set()
    after = examine(*cleaned(source, target, tmp_path / "out").files.all)
    assert {kind for kind, found in after.findings.items() if found.count} == KEPT_KINDS


def test_files_of_the_same_name_are_told_apart(tmp_path):
    paths = corpus(tmp_path, names=("en/train.txt", "de/train.txt"))
    done = cleaned(*paths, tmp_path / "out")
    assert tuple(path.name for path in done.files.all) == ("source-train.txt", "target-train.txt")


def test_a_misaligned_corpus_is_refused(tmp_path):
    source, target = corpus(tmp_path)
    target.write_bytes(b"".join(line + b"!\n" for line in GOOD[:-3]))
    message = "a misaligned corpus cannot be cleaned: 40 source lines but 37 target lines"
    with pytest.raises(DataError, match=message) as caught:
        examine(source, target).refuse_misaligned()
    assert re.fullmatch(r"put it right around line \d+ first", caught.value.hint)


def test_nothing_is_overwritten_and_nothing_empty_written(tmp_path):
    paths = corpus(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    message = f"{tmp_path / 'out'} already holds something"
    with pytest.raises(OutputExistsError, match=re.escape(message)) as caught:
        cleaned(*paths, tmp_path / "out")
    assert caught.value.hint == "name a new folder, or remove this one first"
    for path in paths:
        path.write_bytes(b"\n\n")
    message = f"no pair of {paths[0]} is good enough to keep"
    with pytest.raises(DataError, match=re.escape(message)):
        cleaned(*paths, tmp_path / "new")
    assert not (tmp_path / "new").exists()
