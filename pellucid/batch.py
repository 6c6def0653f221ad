"""Callables that translate, score and check batches of a table, for engines that share out work.

    dataset.map_batches(Translate("runs/en-de", column="en"), batch_size=1024)     # Ray Data
    frame.mapInPandas(Translate("runs/en-de", column="en"), schema)                # Spark
    frame.map_partitions(Translate("runs/en-de", column="en"), meta=meta)          # Dask
    dataset.map(Translate("runs/en-de", column="en"), batched=True)                # datasets

A batch is a dictionary of arrays or lists, a frame of pandas, or a table of pyarrow, and what comes
back is the same with columns added. An iterator of batches gives an iterator, as Spark wants it. A
callable is a path and options: a few hundred bytes when it is sent to another process, which opens
the model at its first batch and once, and again when there is another model in its place.
"""

import dataclasses
import functools
import hashlib
import logging
import math
import numbers
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pellucid.backends import ComputeType, Device, EngineName, is_hub_address
from pellucid.backends.load import is_marian_folder, load
from pellucid.bundle import find_bundle
from pellucid.core.errors import DataError
from pellucid.core.files import MANIFEST_NAME
from pellucid.core.texts import counted
from pellucid.decoding.translator import Translator
from pellucid.decoding.warnings import in_words, kinds_of
from pellucid.text.check.rules import far_lengths, scan_pairs
from pellucid.text.check.scan import LINE_PROBLEMS
from pellucid.text.corpus.cells import ONE_LINE

_log = logging.getLogger("pellucid")
Batch = TypeVar("Batch")
_Columns = dict[str, list[str] | np.ndarray]


@dataclasses.dataclass(frozen=True)
class Translate:
    """Adds the translation of a column, and its score if ``score`` names a column for it.

    ``warnings`` names one for the kinds of ``Translation.warnings`` of each row, separated by
    spaces; without it each batch logs how many of its rows have which.

    ``path`` is a bundle or a run folder that every machine can read. Options are those of
    ``pellucid.load`` and ``Translator.translate``; None leaves the choice to the model. An empty
    cell, or none, gives an empty translation with the score 0. A batch is searched as one list, so
    the same batch gives the same text wherever it is translated.

    Raises DataError for a column that is missing or not text, and as ``pellucid.load`` does.
    """

    path: str
    column: str = "text"
    into: str = "translation"
    score: str | None = None
    beam_size: int | None = None
    length_penalty: float | None = None
    max_length: int | None = None
    split: bool | None = None
    engine: EngineName = "auto"
    device: Device = "auto"
    compute_type: ComputeType | None = None
    warnings: str | None = None

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its new columns; of an iterator of batches, an iterator."""
        return _with_columns(batch, self._added)

    def _added(self, batch: Any) -> _Columns:
        texts = _texts(batch, self.column)
        translator = _open(os.getpid(), self.path, self.engine, self.device, self.compute_type)

        # The numbers of rows in a batch would say nothing in a log.
        found = translator.without_log().translate(
            texts,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            max_length=self.max_length,
            split=self.split,
        )

        added: _Columns = {self.into: [each.text for each in found]}
        if self.score is not None:
            added[self.score] = np.array([each.score for each in found], float)

        kinds = [kinds_of(each.warnings) for each in found]
        if self.warnings is not None:
            added[self.warnings] = [" ".join(sorted(each)) for each in kinds]
        elif any(kinds):
            counts = Counter(kind for each in kinds for kind in each)
            _log.warning(
                "%s, with warnings: %s", counted(len(found), "translation"), in_words(counts)
            )
        return added


@dataclasses.dataclass(frozen=True)
class Score:
    """Adds the log-probability in nats that a model gives each target, stop included.

    ``into`` is the summed log-probability, and ``perplexity`` its perplexity for each token.

    Raises as ``Translate`` and ``Translator.score`` do.
    """

    path: str
    source: str = "source"
    target: str = "target"
    into: str = "log_prob"
    perplexity: str | None = None
    device: Device = "auto"

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its new columns; of an iterator of batches, an iterator."""
        return _with_columns(batch, self._added)

    def _added(self, batch: Any) -> _Columns:
        # Only torch gives probabilities of given words.
        translator = _open(os.getpid(), self.path, "torch", self.device, "float32")
        found = translator.score(_texts(batch, self.source), _texts(batch, self.target))
        log_probs = [sum(each.token_log_probs) for each in found]
        added: _Columns = {self.into: np.array(log_probs, float)}
        if self.perplexity is not None:
            added[self.perplexity] = np.array([each.perplexity for each in found], float)
        return added


@dataclasses.dataclass(frozen=True)
class Check:
    """Adds the problems of each pair, by the names of ``pellucid check`` with spaces between.

    What takes the whole corpus is not seen in a batch: repeated pairs, misalignment, and the usual
    ratio of lengths of two languages. ``usual_ratio`` states that: characters of the source
    for each of the target.

    Raises DataError for a column that is missing or not text.
    """

    source: str = "source"
    target: str = "target"
    into: str = "problems"
    usual_ratio: float = 1.0

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its new column; of an iterator of batches, an iterator."""
        return _with_columns(batch, self._added)

    def _added(self, batch: Any) -> _Columns:
        sources, targets = _texts(batch, self.source), _texts(batch, self.target)
        return {self.into: problems_of_pairs(sources, targets, self.usual_ratio)}


def problems_of_pairs(
    sources: Sequence[str], targets: Sequence[str], usual_ratio: float
) -> list[str]:
    """The problems of each pair as ``Check`` writes them; line ends count as spaces."""
    problems: list[list[str]] = [[] for _ in sources]
    if not sources:
        return []

    sides = ([text.translate(ONE_LINE) for text in side] for side in (sources, targets))
    source, target, is_copy = scan_pairs(*sides)
    for problem in LINE_PROBLEMS:
        for row in np.union1d(source.problems[problem], target.problems[problem]):
            problems[int(row)].append(problem)

    # The problems of pairs are for those with text on both sides, as in ``pellucid check``.
    is_far = far_lengths(source.lengths, target.lengths, float(np.log(usual_ratio)))
    for row, found in enumerate(problems):
        if "empty" in found:
            continue
        if is_copy[row]:
            found.append("source_equals_target")
        if is_far[row]:
            found.append("length_ratio")
    return [" ".join(found) for found in problems]


def _with_columns(given: Batch, added: Callable[[Any], _Columns]) -> Batch:
    """A batch of any kind with columns added."""
    changed: Batch = _changed(given, added)
    return changed


def _changed(batch: Any, added: Callable[[Any], _Columns]) -> Any:
    # First, as pandas and pyarrow have iterators of their own.
    if isinstance(batch, Iterator):
        return (_changed(each, added) for each in batch)

    kind = type(batch).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(batch, "assign"):  # a frame, and no single column
        return batch.assign(**{name: _array(column) for name, column in added(batch).items()})

    if kind == "pyarrow":
        for name, column in added(batch).items():
            values = _arrow_array(column)
            if name in batch.schema.names:
                batch = batch.set_column(batch.schema.names.index(name), name, values)
            else:
                batch = batch.append_column(name, values)
        return batch

    if isinstance(batch, Mapping):
        # Arrays for arrays (Ray), lists for lists (datasets).
        is_numpy = any(isinstance(column, np.ndarray) for column in batch.values())
        columns = {
            name: _array(column) if is_numpy else _array(column).tolist()
            for name, column in added(batch).items()
        }
        return {**batch, **columns}

    raise DataError(
        "a batch must be a dictionary of columns, a frame of pandas, a table of pyarrow, or an"
        f" iterator of these, got {type(batch).__name__}"
    )


def _array(column: list[str] | np.ndarray) -> np.ndarray:
    """Text as objects: NumPy's own type of text pads every cell to the longest."""
    return column if isinstance(column, np.ndarray) else np.array(column, object)


def _arrow_array(column: list[str] | np.ndarray) -> Any:
    import pyarrow

    is_number = isinstance(column, np.ndarray)
    return pyarrow.array(column, pyarrow.float64() if is_number else pyarrow.string())


def _texts(batch: Any, name: str) -> list[str]:
    """A column as a list of texts; a cell without a value is an empty text."""
    try:
        column = batch[name]
    except (KeyError, IndexError):
        raise DataError(f"there is no column {name} in the batch") from None
    if column is None or isinstance(column, str | bytes | numbers.Number):
        raise DataError(
            f"column {name} must hold a list of texts, got {type(column).__name__}: a batch has"
            " several rows",
            hint="with Hugging Face's datasets, dataset.map(..., batched=True)",
        )

    # pyarrow has values of its own, which become Python's here; pandas has several for no value.
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    if hasattr(column, "isna"):
        values = [None if no else each for each, no in zip(values, column.isna(), strict=True)]
    texts = []
    for row, value in enumerate(values):
        if isinstance(value, str):
            texts.append(str(value))
        elif value is None or (isinstance(value, float) and math.isnan(value)):
            texts.append("")  # pandas writes a missing cell as NaN
        else:
            raise DataError(f"column {name}, row {row}: must be text, got {str(value)[:60]!a}")
    return texts


_opening = threading.Lock()


def _open(
    process: int, path: str, engine: EngineName, device: Device, compute_type: ComputeType | None
) -> Translator:
    """The translator of this process for a recipe, opened at the first call.

    It is opened again when the path leads to another model: after the folder was replaced, a run
    has a better bundle, or the current folder changed. Raises as ``pellucid.load`` does.
    """
    # Without the lock, threads that begin together would each open one.
    with _opening:
        return _opened(process, path, _identity(path), engine, device, compute_type)


def _identity(path: str) -> tuple[str, str]:
    """The place of the model at ``path``, and a hash that changes with its files.

    That of a bundle is the SHA-256 of its manifest, which holds the hashes of the other files. A
    model of the Hub stays as it was first fetched.
    """
    if not isinstance(path, str | Path) or is_hub_address(path):
        return "", ""  # ``load`` refuses what is no path
    folder = Path(path).resolve()
    if is_marian_folder(folder):  # which has no manifest
        stats = [(file.name, file.stat()) for file in sorted(folder.iterdir())]
        stamps = [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
        return str(folder), hashlib.sha256(repr(stamps).encode()).hexdigest()

    bundle = find_bundle(folder)
    try:
        return str(bundle), hashlib.sha256((bundle / MANIFEST_NAME).read_bytes()).hexdigest()
    except OSError:
        return str(bundle), ""  # ``load`` says what is wrong with it


@functools.lru_cache(maxsize=4)
def _opened(
    _process: int,
    path: str,
    _identity: tuple[str, str],
    engine: EngineName,
    device: Device,
    compute_type: ComputeType | None,
) -> Translator:
    """``_process`` is part of the key: a forked process has none of the threads of its parent."""
    return load(path, engine, device, compute_type)
