"""The likeliest tokens of a run's teachers at every position of its training text.

``teacher_tokens`` computes them once, before the first update, or finds them in the cache. An
update then costs hardly more than one without a teacher, however many teachers there are.
``AskedTeachers`` computes those of single batches, for a dry run.
"""

import dataclasses
import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from pellucid.core.errors import CorruptError
from pellucid.core.files import open_or_make, verify_folder
from pellucid.core.phases import begin_phase
from pellucid.core.run_names import DATA_FOLDER
from pellucid.core.special import PAD_ID
from pellucid.decoding.engine import token_batches
from pellucid.model.seq2seq import SequenceModel
from pellucid.text.batching import TopTokens, collate
from pellucid.text.corpus.rows import FileIds, Indices
from pellucid.text.corpus.store import TokenStore
from pellucid.training.config import RunConfig
from pellucid.training.data import TokensOfPairs, TrainingData
from pellucid.training.objective import Teacher
from pellucid.training.precision import Precision, autocast

_VERSION = 1
"""Version of the files and of how they are computed; others are not found, and computed again."""
_IDS, _LOGITS = "tokens.ids", "tokens.logits"
_ID_TYPE, _LOGIT_TYPE = "<u4", "<f4"
_PAIRS_AT_ONCE = 4096
_ROWS_AT_ONCE = 1024
"""Positions whose logits over the vocabulary are held at once."""
_TELL_EVERY = 100_000
"""Pairs between two lines of progress."""

_log = logging.getLogger("pellucid")


AskTeachers = Callable[
    [TrainingData, Sequence[SequenceModel], RunConfig, Path, Precision], TokensOfPairs
]
"""Has the arguments of ``teacher_tokens``."""


@dataclasses.dataclass(frozen=True)
class TeacherTokens:
    """The k likeliest tokens at each position of the targets of a store, and their logits."""

    ids: FileIds
    logits: FileIds
    begins: Indices
    """At how many positions the pairs before each one end; (pair + 1)."""
    top_k: int

    @classmethod
    def open(cls, folder: Path, store: TokenStore, top_k: int) -> Self:
        """Open the tokens in ``folder``. Raises InputMissingError, or CorruptError if damaged."""
        verify_folder(folder)
        begins = np.zeros(len(store) + 1, dtype=np.int64)
        np.cumsum(store.target_lengths.astype(np.int64) + 1, out=begins[1:])  # one more for EOS

        found = cls(
            FileIds(folder / _IDS, _ID_TYPE), FileIds(folder / _LOGITS, _LOGIT_TYPE), begins, top_k
        )
        if not len(found.ids) == len(found.logits) == int(begins[-1]) * top_k:
            raise CorruptError(f"{folder} does not fit the training text")
        return found

    def of(self, pairs: Indices) -> TopTokens:
        """The tokens of these rows of the store, one pair after the other."""
        begins = (self.begins[pairs] * self.top_k).tolist()
        ends = (self.begins[pairs + 1] * self.top_k).tolist()

        # A read for each pair, as of a store: the pairs of a batch lie anywhere in the file.
        ids, logits = (
            np.concatenate(
                [file.read(begin, end - begin) for begin, end in zip(begins, ends, strict=True)]
            ).reshape(-1, self.top_k)
            for file in (self.ids, self.logits)
        )
        return TopTokens(torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(logits))


class _Reader:
    """Teachers that read the targets of a run's store."""

    def __init__(
        self,
        data: TrainingData,
        models: Sequence[SequenceModel],
        config: RunConfig,
        precision: Precision,
    ) -> None:
        self.store, self._models, self._precision = data.store, models, precision
        self.top_k = min(config.training.teacher_top_k, data.target_tokenizer.vocabulary_size)
        self._batch_tokens = config.training.batch_tokens

    def write(self, folder: Path) -> None:
        """Write the tokens of all pairs, in the order of the store."""
        count = len(self.store)
        with (folder / _IDS).open("wb") as ids, (folder / _LOGITS).open("wb") as logits:
            for first in range(0, count, _PAIRS_AT_ONCE):
                if first and first % _TELL_EVERY < _PAIRS_AT_ONCE:
                    _log.info("the teacher has read %s of %s pairs", f"{first:,}", f"{count:,}")
                found = self.tokens_of(np.arange(first, min(first + _PAIRS_AT_ONCE, count)))
                for file, each in zip((ids, logits), found, strict=True):
                    file.write(each.tobytes())

    def tokens_of(self, pairs: Indices) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
        """The ids (position, k) and the logits (position, k) of some pairs, in their order."""
        lengths = self.store.target_lengths[pairs].astype(np.int64) + 1
        begins = np.cumsum(lengths) - lengths
        ids = np.empty((int(lengths.sum()), self.top_k), dtype=_ID_TYPE)
        logits = np.empty(ids.shape, dtype=_LOGIT_TYPE)

        # Pairs of similar length go through the teacher together, for little padding.
        longer = self.store.longer_lengths[pairs].tolist()
        for places in token_batches(longer, self._batch_tokens):
            found = self._read(pairs[places])
            positions = np.concatenate(
                [np.arange(begins[each], begins[each] + lengths[each]) for each in places]
            )
            ids[positions], logits[positions] = found.ids.numpy(), found.logits.numpy()
        return ids, logits

    @torch.no_grad()
    def _read(self, pairs: Indices) -> TopTokens:
        """The tokens of one batch."""
        device = next(self._models[0].parameters()).device
        batch = collate(self.store, pairs).to(device)
        flat = batch.labels.view(-1)
        real = (flat != PAD_ID).nonzero().view(-1)
        with autocast(self._precision, device.type):
            rows = Teacher(self._models, share=1.0, temperature=1.0).rows(batch, real)

        # The logits are compared with each other, so they are computed in the teacher's own
        # precision.
        weight = rows.weight
        found = [
            functional.linear(hidden.to(weight.dtype), weight, rows.bias).topk(self.top_k)
            for hidden in torch.split(rows.hidden, _ROWS_AT_ONCE)
        ]
        ids = torch.cat([each.indices for each in found])
        return TopTokens(ids.cpu(), torch.cat([each.values for each in found]).float().cpu())


def teacher_tokens(
    data: TrainingData,
    models: Sequence[SequenceModel],
    config: RunConfig,
    run: Path,
    precision: Precision,
) -> TeacherTokens:
    """The ``training.teacher_top_k`` likeliest tokens by ``models``, found or computed.

    They lie in the cache of the tokenized text, or in the run folder, named by a hash over what
    decides them. Afterwards ``models`` lie on the CPU: they are not asked again. Raises WriteError.
    """
    reader = _Reader(data, models, config, precision)
    teachers = list(config.training.teacher_manifest)
    recipe = [_VERSION, data.fingerprint, teachers, reader.top_k, precision]
    fingerprint = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()
    cache = Path(config.data.cache) if config.data.cache else run / DATA_FOLDER
    folder = cache / f"teacher-{fingerprint[:32]}"

    def compute(path: Path) -> None:
        begin_phase("computing the teacher's likeliest tokens")
        reader.write(path)

    tokens = open_or_make(
        folder,
        lambda: TeacherTokens.open(folder, data.store, reader.top_k),
        compute,
        {"fingerprint": fingerprint},
        what="the teacher's likeliest tokens",
        otherwise="asking the teacher again",
    )

    for model in models:
        model.cpu()
    return tokens


class AskedTeachers:
    """The likeliest tokens of the pairs that are asked for, computed then, and timed.

    A dry run needs them for a few batches only.
    """

    def __init__(
        self,
        data: TrainingData,
        models: Sequence[SequenceModel],
        config: RunConfig,
        _run: Path,
        precision: Precision,
    ) -> None:
        """From the arguments of ``teacher_tokens``; nothing is written to the run folder."""
        self._reader = _Reader(data, models, config, precision)
        self.seconds = 0.0
        """How long the teachers have read so far."""
        self._positions = 0

    def of(self, pairs: Indices) -> TopTokens:
        """The tokens of these rows of the store, one pair after the other."""
        began = time.perf_counter()
        ids, logits = self._reader.tokens_of(pairs)
        self.seconds += time.perf_counter() - began
        self._positions += len(ids)
        return TopTokens(torch.from_numpy(ids.astype(np.int64)), torch.from_numpy(logits))

    def seconds_of_all(self) -> float:
        """About how many seconds the teachers take for all pairs; they must have read some."""
        store = self._reader.store
        positions = int(store.target_lengths.sum(dtype=np.int64)) + len(store)  # one for each EOS
        return self.seconds * positions / self._positions
