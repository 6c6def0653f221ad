"""The bytes of an input, of this machine or another, as they are stored and unpacked."""

import contextlib
import functools
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pellucid.core.errors import DataError, InputMissingError, MissingExtraError, PellucidError
from pellucid.text.corpus.addresses import Address

_PACKED_AT_ONCE = 1 << 10
"""Packed bytes that are unpacked together. A block of zstd takes 4 of them and unpacks to 128 KiB,
so this bounds the memory to some 32 MiB."""
MOST_MEMORY = 1 << 28
"""Bytes that unpacking may take: xz asks for 65 MiB with its largest usual dictionary, zstd for 128
MiB. A file that asks for more is hostile."""
_OF_MEMORY = ("too much memory", "Memory usage limit")
"""Parts of the messages of zstandard and lzma about files that ask for more."""
_MOST_EXPANSION = 200
BOMB_FROM = 1 << 24
"""The size from which an unpacked file may be a bomb: text is packed 3 to 20 times smaller. A file
that unpacks to more than this and 200 times the bytes read of it does not contain sentences."""


def refuse_bomb(unpacked: int, packed: int, name: str, way_out: str) -> None:
    """Raise DataError if so many bytes were unpacked that the file contains no sentences."""
    if unpacked > max(BOMB_FROM, _MOST_EXPANSION * packed):
        raise DataError(
            f"{name} must be text, and unpacks to more than {_MOST_EXPANSION} times its size",
            hint=f"packing makes text 3 to 20 times smaller; if it is right, {way_out}",
        )


@contextlib.contextmanager
def open_packed(address: Address) -> Iterator[BinaryIO]:
    """The bytes of an input as they are stored. Raises OSError, and as ``input_exists``."""
    if not address.scheme:
        with Path(address.location).open("rb") as file:
            yield file
        return

    # Only around the opening: what the caller raises inside the block is none of these errors.
    with remote_errors(address.location):
        filesystem, inner = file_system_of(address.location)
        opened = filesystem.open(inner, "rb")
    with opened as file, io.BufferedReader(_Remote(file, address.location)) as buffered:
        yield buffered


class _Remote(io.RawIOBase):
    """A file of fsspec as one of Python's.

    Those of its file systems differ: the files of http and of object stores have a ``readline``
    that takes no size, and raise whatever their packages raise when a connection breaks.
    """

    def __init__(self, file: Any, url: str) -> None:
        self._file = file
        self._url = url

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether the file can seek; a server without ranges only lets it be read on."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move, and return the position."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The position."""
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one answer reaches. Raises InputMissingError."""
        try:
            content = self._file.read(len(buffer))
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise InputMissingError(f"cannot read {self._url} to its end: {reason}") from error
        buffer[: len(content)] = content
        return len(content)


@contextlib.contextmanager
def open_unpacked(address: Address) -> Iterator[BinaryIO]:
    """The unpacked bytes of an input that is packed or lies elsewhere."""
    with open_packed(address) as file:
        packed = _Counted(file)
        unpacked: Any = None
        match address.packing:
            case ".zst":
                unpacked = _zstd_reader(packed)
            case ".xz":
                begin = functools.partial(
                    lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=MOST_MEMORY
                )
                unpacked = _FrameReader(packed, begin, _PACKED_AT_ONCE)
            case ".gz":
                unpacked = gzip.GzipFile(fileobj=packed)  # type: ignore[call-overload]
            case _:
                yield file
                return
        yield io.BufferedReader(ReadBy(_Unpacked(packed, unpacked, address.location).read))


class ReadBy(io.RawIOBase):
    """A file whose bytes a function gives: at most so many, and none at the end."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one answer of the function reaches."""
        content = self._read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _Counted:
    """A file that is only read on, and counted; a pipe does not know its position."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""
        content = self._file.read(size)
        self.count += len(content)
        return content


class _Unpacked:
    """Unpacked bytes, of which there may be 200 times as many as packed ones were read."""

    def __init__(self, packed: _Counted, unpacked: Any, name: str) -> None:
        self._packed = packed
        self._unpacked = unpacked
        self._name = name
        self._count = 0

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes. Raises DataError for damage and for what is no text."""
        try:
            content: bytes = self._unpacked.read(size)
        except (EOFError, lzma.LZMAError, zlib.error, OSError, RuntimeError) as error:
            raise self._error(error) from error
        except Exception as error:
            # zstandard's own error is a class of an optional package.
            if type(error).__name__ != "ZstdError":
                raise
            raise self._error(error) from error

        self._count += len(content)
        refuse_bomb(self._count, self._packed.count, self._name, "unpack it first")
        return content

    def _error(self, error: Exception) -> DataError:
        if any(sign in str(error) for sign in _OF_MEMORY):
            return DataError(
                f"{self._name} needs more than {MOST_MEMORY >> 20} MiB to unpack ({error})",
                hint="unpack it first, for example: zstd -d --long=31",
            )
        if isinstance(self._unpacked, gzip.GzipFile):
            return DataError(
                f"{self._name} is not whole gzip data: {error}",
                hint="unpack it by hand to see how far",
            )
        return DataError(f"{self._name} is damaged: {error}")


class _FrameReader:
    """Unpacks frames (streams of xz) that follow one another, and notices an end within one."""

    def __init__(self, packed: _Counted, begin: Callable[[], Any], read_at_once: int) -> None:
        self._packed = packed
        self._begin = begin
        self._read_at_once = read_at_once
        self._unpacker = begin()
        self._content = io.BytesIO()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end. Raises EOFError, and as the unpacker."""
        while not (content := self._content.read(size)):
            if self._unpacker.eof:
                # xz pads streams to multiples of four bytes.
                packed = self._unpacker.unused_data.lstrip(b"\0")
                packed = packed or self._packed.read(self._read_at_once).lstrip(b"\0")
                if not packed:
                    return b""
                self._unpacker = self._begin()
            else:
                packed = self._packed.read(self._read_at_once)
                if not packed:
                    raise EOFError("it ends too early")
            # A slice of bytes would copy all that is left, for every part that is read.
            self._content = io.BytesIO(self._unpacker.decompress(packed))
        return content


def _zstd_reader(packed: _Counted) -> _FrameReader:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "data", "reading .zst") from None
    unpacker = zstandard.ZstdDecompressor(max_window_size=MOST_MEMORY // 2)
    # Its own reader of streams takes a file that is cut short for a whole one.
    return _FrameReader(packed, unpacker.decompressobj, _PACKED_AT_ONCE)


def file_system_of(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it, by fsspec. Raises what fsspec does."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("fsspec", "data", f"reading {url}") from None
    filesystem, inner = fsspec.core.url_to_fs(url)
    return filesystem, str(inner)


@contextlib.contextmanager
def remote_errors(url: str) -> Iterator[None]:
    """Turn what fsspec raises into errors of our own."""
    try:
        yield
    except ImportError as error:
        # s3fs, gcsfs and others are packages of their own, which fsspec names.
        raise InputMissingError(f"cannot read {url}: {error}") from error
    except PellucidError:
        raise
    except FileNotFoundError as error:
        # That of http repeats the address, also where nothing answers.
        reason = error.strerror or "no such file, or no answer"
        raise InputMissingError(f"cannot read {url}: {reason}") from error
    except Exception as error:
        # A file system raises what its package raises, of which not all is an OSError.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputMissingError(f"cannot read {url}: {reason}") from error
