"""Opens what a stranger made within bounds: XML without entities, zip archives that stay small.

Nothing is extracted to disk and nothing is fetched: a reference to another file or address is only
text. What is not translated is copied from archive to archive in pieces.
"""

import io
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from pellucid.core.errors import DataError, MissingExtraError

LARGEST_FILE = 256 << 20
"""Bytes of a document; books with photographs have some tens of millions."""
LARGEST_TEXT = 32 << 20
"""Bytes of one part with text, such as the body of a book in XML, or of a file of plain text."""
_LARGEST_ARCHIVE = 1 << 30
"""Bytes of all members of an archive, unpacked."""
_MOST_MEMBERS = 10_000
_PIECE = 1 << 20
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How the files of Office before 2007 begin, and those with a password since."""


def check_size(data: bytes, what: str, most: int = LARGEST_TEXT) -> None:
    """Raise DataError for a file with more bytes than ``most``."""
    if len(data) > most:
        raise DataError(f"{what} must have at most {most >> 20} MiB, has {len(data):,}")


Element = Any
"""An element of lxml, which has no types of its own."""


def parse_xml(data: bytes, what: str) -> Element:
    """The root of an XML text. Raises DataError; entities of its own are refused."""
    etree = _etree()
    if len(data) > LARGEST_TEXT:
        raise DataError(f"{what} must have at most {LARGEST_TEXT >> 20} MiB of text")

    # No entity is replaced and nothing is loaded; without huge_tree libxml2 bounds the depth.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=False
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        # libxml2 ends some of its sentences with a line end
        problem = " ".join(getattr(error, "msg", str(error)).split()).replace(" ,", ",")
        raise DataError(f"{what} is not well-formed XML: {problem}") from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise DataError(
            f"{what} has a document type of its own with entities, which is refused",
            hint="they could grow without limit; save it without <!DOCTYPE ...>",
        )
    return root


def write_xml(root: Element) -> bytes:
    """The XML of a tree in UTF-8, with its declaration and what stands beside the root."""
    tree = root.getroottree()
    standalone = ' standalone="yes"' if tree.docinfo.standalone else ""
    written: bytes = _etree().tostring(tree, xml_declaration=False, encoding="UTF-8")
    return f'<?xml version="1.0" encoding="UTF-8"{standalone}?>\n'.encode() + written


def new_element(parent: Element, tag: str) -> Element:
    """A new last child of an element, with its prefixes."""
    return _etree().SubElement(parent, tag)


def written_element(element: Element) -> str:
    """An element, a comment or an instruction as it is written, without what comes after it."""
    return str(_etree().tostring(element, encoding="unicode", with_tail=False))


def local_name(element: Element) -> str:
    """The name of an element without its namespace; empty for a comment or an instruction."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _etree() -> Any:
    try:
        from lxml import etree
    except ModuleNotFoundError:
        raise MissingExtraError("lxml", "documents", "a document in XML") from None
    return etree


class Archive:
    """A zip archive in memory, such as a docx, whose members are read on request."""

    def __init__(self, data: bytes, what: str) -> None:
        """Raises DataError for an archive that is broken, too large, encrypted or unsafe."""
        self._what = what
        if data.startswith(_OLE):
            raise DataError(
                f"{what} has a password, or is in the format of Office before 2007",
                hint="open it, remove the password and save it in today's format",
            )
        try:
            self._zip = _opened(data)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            kind = what.rpartition(".")[2] if "." in what else "zip"
            raise DataError(f"{what} is not a {kind} file: {error}") from None
        self._check()

    @property
    def names(self) -> list[str]:
        """The names of all members, in order."""
        return self._zip.namelist()

    def read(self, name: str) -> bytes:
        """The bytes of a member with text. Raises DataError if it is too large or broken."""
        size = self._zip.getinfo(name).file_size
        if size > LARGEST_TEXT:
            raise DataError(
                f"{self._what} must have at most {LARGEST_TEXT >> 20} MiB in {name},"
                f" has {size:,} bytes"
            )
        try:
            return self._zip.read(name)
        except _BROKEN as error:
            raise DataError(f"{self._what} is damaged in {name}: {error}") from None

    def written(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive with other contents for some members; all else stays as it is."""
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for info in self._zip.infolist():
                # A copy with the same name, time and attributes.
                entry = self._named_as(info)
                entry.compress_type = info.compress_type
                entry.external_attr = info.external_attr
                entry.create_system = info.create_system
                entry.file_size = info.file_size

                content = changed.get(info.filename)
                try:
                    if content is not None:
                        archive.writestr(entry, content)
                        continue
                    with self._zip.open(info) as source, archive.open(entry, "w") as copy:
                        shutil.copyfileobj(source, copy, _PIECE)
                except _BROKEN as error:
                    raise DataError(
                        f"{self._what} is damaged in {info.filename}: {error}"
                    ) from None

        return target.getvalue()

    def _named_as(self, info: zipfile.ZipInfo) -> zipfile.ZipInfo:
        """A new entry with the name of one, in the bytes that it has in the archive."""
        says_nothing = self._zip.metadata_encoding is None and not info.flag_bits & _IS_UTF_8  # type: ignore[attr-defined]
        kind = _InCodePage if says_nothing else zipfile.ZipInfo
        return kind(info.orig_filename, info.date_time)

    def _check(self) -> None:
        infos = self._zip.infolist()
        if len(infos) > _MOST_MEMBERS:
            raise DataError(
                f"{self._what} must have at most {_MOST_MEMBERS:,} parts, has {len(infos):,}"
            )
        size = sum(info.file_size for info in infos)
        if size > _LARGEST_ARCHIVE:
            raise DataError(
                f"{self._what} must unpack to at most {_LARGEST_ARCHIVE >> 30} GiB,"
                f" unpacks to {size:,} bytes",
                hint="this is a zip bomb, or holds videos: take them out",
            )
        if len({info.filename for info in infos}) < len(infos):
            raise DataError(f"{self._what} has two parts of one name, which no program writes")

        for info in infos:
            parts = info.filename.replace("\\", "/").split("/")
            if ".." in parts or not parts[0] or ":" in parts[0]:
                raise DataError(f"{self._what} has a part outside of its folder: {info.filename!r}")
            if info.flag_bits & 1:
                raise DataError(
                    f"{self._what} has a password", hint="open it, remove the password and save it"
                )
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError(f"{self._what} is packed in a way that no such file is")


class _InCodePage(zipfile.ZipInfo):
    """An entry whose name was read in the code page of DOS, whatever its own is: GBK or Shift-JIS.

    All 256 bytes are characters there, so that the name is written as it was. zipfile itself writes
    it in UTF-8, and has no public way to say another encoding.
    """

    __slots__ = ()

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        return self.filename.encode(_DOS), self.flag_bits & ~_IS_UTF_8


_DOS = "cp437"
_IS_UTF_8 = 0x800
"""The flag of an entry whose name is in UTF-8."""


def _opened(data: bytes) -> zipfile.ZipFile:
    """The archive; names that do not say how they are written are read as UTF-8, as EPUB has them,
    or else in the code page of DOS, as zip has them. Raises as ``zipfile.ZipFile``.
    """
    try:
        return zipfile.ZipFile(io.BytesIO(data), metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(io.BytesIO(data))


_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError)
"""The errors of the standard library for archives that are damaged or made to be."""
