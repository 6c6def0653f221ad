"""Books (epub): every chapter, and the titles in the table of contents."""

import posixpath
import re
import urllib.parse
from collections.abc import Sequence

from pellucid.core.errors import DataError
from pellucid.documents.containers import Archive, Element, local_name, parse_xml, write_xml
from pellucid.documents.html_files import HtmlFile
from pellucid.documents.mixed import MixedText, read_mixed
from pellucid.documents.page_language import names_language
from pellucid.documents.segments import Languages, Segment, check_count
from pellucid.text.languages import is_right_to_left

_NCX = "{http://www.daisy.org/z3986/2005/ncx/}text"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_CHAPTERS = (".xhtml", ".html", ".htm")
_CHAPTER_TYPES = frozenset(("application/xhtml+xml", "text/html"))
_CONTENTS_TYPE = "application/x-dtbncx+xml"
_PACKAGE_TYPE = "application/oebps-package+xml"
_PICTURE_TYPE = "image/svg+xml"
_KEPT = frozenset(("docAuthor", "pageList"))
"""Elements of a table of contents that are no titles: names, and the numbers of printed pages."""
_LANGUAGE = re.compile(
    rb"(<(?:[A-Za-z]+:)?language(?:\s[^<>]*)?>\s*)([A-Za-z]{2,8}(?:-\w+)*)(\s*</)"
)
_SPINE = re.compile(rb"<(?:[A-Za-z]+:)?spine\b")
_PAGES = re.compile(
    rb"<(?:[A-Za-z]+:)?spine\b[^<>]*\spage-progression-direction\s*=\s*[\"'](\w+)[\"']"
)
_VERSION_3 = re.compile(rb"<(?:[A-Za-z]+:)?package\b[^<>]*\sversion\s*=\s*[\"']3")
"""Packages of EPUB 2 have no direction of their pages."""
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_OBFUSCATIONS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
"""Ways to hide fonts, which a book may use that anybody can read."""


class BookDocument:
    """An epub file; pictures, fonts and styles stay to the byte, and of the package everything but
    the language and the direction of its pages.
    """

    def __init__(self, data: bytes, what: str, languages: Languages) -> None:
        """``languages``: the book says that it is in the second one.

        Raises DataError for a file that is none, is damaged or is locked by a seller.
        """
        self._target = languages.target
        self._archive = Archive(data, what)
        names = self._archive.names
        if _CONTAINER not in names:
            raise DataError(f"{what} must hold {_CONTAINER}, which it does not")
        if _is_locked(self._archive):
            raise DataError(f"{what} is locked by its seller or library (DRM), and cannot be read")

        self.segments: list[Segment] = []
        self._chapters: dict[str, tuple[HtmlFile, int]] = {}
        self._contents: list[tuple[str, Element, list[MixedText], int]] = []
        self._packages: dict[str, bytes] = {}
        """The packages that say another language."""
        types = _media_types(self._archive)
        for name in names:
            kind = types.get(name)
            if kind == _PACKAGE_TYPE:
                package = self._archive.read(name)
                if (changed := _with_language(package, languages.target)) != package:
                    self._packages[name] = changed
            elif name.lower().endswith(_CHAPTERS) or kind in _CHAPTER_TYPES:
                chapter = HtmlFile(self._archive.read(name), f"{what}: {name}", languages)
                self._chapters[name] = (chapter, len(self.segments))
                self.segments += chapter.segments
            elif name.lower().endswith(".ncx") or kind == _CONTENTS_TYPE:
                root = parse_xml(self._archive.read(name), f"{what}: {name}")
                texts = [
                    read_mixed(each, lambda _: "alone")
                    for each in root.iter(_NCX)
                    if not any(local_name(holder) in _KEPT for holder in each.iterancestors())
                ]
                self._contents.append((name, root, texts, len(self.segments)))
                self.segments += [text.segment for text in texts]
        pictures = sum(kind == _PICTURE_TYPE for kind in types.values())
        noun = "picture that may hold text" if pictures == 1 else "pictures that may hold text"
        self.notes = [f"{pictures:,} {noun} (svg) not translated"] if pictures else []

    def write(self, translated: Sequence[Segment]) -> bytes:
        """The book with other segments."""
        check_count(translated, self.segments)
        changed = dict(self._packages)
        for name, (chapter, first) in self._chapters.items():
            own = translated[first : first + len(chapter.segments)]
            changed[name] = chapter.write(own)
        for name, root, texts, first in self._contents:
            own = translated[first : first + len(texts)]
            if own == self.segments[first : first + len(texts)]:
                continue
            for text, segment in zip(texts, own, strict=True):
                text.write(segment)
            if self._target and not names_language(root.get(_XML_LANG, self._target), self._target):
                root.set(_XML_LANG, self._target)
            changed[name] = write_xml(root)
        return self._archive.written(changed)


def _is_locked(archive: Archive) -> bool:
    """Whether parts of a book other than its fonts are encrypted."""
    names = archive.names
    if "META-INF/rights.xml" in names or "META-INF/sinf.xml" in names:
        return True
    if _ENCRYPTION not in names:
        return False
    try:
        root = parse_xml(archive.read(_ENCRYPTION), _ENCRYPTION)
    except DataError:
        return False  # programs that show books go on without it
    ways = {each.get("Algorithm") for each in root.iter("{*}EncryptionMethod")}
    return bool(ways - _OBFUSCATIONS)


def _media_types(archive: Archive) -> dict[str, str]:
    """The media types of the parts that the packages of a book list, by name.

    What cannot be read there is left out: chapters are then known by how their names end.
    """
    try:
        container = parse_xml(archive.read(_CONTAINER), _CONTAINER)
    except DataError:
        return {}
    packages = {each.get("full-path") for each in container.iter("{*}rootfile")}

    types = dict.fromkeys(filter(None, packages), _PACKAGE_TYPE)
    for package in packages.intersection(archive.names):
        try:
            root = parse_xml(archive.read(package), package)
        except DataError:
            continue
        for item in root.iter("{*}item"):
            # An address from the folder of the package.
            place = urllib.parse.unquote(item.get("href", ""))
            name = posixpath.normpath(posixpath.join(posixpath.dirname(package), place))
            types[name] = item.get("media-type", "")
    return types


def _with_language(package: bytes, language: str) -> bytes:
    """A package that says the language of the translation and the side on which its pages begin;
    the other languages that it names stay.
    """

    def renamed(found: re.Match[bytes]) -> bytes:
        same = names_language(found[2].decode(), language)
        return found[0] if same else found[1] + language.encode() + found[3]

    if not language:
        return package
    package = _LANGUAGE.sub(renamed, package, count=1)
    turns = _PAGES.search(package)
    if is_right_to_left(language) and _VERSION_3.search(package):
        if turns:
            return package[: turns.start(1)] + b"rtl" + package[turns.end(1) :]
        return _SPINE.sub(rb'\g<0> page-progression-direction="rtl"', package, count=1)
    if turns and not is_right_to_left(language):
        return package[: turns.start(1)] + b"ltr" + package[turns.end(1) :]
    return package
