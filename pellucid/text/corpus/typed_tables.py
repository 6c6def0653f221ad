"""The rows of tables with types: Parquet and datasets of Hugging Face."""

import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO
from urllib.parse import parse_qsl

from pellucid.core.errors import DataError, MissingExtraError
from pellucid.text.corpus.addresses import DATASETS, Address
from pellucid.text.corpus.cells import ONE_PAIR, line_of_cells, line_of_object, say_pair
from pellucid.text.corpus.dialects import pair_columns
from pellucid.text.corpus.unpacking import MOST_MEMORY, refuse_bomb

_ROWS_AT_ONCE = 1 << 14
"""Rows of Parquet that are unpacked together, as numbers of values."""
_LARGEST_ROW_GROUP = 1 << 30
"""Bytes of a column's part of a row group of Parquet, of which one is unpacked at a time."""
_LONGEST_URL = 2000
_DATASET_OPTIONS = ("name", "split", "data_files", "revision")


def parquet_rows(file: BinaryIO, address: Address) -> Iterator[bytes]:
    """The rows of a file of Parquet. Raises DataError, and MissingExtraError without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "data", "reading .parquet") from None

    number = 0
    # For metadata that a stranger wrote.
    limits = {
        "thrift_string_size_limit": MOST_MEMORY,
        "thrift_container_size_limit": 1_000_000,
        "arrow_extensions_enabled": False,
    }
    try:
        schema = pyarrow.parquet.ParquetFile(file, **limits)
        paths = _parquet_paths(schema.schema_arrow, address)
        leaves = [".".join(path) for path in paths]
        _refuse_large_groups(schema.metadata, leaves, address)
        size = file.seek(0, io.SEEK_END)

        # As numbers of values that are stored once: a file of 95 kB can have a value of a million
        # characters and 200,000 rows that point at it.
        table = pyarrow.parquet.ParquetFile(file, read_dictionary=leaves, **limits)
        unpacked = 0
        for batch in table.iter_batches(_ROWS_AT_ONCE, columns=leaves, use_threads=False):
            sides = [_arrow_column(batch, path) for path in paths]
            for row in zip(*(_arrow_cells(side) for side in sides), strict=True):
                number += 1
                line = line_of_cells(row, address, number)
                unpacked += len(line)
                refuse_bomb(unpacked, size, address.location, "write it as lines of text first")
                yield line
            unpacked += sum(len(getattr(side, "dictionary", ())) for side in sides)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{address.location}, row {number + 1}: {reason}") from error


def _parquet_paths(schema: Any, address: Address) -> list[tuple[str, ...]]:
    """The columns to read, each as names from the outermost struct to the text.

    Raises DataError for a column that is missing or holds no text.
    """
    import pyarrow

    names = list(schema.names)
    paths: list[tuple[str, ...]]
    if address.column and address.column in names:
        paths = [(address.column,)]
    elif address.column:
        paths = [tuple(address.column.split("."))]
    elif found := pair_columns(names):
        paths = [(names[column],) for column in found]
        say_pair(address.location, *(names[column] for column in found))
    else:
        is_struct = "translation" in names and pyarrow.types.is_struct(
            schema.field("translation").type
        )
        inner = [each.name for each in schema.field("translation").type] if is_struct else []
        if len(inner) != 2:
            shown = ", ".join(names[:20])
            raise DataError(
                f"{address.location} must have {ONE_PAIR}, has: {shown}",
                hint="name a column as in pairs.parquet#en",
            )
        paths = [("translation", name) for name in inner]
        say_pair(address.location, *inner)

    for path in paths:
        kind: Any = None
        known = names
        for name in path:
            if known.count(name) > 1:
                raise DataError(
                    f"{address.location}: {known.count(name)} columns are called {name}; rename all"
                    " but one"
                )
            if name not in known:
                shown = ", ".join(known[:20]) or "none"
                raise DataError(
                    f"{address.location}: there is no column {'.'.join(path)}; there are: {shown}"
                )
            kind = schema.field(name).type if kind is None else kind.field(name).type
            known = [each.name for each in kind] if pyarrow.types.is_struct(kind) else []
        if pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        if kind not in (
            *(pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()),
            *(pyarrow.binary(), pyarrow.large_binary(), pyarrow.null()),
        ):
            raise DataError(
                f"{address.location}: the column {'.'.join(path)} must be text, is {kind}"[:300]
            )
    return paths


def _refuse_large_groups(about: Any, leaves: Sequence[str], address: Address) -> None:
    for group in range(about.num_row_groups):
        columns = [about.row_group(group).column(n) for n in range(about.num_columns)]
        size = sum(
            each.total_uncompressed_size for each in columns if each.path_in_schema in leaves
        )
        if size > _LARGEST_ROW_GROUP:
            raise DataError(
                f"{address.location}: a row group must have at most {_LARGEST_ROW_GROUP:,} bytes in"
                f" the columns that are read, row group {group + 1} has {size:,}",
                hint="write it again with smaller row groups",
            )


def _arrow_column(batch: Any, path: tuple[str, ...]) -> Any:
    column = batch.column(batch.schema.get_field_index(path[0]))
    for name in path[1:]:
        # ``flatten`` makes a field null where its struct is.
        column = column.flatten()[column.type.get_field_index(name)]
    return column


def _arrow_cells(column: Any) -> Iterator[Any]:
    """The values of a column; each value that is stored once is converted once."""
    if not hasattr(column, "dictionary"):
        yield from column.to_pylist()
        return
    used = column.indices.unique().drop_null()
    values = dict(zip(used.to_pylist(), column.dictionary.take(used).to_pylist(), strict=True))
    for index in column.indices.to_pylist():
        yield None if index is None else values[index]


def dataset_rows(address: Address) -> Iterator[bytes]:
    """The rows of ``datasets://NAME?name=CONFIG&split=train``, streamed."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "datasets", "reading a dataset") from None

    place, _, query = address.location.removeprefix(f"{DATASETS}://").partition("?")
    # a plus is a plus, as in the name of a file
    options = (
        dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))
        if len(query) < _LONGEST_URL
        else {}
    )
    unknown = sorted(options.keys() - set(_DATASET_OPTIONS))
    if unknown or "split" not in options:
        raise DataError(
            f"{address.location}: a dataset is named datasets://NAME?split=train, and may have"
            f" {', '.join(_DATASET_OPTIONS)}; got {', '.join(options) or 'none'}"
        )
    number = 0
    pair: tuple[str, str] | None = None
    try:
        rows = datasets.load_dataset(
            place,
            name=options.get("name"),
            split=options["split"],
            data_files=options.get("data_files"),
            revision=options.get("revision"),
            streaming=True,
        )
        for row in rows:
            number += 1
            if number == 1 and not address.column:
                pair = _pair_of_row(list(row), address)  # the first row decides for all
            yield _line_of_row(dict(row), pair, address, number)
    except DataError:
        raise
    except Exception as error:  # each builder raises errors of its own
        reason = str(error).split("\n", 1)[0][:200]
        raise DataError(f"cannot read {address.location}, row {number + 1}: {reason}") from error


def _pair_of_row(names: list[str], address: Address) -> tuple[str, str] | None:
    """The columns with source and target; None if they are not known by their names."""
    found = pair_columns(names)
    if found is None:
        return None
    source, target = (names[column] for column in found)
    say_pair(address.location, source, target)
    return source, target


def _line_of_row(
    row: dict[str, Any], pair: tuple[str, str] | None, address: Address, number: int
) -> bytes:
    """A row without the cells that nobody reads, such as dates, which are no text."""
    if pair is not None:
        return line_of_cells([row[name] for name in pair], address, number)
    if not address.column and "translation" in row:
        row = {"translation": row["translation"]}
    return line_of_object(row, address, number)
