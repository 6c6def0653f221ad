"""``pellucid check`` says what is wrong, to people and to programs, and leaves with 0 or 65."""

import json
import random

import pyarrow
import pyarrow.parquet
import pytest
from commands import pellucid

from pellucid import phrasebook
from pellucid.core.errors import DataError
from pellucid.text.corpus.pairs import PairFiles, iterate_pairs

FORMS = ("tsv", "jsonl", "csv", "parquet")


@pytest.fixture
def files(tmp_path):
    pairs = phrasebook.split(200, 20, 7).train
    for name, side in (("a.fr", "source"), ("a.en", "target")):
        lines = [getattr(pair, side) for pair in pairs]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def add(folder, source, target):
    for name, line in (("a.fr", source), ("a.en", target)):
        with (folder / name).open("ab") as file:
            file.write(line + b"\n")


def test_good_text(files):
    said = pellucid("check", "a.fr", "a.en", folder=files)
    assert (said.code, said.err) == (0, "")
    assert said.out == (
        "200 source lines, 200 target lines\nnothing found\ngood: ready to train on\n"
    )


def test_what_no_pair_would_survive_is_not_advised(tmp_path):
    for name, line in (
        ("a.fr", "un chat noir {} et un chien dort"),
        ("a.en", "a black cat {} and a dog sleep"),
    ):
        text = "".join(line.format(number) + "\n" for number in range(20))
        (tmp_path / name).write_text(text, encoding="utf-8")
    again = ("check", "a.fr", "a.en", "--test", "a.fr", "a.en")
    said = pellucid(*again, folder=tmp_path)
    assert said.out.splitlines()[-1].endswith("; --fix would leave no pair")
    fixed = pellucid(*again, "--fix", "b", folder=tmp_path)
    assert "no pair of a.fr is good enough to keep" in fixed.error_line


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        (
            ("utf-8", "\r\n"),
            "usable: training on it works; --fix OUT writes copies without what was",
        ),
        (
            ("latin-1", "\n"),
            "not usable as it is; first convert the file from its encoding, for example: iconv",
        ),
    ],
)
def test_what_fix_does_to_every_line_is_advised_only_if_it_keeps_them(tmp_path, written, verdict):
    encoding, end = written
    for name, line in (("a.fr", "un élève {}"), ("a.en", "a pupil {}")):
        text = "".join(line.format(number) + end for number in range(20))
        (tmp_path / name).write_bytes(text.encode(encoding))
    said = pellucid("check", "a.fr", "a.en", folder=tmp_path)
    assert said.out.splitlines()[-1].startswith(verdict)
    assert pellucid("check", "a.fr", "a.en", "--fix", "b", folder=tmp_path).code == (
        65 if encoding == "latin-1" else 0
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32"])
def test_text_in_utf_16_or_32_is_named_as_such(files, encoding):
    """Without a mark its bytes are valid UTF-8, with a NUL in each character."""
    for name in ("a.fr", "a.en"):
        text = (files / name).read_text(encoding="utf-8")
        (files / name).write_bytes(text.encode(encoding))
    said = pellucid("check", "a.fr", "a.en", folder=files)
    assert said.code == 65
    assert f"must be plain text in UTF-8, is {encoding[:6].upper()}" in said.error_line


def test_findings_are_listed_with_lines_and_examples_that_cannot_steer_a_terminal(files):
    add(files, b"un \x1b[31mchien", b"a dog")
    said = pellucid("check", "a.fr", "a.en", folder=files)
    assert said.code == 0
    assert said.out.splitlines()[1:] == [
        "control: 1 (1 source, 0 target), line 201",
        "    201: un \\x1b[31mchien | a dog",
        "usable: training on it works; --fix OUT writes copies without what was found",
    ]


def test_other_languages_are_found_and_dropped_where_languages_are_named(files):
    add(files, "Das Kind schläft seit drei Stunden.".encode(), b"The child has slept for hours.")
    add(files, b"L'enfant dort depuis trois heures.", b"\xff")
    add(
        files,
        b"L'enfant dort depuis trois heures.",
        b"Gisteravond hebben we met de kinderen een lange wandeling gemaakt.",
    )
    plain = json.loads(pellucid("check", "a.fr", "a.en", "--json", folder=files).out)
    assert "other_language" not in plain
    options = ("--languages", "fr-en")
    report = pellucid("check", "a.fr", "a.en", *options, "--json", folder=files)
    found = json.loads(report.out)["other_language"]
    assert (found["count"], found["source"], found["target"]) == (2, 1, 1)
    assert found["first_lines"] == [201, 203]
    assert found["examples"][0]["source"] == "Das Kind schläft seit drei Stunden."
    said = pellucid("check", "a.fr", "a.en", *options, "--fix", "out", folder=files)
    assert said.code == 0
    assert "kept 200 pairs" in said.err
    wrong = pellucid("check", "a.fr", "a.en", "--languages", "fr", folder=files)
    assert (wrong.code, "is not two languages with a hyphen" in wrong.err) == (2, True)


def test_files_that_are_mostly_in_other_languages_are_not_usable(tmp_path):
    german = ["Das Kind schläft seit drei Stunden.", "Wir haben gestern im Garten gearbeitet."]
    english = ["The child has been sleeping for hours.", "We worked in the garden yesterday."]
    (tmp_path / "a.en").write_text("\n".join(german) + "\n")
    (tmp_path / "a.de").write_text("\n".join(english) + "\n")
    said = pellucid("check", "a.en", "a.de", "--languages", "en-de", folder=tmp_path)
    assert said.code == 65
    assert (
        "training would go wrong: 2 pairs are in other languages; are source and target exchanged?"
        in said.out
    )
    assert pellucid("check", "a.en", "a.de", "--languages", "de-en", folder=tmp_path).code == 0


def test_blank_lines_at_the_end_of_a_side_are_to_be_taken_away(files):
    with (files / "a.en").open("ab") as end:
        end.write(b"\n\n")
    said = pellucid("check", "a.fr", "a.en", folder=files)
    assert said.code == 65
    assert said.out.endswith("; take away the blank lines at the end of the target\n")


def test_a_lost_line_ends_with_65(files):
    lines = (files / "a.en").read_bytes().split(b"\n")
    (files / "a.en").write_bytes(b"\n".join(lines[:120] + lines[121:]))
    said = pellucid("check", "a.fr", "a.en", "--json", folder=files)
    report = json.loads(said.out)
    assert (said.code, said.err) == (65, "")
    assert report["lines"] == {"source": 200, "target": 199}
    assert abs(report["misalignment"]["line"] - 121) <= 50
    assert report["misalignment"]["slip"] == 1
    told = pellucid("check", "a.fr", "a.en", folder=files)
    line = report["misalignment"]["line"]
    assert told.code == 65
    assert told.out.splitlines() == [
        "200 source lines, 199 target lines",
        f"misaligned from about line {line} to 200: there the source is 1 line behind",
        "training would go wrong: 200 source lines but 199 target lines",
        f"training would go wrong: the two sides part near line {line}",
        "not usable as it is; put the lines right first, --fix cannot know which belong together",
    ]


def test_json_has_an_entry_for_every_kind(files):
    add(files, b"caf\xe9", b"coffee")
    said = pellucid("check", "a.fr", "a.en", "--test", "a.fr", "a.en", "--json", folder=files)
    report = json.loads(said.out)
    assert said.code == 65
    assert report["misalignment"] is None
    assert report["reasons"] == ["1 line is not UTF-8"]
    assert report["invalid_utf8"]["count"] == 1
    assert report["invalid_utf8"]["first_lines"] == [201]
    assert report["overlap"]["count"] == 201
    assert report["verdict"] == "unusable"
    kinds = set(report) - {"lines", "misalignment", "unrelated", "correction", "reasons", "verdict"}
    assert {"empty", "duplicate", "source_equals_target", "length_ratio", "nul"} < kinds
    assert all({"count", "first_lines", "examples"} <= set(report[kind]) for kind in kinds)


def test_lines_of_the_test_files_are_not_taken_for_those_of_the_training_files(files):
    for name in ("a.fr", "a.en"):
        last = (files / name).read_bytes().splitlines()[-1]
        (files / f"test-{name}").write_bytes(b"?\n" + last + b"\n")
    said = pellucid("check", "a.fr", "a.en", "--test", "test-a.fr", "test-a.en", folder=files)
    assert "overlap: 1 (1 source, 1 target), line 2 of the test files" in said.out.splitlines()
    assert said.code == 0


def test_fix_writes_good_copies_and_says_where(files):
    add(files, b"", b"nothing")
    said = pellucid("check", "a.fr", "a.en", "--fix", "out", folder=files)
    assert said.code == 0
    assert said.err.splitlines()[-1] == (
        "kept 200 pairs in out/a.fr and out/a.en, dropped 1, see out/dropped.jsonl"
    )
    assert pellucid("check", "out/a.fr", "out/a.en", folder=files).out.endswith(
        "ready to train on\n"
    )
    again = pellucid("check", "a.fr", "a.en", "--fix", "out", folder=files)
    assert again.code == 1
    assert again.error_line == (
        "error: out already holds something; hint: name a new folder, or remove this one first"
    )


def test_a_missing_file_ends_with_66(files):
    said = pellucid("check", "a.fr", "none", folder=files)
    assert said.code == 66
    assert said.error_line == "error: cannot read none: No such file or directory"


def shuffled(files, count=200):
    lines = (files / "a.en").read_text().splitlines()
    random.Random(0).shuffle(lines)
    (files / "b.en").write_text("".join(f"{line}\n" for line in lines[:count]))


def test_unrelated_files_are_called_unrelated(files):
    """Not said to part near some line, and not passed where they have as many lines."""
    shuffled(files)
    said = pellucid("check", "a.fr", "b.en", folder=files)
    assert said.code == 0
    assert said.out.splitlines() == [
        "200 source lines, 200 target lines",
        "unrelated: no line resembles its partner in length, digits or marks; line n of one side"
        " must be the translation of line n of the other",
        "doubtful: training on it works, but it teaches nothing if the two sides do not belong"
        " together",
    ]
    shuffled(files, 180)
    said = pellucid("check", "a.fr", "b.en", folder=files)
    assert said.code == 65
    assert said.out.splitlines()[1:] == [
        "training would go wrong: 200 source lines but 180 target lines",
        "training would go wrong: the lines of both sides do not resemble each other anywhere",
        "not usable as it is; put the lines right first, --fix cannot know which belong together",
    ]
    assert pellucid("check", "a.fr", "b.en", "--fix", "out", folder=files).code == 65
    with pytest.raises(DataError, match="do not resemble each other anywhere") as caught:
        list(iterate_pairs(PairFiles((files / "a.fr",), (files / "b.en",))))
    assert "look whether these are the two sides of one text" in caught.value.hint


def test_lines_that_are_not_translated_yet_make_no_unrelated_file(files):
    for name, blank in (("a.fr", 3), ("a.en", 4)):
        lines = (files / name).read_text().splitlines()
        lines = ["  " if row % blank == 1 else line for row, line in enumerate(lines)]
        (files / name).write_text("\n".join(lines) + "\n")
    report = json.loads(pellucid("check", "a.fr", "a.en", "--json", folder=files).out)
    assert (report["unrelated"], report["verdict"]) == (False, "usable")


def test_unrelated_sides_are_called_unrelated_in_every_format(files):
    shuffled(files)
    sides = [(files / name).read_text().splitlines() for name in ("a.fr", "b.en")]
    write_tables(files, list(zip(*sides, strict=True)))
    plain = pellucid("check", "a.fr", "b.en", folder=files).out
    assert "doubtful: " in plain
    for form in FORMS:
        assert pellucid("check", f"a.{form}", folder=files).out == plain


def write_tables(folder, pairs):
    rows = [{"fr": fr, "en": en} for fr, en in pairs]
    (folder / "a.tsv").write_text("".join(f"{fr}\t{en}\n" for fr, en in pairs))
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    lines = [f"{fr};{en}\n" for fr, en in pairs]
    (folder / "a.csv").write_text("French;English\n" + "".join(lines))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "a.parquet")


@pytest.mark.parametrize(
    ("name", "content", "way"),
    [
        ("a.tmx", b"<tmx version='1.4'><body></body></tmx>", "export it as .csv or .tsv"),
        ("a.zip", b"PK\x03\x04" + bytes(30), "unpack"),
    ],
)
def test_what_is_no_text_is_refused_with_a_way(files, name, content, way):
    """As one file of both sides, and as one of two."""
    (files / name).write_bytes(content)
    for arguments in ([name], [name, "a.en"], ["a.fr", name]):
        said = pellucid("check", *arguments, folder=files)
        assert said.code == 65
        assert way in said.error_line


def test_a_file_of_both_sides_stands_alone(files):
    add(files, b"", b"nothing")
    sides = [(files / name).read_text().split("\n")[:-1] for name in ("a.fr", "a.en")]
    pairs = list(zip(*sides, strict=True))
    write_tables(files, pairs)
    plain = pellucid("check", "a.fr", "a.en", folder=files).out
    for form in FORMS:
        said = pellucid("check", f"a.{form}", "--fix", f"out-{form}", folder=files)
        assert said.code == 0
        assert plain.startswith(said.out.strip())  # but for the words that name --fix
        assert f"kept 200 pairs in out-{form}/a.source and out-{form}/a.target" in said.err
        assert (files / f"out-{form}/a.source").read_bytes() == "".join(
            f"{fr}\n" for fr, _ in pairs[:-1]
        ).encode()

    (files / "a.tsv").write_bytes(b"a\tb\ncaf\xe9\tcoffee\n")
    assert (
        "invalid utf8: 1 (1 source, 0 target), line 2"
        in pellucid("check", "a.tsv", folder=files).out
    )
    (files / "a.tsv").write_bytes(b"a\tb\nc\n")
    assert (
        "a.tsv, line 2: a line must be source, tab, target"
        in pellucid("check", "a.tsv", folder=files).error_line
    )
    alone = pellucid("check", "a.fr", folder=files)
    assert alone.code == 65
    assert alone.error_line == (
        "error: a.fr must hold both sides, as .tsv, .jsonl, .csv and .parquet do, or come with the"
        " file of the other side; hint: pellucid check a.fr TARGET"
    )


def test_fix_drops_test_lines_and_says_what_it_left(files):
    """Dropped is a pair of which a side is a test line; what else was found is named again."""
    lines = (files / "a.fr").read_text().splitlines()
    (files / "test.fr").write_text(f"{lines[3].upper()}\nrien\n")
    (files / "test.en").write_text("nothing\na very rare line\n")
    add(files, "une ligne très rare".encode(), b"a very rare line")
    add(files, b"soft", "so\u00adft hyphen".encode())
    options = ("a.fr", "a.en", "--test", "test.fr", "test.en")
    assert pellucid("check", *options, folder=files).out.splitlines()[-1] == (
        "usable: training on it works; --fix OUT writes copies without what was found, except:"
        " invisible"
    )
    said = pellucid("check", *options, "--fix", "out", folder=files)
    assert said.code == 0
    log = (files / "out/dropped.jsonl").read_text().splitlines()
    dropped = [(each["line"], each["reason"]) for each in map(json.loads, log)]
    assert dropped == [(4, "overlap"), (201, "overlap")]
    assert said.err.splitlines()[-1] == "still in the copies: 1 invisible"
    left = pellucid("check", "out/a.fr", "out/a.en", folder=files)
    assert left.out.endswith("training on it works; --fix does not change: invisible\n")


def test_copies_that_cannot_be_trained_on_end_with_65(tmp_path):
    for name, line in (("a.fr", "un chien"), ("a.en", "a dog")):
        (tmp_path / name).write_text(f"{line}\n" * 20)
    said = pellucid("check", "a.fr", "a.en", "--fix", "out", folder=tmp_path)
    assert said.code == 65
    assert said.err.splitlines()[-1] == (
        "training would go wrong: one pair has text on both sides, and one to validate on is"
        " needed too"
    )
