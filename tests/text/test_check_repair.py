"""Cleaned copies hold the good pairs, mended; the log holds every other line and why."""

import json
import re

import pytest

from pellucid.core.errors import DataError, OutputExistsError
from pellucid.core.files import verify_folder
from pellucid.text.check.check import examine
from pellucid.text.check.repair import repair

GOOD = [f"the number {number} is not {number * 7} .".encode() for number in range(40)]


def corpus(folder, extra=(), names=("a.en", "a.de")):
    paths = [folder / name for name in names]
    for side, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        lines = [*(line + b"!" * side for line in GOOD), *(pair[side] for pair in extra)]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    return paths


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
    done = repair(examine(*paths), *paths, tmp_path / "out")
    assert (done.kept_count, done.dropped_count) == (41, 5)
    assert done.source.read_bytes().split(b"\n") == [*GOOD, b"a clean line", b""]
    assert done.target.read_bytes().split(b"\n")[-2:] == [b"eine Zeile", b""]
    entries = [json.loads(line) for line in done.dropped.read_bytes().splitlines()]
    assert [(entry["line"], entry["reasons"]) for entry in entries] == [
        (42, ["empty"]),
        (43, ["duplicate"]),
        (44, ["invalid_utf8"]),
        (45, ["source_equals_target"]),
        (46, ["empty"]),
    ]
    assert entries[2]["source"] == "caf\\xe9"
    assert entries[1]["target"] == GOOD[2].decode() + "!"
    assert verify_folder(tmp_path / "out")["pairs"] == {"kept": 41, "dropped": 5}


def test_the_cleaned_copies_are_clean(tmp_path):
    paths = corpus(tmp_path, [(b"x\r", b"\x85\xc2\x85y"), (b"a\x1bb", b"c")])
    done = repair(examine(*paths), *paths, tmp_path / "out")
    again = examine(done.source, done.target)
    assert {kind for kind, found in again.findings.items() if found.count} == set()


def test_files_of_the_same_name_are_told_apart(tmp_path):
    paths = corpus(tmp_path, names=("en/train.txt", "de/train.txt"))
    done = repair(examine(*paths), *paths, tmp_path / "out")
    assert (done.source.name, done.target.name) == ("source-train.txt", "target-train.txt")


def test_a_misaligned_corpus_is_refused(tmp_path):
    source, target = corpus(tmp_path)
    target.write_bytes(b"".join(line + b"!\n" for line in GOOD[:-3]))
    message = "a misaligned corpus cannot be cleaned: 40 source lines but 37 target lines"
    with pytest.raises(DataError, match=message) as caught:
        repair(examine(source, target), source, target, tmp_path / "out")
    assert re.fullmatch(r"put it right around line \d+ first", caught.value.hint)
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten_and_nothing_empty_written(tmp_path):
    paths = corpus(tmp_path)
    diagnosis = examine(*paths)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    message = f"{tmp_path / 'out'} already holds something"
    with pytest.raises(OutputExistsError, match=re.escape(message)) as caught:
        repair(diagnosis, *paths, tmp_path / "out")
    assert caught.value.hint == "name a new folder"
    for path in paths:
        path.write_bytes(b"\n\n")
    message = f"no pair of {paths[0]} and {paths[1]} is good enough to keep"
    with pytest.raises(DataError, match=re.escape(message)):
        repair(examine(*paths), *paths, tmp_path / "new")
    assert not (tmp_path / "new").exists()
