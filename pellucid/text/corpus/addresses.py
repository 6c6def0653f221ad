"""Names of inputs and outputs, taken apart.

An input is named ``[SCHEME://]PATH[#COLUMN]``. Its suffixes say how it is packed (``.gz``,
``.zst``, ``.xz``) and whether it is a table (``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``). With a
column it is that column, one cell a line; a table without one is both sides of a corpus, as lines
of JSON. ``datasets://NAME?split=train#COLUMN`` is a dataset of Hugging Face, streamed.

Paths are ``pathlib.Path`` everywhere, which makes one slash of the two behind a scheme;
``address_of`` puts the second one back.
"""

import dataclasses
import re
from pathlib import Path
from typing import Literal

Packing = Literal["", ".gz", ".zst", ".xz"]
PACKINGS: tuple[Packing, ...] = (".gz", ".zst", ".xz")
Table = Literal["", "csv", "tsv", "jsonl", "parquet", "datasets"]
_SCHEME = re.compile(r"([a-z][a-z0-9+]+):/{1,3}(.*)", re.DOTALL)
"""At least two letters, so that no drive of Windows is one."""
DATASETS = "datasets"
_TABLES: dict[str, Table] = {".parquet": "parquet", ".csv": "csv"}
_TABLES_BY_COLUMN: dict[str, Table] = {".tsv": "tsv", ".jsonl": "jsonl"}


@dataclasses.dataclass(frozen=True)
class Address:
    """An input taken apart."""

    location: str
    """A path of this machine, or a URL."""
    scheme: str
    """Empty for a path."""
    column: str
    """Empty for the whole."""
    stem: str
    """The name of the file alone: without caches and archives around it, query and packing."""
    packing: Packing

    @property
    def table(self) -> Table:
        """The kind of a table; empty for plain text.

        TSV and JSONL count as tables only if a column is named, because the corpus reads lines of
        them itself.
        """
        if self.scheme == DATASETS:
            return "datasets"
        tables = {**_TABLES, **(_TABLES_BY_COLUMN if self.column else {})}
        return tables.get(self.suffix, "")

    @property
    def is_plain(self) -> bool:
        """Whether it is a file of this machine whose own bytes are the lines, or gzip of them."""
        return not self.scheme and not self.table and self.packing in ("", ".gz")

    @property
    def suffix(self) -> str:
        """The end of its name from the last dot, in lower case, such as ``.tsv``; or nothing."""
        name = self.stem.rpartition("/")[2].lower()
        return f".{name.rpartition('.')[2]}" if "." in name else ""


def address_of(path: Path | str) -> Address:
    """An input by its name."""
    folder, slash, name = str(path).rpartition("/")  # a # in the name of a folder is its own
    name, _, column = name.partition("#")
    text = folder + slash + name
    if "::" in text:
        return _chained(text, column)
    found = _SCHEME.fullmatch(text)
    scheme = found[1] if found else ""
    if found:
        # A path of file:// and local:// is absolute; elsewhere the first part is a host or a
        # bucket.
        text = f"{scheme}://{'/' if scheme in ('file', 'local') else ''}{found[2].lstrip('/')}"

    # The query of a URL is no part of its name.
    name = text.partition("?")[0] if scheme else text
    packing: Packing = next((each for each in PACKINGS if name.lower().endswith(each)), "")
    return Address(text, scheme, column, name[: len(name) - len(packing)], packing)


def _chained(text: str, column: str) -> Address:
    """An address of fsspec within another: ``zip://a.en::s3://b/c.zip``, ``simplecache::s3://a``."""
    parts = [address_of(part) for part in text.split("::")]
    # The first one that has a path names the file; before it stand caches, without one.
    named = next((each for each in parts if "/" in each.location), parts[0])
    location = "::".join(each.location for each in parts)
    scheme = parts[0].scheme or parts[0].location
    return Address(location, scheme, column, named.stem, named.packing)


def reading_of(path: Path) -> str:
    """Return the part of an input's name that decides how it is read: its suffix, and the column
    with dots."""
    column = address_of(path).column
    return f"{path.suffix}#{column}" if "." in column else path.suffix


def plain_stem(name: str) -> str:
    """The name of an input without packing; ``corpus.parquet#en`` becomes ``corpus.en``."""
    address = address_of(name)
    if not address.column:
        return address.stem
    return f"{Path(address.stem).with_suffix('')}.{address.column}"
