"""A line ends at \\n and only there; what is not UTF-8 is named to the byte."""

import gzip
import io
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.core.errors import DataError, InputMissingError
from pellucid.text.lines import iterate_lines, read_lines

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
    assert caught.value.hint == "convert the file, for example: iconv -f LATIN1 -t UTF-8"


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
