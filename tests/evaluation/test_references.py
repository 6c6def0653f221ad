"""Test sets from files, with one or several accepted references."""

import pytest

from pellucid.core.errors import DataError
from pellucid.evaluation.evaluate import read_test_set
from pellucid.evaluation.references import with_references


def written(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_each_file_of_references_gives_every_line_one(tmp_path):
    source = written(tmp_path / "a", "un", "deux")
    references = [written(tmp_path / "b", "one", "two"), written(tmp_path / "c", "an", "2")]
    assert read_test_set(source, references) == (["un", "deux"], [["one", "an"], ["two", "2"]])
    assert read_test_set(source, references[:1]) == (["un", "deux"], [["one"], ["two"]])


def test_a_table_holds_the_source_and_all_that_is_accepted(tmp_path):
    table = written(tmp_path / "refs.tsv", "abd\tEY B\tAE B", "abo\tAA B OW")
    assert read_test_set(table) == (["abd", "abo"], [["EY B", "AE B"], ["AA B OW"]])


def test_empty_cells_of_a_table_are_no_references(tmp_path):
    """A spreadsheet fills shorter lines with them; an empty reference would raise BLEU."""
    table = written(
        tmp_path / "refs.tsv", "un\tone\t", "deux\ttwo\t2", "trois\t\tthree\t ", "x\t\t"
    )
    assert read_test_set(table)[1] == [["one"], ["two", "2"], ["three"], [""]]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "{0}\tun chat {0}\ta cat {0}",
            "column 1 of 3 has no letter in any line, and counts as the",
        ),
        (
            "un chat {0}\ta cat {0}\t0.9{0}",
            "column 3 of 3 has no letter in any line, and counts as a",
        ),
        ("{0}\tone", ""),
        ("un chat {0}\ta cat {0}\t", ""),
        ("un chat {0}\ta cat {0}\tthe cat {0}", ""),
    ],
)
def test_ids_and_scores_in_a_table_are_said(tmp_path, caplog, line, said):
    table = written(tmp_path / "refs.tsv", *map(line.format, range(3)))
    read_test_set(table)
    assert len(caplog.messages) == bool(said)
    assert said in caplog.text


@pytest.mark.parametrize("header", ["source\ttarget", "en\tde", "Source\tTarget\tTarget 2"])
def test_a_header_is_refused_as_in_training(tmp_path, header):
    table = written(tmp_path / "refs.tsv", header, "un\tone", "deux\ttwo")
    with pytest.raises(DataError) as caught:
        read_test_set(table)
    assert str(caught.value) == (
        f"{table}, line 1: a file must begin with its first pair, and this line names the columns"
    )
    assert caught.value.hint.startswith("remove it, for example: tail -n +2")


def test_blank_references_count_only_where_there_is_no_other(caplog):
    sources = ["a", "b", "", "c"]
    references = [["", "x"], ["y", " ", "z"], ["", "w"], ["", "\u3000"]]
    filled, rows = with_references(sources, references)
    assert filled == [["x"], ["y", "z"], ["", "w"], [""]]
    assert rows == [0, 1, 2]
    assert caplog.messages == [
        "1 of 4 lines have no reference and are left out of the scores, the first is line 4"
    ]


def test_lines_without_a_reference_are_counted_and_the_first_named(tmp_path):
    table = written(tmp_path / "refs.tsv", "abd\tEY B", "abo", "abb", "abc\tx")
    with pytest.raises(DataError) as caught:
        read_test_set(table)
    assert str(caught.value) == (
        f"{table}: a line must be source, tab, reference (and more behind tabs);"
        " 2 of 4 have no tab, the first is line 2"
    )


def test_other_files_need_references(tmp_path):
    source = written(tmp_path / "test.en", "one")
    with pytest.raises(DataError) as caught:
        read_test_set(source)
    assert str(caught.value) == (
        f"{source} must come with a file of references, or be a .tsv file that holds them"
    )
    assert caught.value.hint == (
        "each line of it: source, tab, reference, and further references behind tabs"
    )


def test_a_file_of_references_is_no_table(tmp_path):
    """Translations would be compared with its tabs, or its rows as JSON."""
    source = written(tmp_path / "a", "un")
    for name in ("refs.tsv", "refs.csv", "refs.jsonl"):
        with pytest.raises(DataError, match="holds both sides, and one of them is needed"):
            read_test_set(source, [written(tmp_path / name, "one\tan")])


def test_files_of_unequal_length_are_told_by_their_counts(tmp_path):
    source = written(tmp_path / "a", "un", "deux")
    short = written(tmp_path / "b", "one")
    with pytest.raises(DataError, match=r"got 2 sources and 1 references$"):
        read_test_set(source, [short])
    with pytest.raises(DataError, match=r"got 2 sources and 2 references 1 and 1 references 2$"):
        read_test_set(source, [source, short])
