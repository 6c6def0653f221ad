"""A line ends at \\n and only there; what is not UTF-8 is named to the byte."""

import gzip
import io
import lzma
import os
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import DataError, InputMissingError
from pellucid.core.texts import TO_UTF_8
from pellucid.text.corpus import lines, unpacking
from pellucid.text.corpus.lines import iterate_blocks, iterate_lines, read_lines

INSIDE_A_LINE = [
    "\u2028",
    "\u2029",
    "\x85",
    "\v",
    "\f",
    "\r",
    "\x1c",
    "\0",
    "\t",
    "\u200b",
    "\u00a0",
]


def write(folder, content, name="text"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("character", INSIDE_A_LINE, ids=ascii)
def test_only_a_newline_ends_a_line(tmp_path, character):
    line = f"a{character}b"
    assert read_lines(write(tmp_path, f"{line}\nc\n".encode())) == [line, "c"]


def test_a_carriage_return_before_the_newline_belongs_to_the_end(tmp_path):
    assert read_lines(write(tmp_path, b"a\r\nb\r\r\n\r\nc\r")) == ["a", "b\r", "", "c\r"]


@pytest.mark.parametrize(
    "content", [b"x\ny\r", b"x\r\ny\r\n", b"x\ny\r\r\n", b"\r", b"x\n\r", b"\r\n", b"a\n\nb"]
)
def test_all_ways_to_read_agree_on_where_a_line_ends(content, tmp_path):
    path = write(tmp_path, content)
    expected = read_lines(path)
    assert lines.decode_block(content, "name", 1) == expected
    raw = [line.encode() for line in expected]
    assert list(lines.iterate_raw_lines(path)) == raw
    assert lines.fetch_lines(path, range(len(raw))) == dict(enumerate(raw))


def test_the_last_line_needs_no_newline(tmp_path):
    assert read_lines(write(tmp_path, b"a\nb")) == ["a", "b"]
    assert read_lines(write(tmp_path, b"a\nb\n")) == ["a", "b"]
    assert read_lines(write(tmp_path, b"\n\n")) == ["", ""]
    assert read_lines(write(tmp_path, b"")) == []


def test_one_byte_order_mark_is_dropped_at_the_start_and_nowhere_else(tmp_path):
    mark = b"\xef\xbb\xbf"
    path = write(tmp_path, mark + mark + b"a\n" + mark + b"b\n")
    assert read_lines(path) == ["\ufeffa", "\ufeffb"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"))))
def test_any_lines_come_back_as_they_were_written(lines):
    whole = [line + "." for line in lines]  # so that no line ends in \r or begins with a mark
    content = "".join(f"'{line}\n" for line in whole).encode()
    assert list(iterate_lines(io.BytesIO(content))) == [f"'{line}" for line in whole]


def test_a_table_is_no_text_unless_a_column_is_named(tmp_path):
    """Else its rows would be read as sentences of JSON."""
    (tmp_path / "pairs.csv").write_text("en,de\ntwo,zwei\n")
    assert read_lines(tmp_path / "pairs.csv#en") == ["two"]
    with pytest.raises(
        DataError, match=r"pairs\.csv is a table, and a text was expected"
    ) as caught:
        read_lines(tmp_path / "pairs.csv")
    assert caught.value.hint == f"name the column with the text, as in {tmp_path}/pairs.csv#en"


def test_gzip_is_unpacked_by_suffix(tmp_path):
    path = write(tmp_path, gzip.compress("é\u2028\nb\n".encode()), "text.gz")
    assert read_lines(path) == ["é\u2028", "b"]


@pytest.mark.parametrize("cut", [5, -4])
def test_gzip_that_breaks_off_is_named(tmp_path, cut):
    path = write(tmp_path, gzip.compress(b"some text\n" * 50)[:cut], "text.gz")
    with pytest.raises(DataError) as caught:
        read_lines(path)
    assert str(caught.value).startswith(f"{path} is not whole gzip data: ")
    assert caught.value.hint == "unpack it by hand to see how far"


def test_gzip_that_is_none_is_named(tmp_path):
    path = write(tmp_path, b"plain\n", "text.gz")
    with pytest.raises(DataError, match="is not whole gzip data: Not a gzipped file"):
        read_lines(path)


def test_gzip_with_damaged_bytes_is_named(tmp_path):
    content = bytearray(gzip.compress(bytes(range(256)) * 20))
    content[12:40] = b"\xff" * 28
    path = write(tmp_path, bytes(content), "text.gz")
    with pytest.raises(DataError, match="is not whole gzip data"):
        read_lines(path)


def test_invalid_utf8_is_named_by_file_line_and_byte(tmp_path):
    path = write(tmp_path, b"good\nbad \xe9t\xe9\n")
    with pytest.raises(DataError) as caught:
        read_lines(path)
    assert (
        str(caught.value) == f"{path}, line 2, byte 5: not UTF-8 (0xe9, invalid continuation byte)"
    )
    assert caught.value.hint == (f"{TO_UTF_8}; pellucid check --fix drops single lines")


def test_the_byte_is_counted_with_the_byte_order_mark():
    stream = io.BytesIO(b"\xef\xbb\xbfa\xff\n")
    with pytest.raises(DataError, match="<stdin>, line 1, byte 5: not UTF-8"):
        list(iterate_lines(stream))


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "none"
    with pytest.raises(InputMissingError) as caught:
        read_lines(path)
    assert str(caught.value) == f"cannot read {path}: No such file or directory"


def test_a_folder_is_no_text(tmp_path):
    with pytest.raises(InputMissingError, match="Is a directory"):
        read_lines(tmp_path)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_named(tmp_path):
    path = write(tmp_path, b"a\n")
    path.chmod(0)
    with pytest.raises(InputMissingError, match="Permission denied"):
        read_lines(path)


LONGEST = 1 << 24


def test_a_line_beyond_any_paragraph_is_named(tmp_path):
    """100 MB without a line end took gigabytes in ``translate`` and ``train``."""
    path = tmp_path / "text"
    path.write_bytes(b"short\n" + b"x" * (LONGEST + 1))
    with pytest.raises(DataError) as caught:
        read_lines(path)
    assert str(caught.value) == f"{path}, line 2: a line must have at most 16,777,216 bytes"
    assert caught.value.hint == ("one sentence or paragraph a line; only a line feed ends a line")
    assert [len(line) for line in iterate_lines(io.BytesIO(b"x" * LONGEST))] == [LONGEST]
    with pytest.raises(DataError, match="<stdin>, line 1: a line must have at most"):
        list(iterate_lines(io.BytesIO(b"x" * (LONGEST + 1))))


def test_a_gzip_bomb_in_blocks_or_of_long_lines_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "BOMB_FROM", 1 << 18)
    path = tmp_path / "bomb.gz"
    for line in (b"\n", b"a" * 100_000 + b"\n"):
        path.write_bytes(gzip.compress(line * ((2 << 20) // len(line))))
        for read in (lines.iterate_blocks, lines.iterate_lines):
            with pytest.raises(DataError, match="unpacks to more than 200 times its"):
                for _ in read(path):
                    pass


def test_a_gzip_bomb_is_refused_while_it_is_small(tmp_path, monkeypatch):
    """Of line ends, whose list took 11 GB, and of one line without an end.

    Of 262 thousand line ends instead of 16 million, which take seconds to read.
    """
    bomb_from = 1 << 18
    monkeypatch.setattr(unpacking, "BOMB_FROM", bomb_from)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\n" * (bomb_from + 10_000)))
    with pytest.raises(DataError) as caught:
        read_lines(path)
    assert "bomb.gz must be text, and unpacks to more than 200 times its" in str(caught.value)
    assert caught.value.hint == (
        "packing makes text 3 to 20 times smaller; if it is right, unpack it first"
    )
    path.write_bytes(gzip.compress(b"x" * (LONGEST + 1)))
    with pytest.raises(DataError, match="unpacks to more than 200 times its"):
        read_lines(path)


@pytest.mark.parametrize(("name", "pack"), [("pipe.gz", gzip.compress), ("pipe.xz", lzma.compress)])
def test_a_packed_pipe_is_read_and_a_bomb_in_it_refused(name, pack, tmp_path, monkeypatch):
    """It has neither a size nor a position, so the packed bytes are counted as they are read."""
    monkeypatch.setattr(unpacking, "BOMB_FROM", 1 << 12)
    path = tmp_path / name
    os.mkfifo(path)

    def read(content):
        # small enough for the pipe to take at once, whatever the reader does
        packed = pack(content)
        assert len(packed) < 1 << 15
        writer = threading.Thread(target=path.write_bytes, args=(packed,))
        writer.start()
        try:
            return read_lines(path)
        finally:
            writer.join()

    text = [f"sentence {number}" for number in range(5_000)]
    assert read("\n".join(text).encode()) == text
    with pytest.raises(DataError, match="must be text, and unpacks to more than 200 times its"):
        read(b"a\n" * 500_000)


@pytest.mark.parametrize(
    ("content", "what", "hint"),
    [
        (b"PK\x03\x04\x14\0", "a zip archive, such as .docx", "save it as plain text"),
        (b"\xd0\xcf\x11\xe0\xa1", "an old Word or Excel file", "save it as plain text"),
        (b"%PDF-1.7\n", "a PDF file", "extract its text, for example: pdftotext"),
        ("\ufeffdéjà\n".encode("utf-16-le"), "UTF-16", "iconv -f UTF-16 -t UTF-8"),
        ("\ufeffdéjà\n".encode("utf-16-be"), "UTF-16", "iconv -f UTF-16 -t UTF-8"),
        ("the cat\n".encode("utf-16-le"), "UTF-16", "iconv -f UTF-16 -t UTF-8"),
        (b"\x28\xb5\x2f\xfd\x04", "packed by zstd", "unpack it first: zstd -d"),
        (b"\xfd7zXZ\x00\0\x04", "packed by xz", "unpack it first: xz -d"),
        (b"BZh91AY&SY", "packed by bzip2", "unpack it first: bzip2 -d"),
    ],
)
def test_what_is_mistaken_for_text_is_called_by_its_name(content, what, hint, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(content)
    for source, name in ((path, str(path)), (io.BytesIO(content), "<stdin>")):
        with pytest.raises(DataError) as caught:
            list(iterate_lines(source))
        assert str(caught.value).startswith(f"{name} must be plain text in UTF-8, is {what}")
        assert hint in caught.value.hint


def test_gzip_without_its_ending_is_told(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(gzip.compress(b"the cat\n"))
    with pytest.raises(DataError, match="is gzip data") as caught:
        read_lines(path)
    assert caught.value.hint == "give its name the ending .gz, and it is unpacked"


def test_a_nul_in_a_line_is_text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"the \0 cat\n\0\0\0\n")
    assert read_lines(path) == ["the \0 cat", "\0\0\0"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_block_is_bounded_by_the_longest_line(tmp_path, monkeypatch, packed):
    """A file without line ends would be held whole; the line is named, counted from the first."""
    monkeypatch.setattr(lines, "_BLOCK_BYTES", 8)
    monkeypatch.setattr(lines, "_LONGEST_LINE", 20)

    def written(content):
        data = gzip.compress(content) if packed else content
        return write(tmp_path, data, "text.gz" if packed else "text")

    whole = b"a\nb\n" + b"c" * 19 + b"\nd\n" + b"e" * 20
    assert b"".join(iterate_blocks(written(whole))) == whole
    for line in (b"c" * 20 + b"\n", b"c" * 21, b"c" * 1000):
        with pytest.raises(DataError, match="line 3: a line must have at most 20 bytes"):
            list(iterate_blocks(written(b"a\nb\n" + line)))


def test_a_block_of_a_byte_order_mark_alone_is_one_line(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbf")
    assert lines.fetch_lines(path, [0]) == {0: b""}
    assert list(lines.iterate_raw_lines(path)) == [b""]
    assert read_lines(path) == [""]


def test_gzip_in_a_stream_is_told():
    with pytest.raises(DataError, match="<stdin> must be plain text in UTF-8, is packed by gzip"):
        list(iterate_lines(io.BytesIO(gzip.compress(b"text\n"))))


@pytest.mark.parametrize("content", [b"one\rtwo\rthree\r", b"one\rtwo", b"one\rtwo\n", b"a\rb\r\n"])
def test_a_file_of_old_macs_is_said_to_be_one(content, tmp_path):
    path = tmp_path / "old.en"
    path.write_bytes(content)
    for read in (read_lines, lambda path: list(iterate_blocks(path))):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(
            f"{path} must have lines that end with a line feed, has one line with"
        )
        assert caught.value.hint == "convert the file, for example: tr '\\r' '\\n' < OLD > NEW"
    assert len(list(iterate_lines(io.BytesIO(content)))) == 1, "a stream may be such a line"
