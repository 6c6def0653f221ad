"""``pellucid check`` says what is wrong, to people and to programs, and leaves with 0 or 65."""

import json

import pytest
from commands import pellucid

from pellucid import phrasebook


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
    assert said.out == "200 source lines, 200 target lines\nnothing found\n"


def test_findings_are_listed_with_lines_and_examples_that_cannot_steer_a_terminal(files):
    add(files, b"un \x1b[31mchien", b"a dog")
    said = pellucid("check", "a.fr", "a.en", folder=files)
    assert said.code == 0
    assert said.out.splitlines()[1:] == [
        "control: 1 (1 source, 0 target), line 201",
        "    201: un \\x1b[31mchien | a dog",
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
    ]


def test_json_has_an_entry_for_every_kind(files):
    add(files, b"caf\xe9", b"coffee")
    said = pellucid("check", "a.fr", "a.en", "--test", "a.fr", "a.en", "--json", folder=files)
    report = json.loads(said.out)
    assert said.code == 65
    assert report["misalignment"] is None
    assert report["reasons"] == ["1 lines are not UTF-8"]
    assert report["invalid_utf8"]["count"] == 1
    assert report["invalid_utf8"]["first_lines"] == [201]
    assert report["overlap"]["count"] == 201
    kinds = set(report) - {"lines", "misalignment", "reasons"}
    assert {"empty", "duplicate", "source_equals_target", "length_ratio", "nul"} < kinds
    assert all({"count", "first_lines", "examples"} <= set(report[kind]) for kind in kinds)


def test_fix_writes_good_copies_and_says_where(files):
    add(files, b"", b"nothing")
    said = pellucid("check", "a.fr", "a.en", "--fix", "out", folder=files)
    assert said.code == 0
    assert said.err == "kept 200 pairs in out/a.fr and out/a.en, dropped 1, see out/dropped.jsonl\n"
    assert pellucid("check", "out/a.fr", "out/a.en", folder=files).out.endswith("nothing found\n")
    again = pellucid("check", "a.fr", "a.en", "--fix", "out", folder=files)
    assert again.code == 1
    assert again.error_line == "error: out already holds something; hint: name a new folder"


def test_a_missing_file_ends_with_66(files):
    said = pellucid("check", "a.fr", "none", folder=files)
    assert said.code == 66
    assert said.error_line == "error: cannot read none: No such file or directory"
