"""The fast engine: CTranslate2's workers search batches, and Pellucid scores the hypotheses."""

import ctypes
import dataclasses
import functools
import math
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from pellucid.backends import ComputeType
from pellucid.backends.capability import CTRANSLATE2, shown_setting
from pellucid.backends.copied_engine import CopiedEngine, ask, balanced_batches, length_refusals
from pellucid.backends.ctranslate2.cache import Convert, converted, converted_for_now
from pellucid.backends.ctranslate2.search import Row, Search
from pellucid.backends.ctranslate2.support import POSITIONS, int8_problem, vocabulary_pieces
from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.core.special import SPECIAL_COUNT
from pellucid.core.system import thread_count
from pellucid.core.texts import counted
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis

_TRIAL_LINES = 16
_TRIAL_TOKENS = 16
_TRIALS = 3


@dataclasses.dataclass(frozen=True)
class Workers:
    """A model with as many workers as there are cores, each with one thread.

    Batches share nothing, so no worker waits for another; threads that share a batch wait for
    each other at every product. A single sentence is not slower this way on two cores.
    """

    model: Any
    """A ``ctranslate2.Translator``."""
    count: int
    compute_type: ComputeType
    """``float32`` or ``int8``."""
    convert: Convert
    """The function that gave the converted model."""

    def reopened(self, bundle: Bundle) -> "Workers":
        """The same model opened once more, for a fork. Raises as ``open_workers`` does."""
        return _open(bundle, self.compute_type, self.convert)

    def keep(self) -> None:
        """Never free the model. In a fork that would wait forever for threads it does not have."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.model))

    @property
    def description(self) -> str:
        """How it computes, in a few words."""
        return f"{self.compute_type}, {counted(self.count, 'worker')}"


def onnxruntime_is_loaded() -> bool:
    """Whether onnxruntime is loaded: it and CTranslate2 block each other when a process ends."""
    return "onnxruntime" in sys.modules


def open_workers(bundle: Bundle, compute_type: ComputeType) -> Workers:
    """Open ``bundle`` with CTranslate2, converting it first if necessary.

    ``auto`` tries both types on this machine and takes the faster one; float32 where int8 computes
    wrong results. There are as many workers as torch may use threads. Raises MissingExtraError
    without ctranslate2, ConfigError for int8 where its results are wrong, BundleError for a model
    that CTranslate2 cannot express, WriteError.
    """
    problem = int8_problem()
    if compute_type == "int8" and problem:
        raise ConfigError(f"compute_type=int8 {problem}", hint="take float32, or auto")
    if compute_type != "auto":
        return _open(bundle, compute_type)
    if problem:
        return _open(bundle, "float32")
    # measured, as int8 is faster only on processors that have instructions for it
    candidates = [_open(bundle, "float32"), _open(bundle, "int8")]
    seconds = [_seconds_of(each, bundle) for each in candidates]
    return candidates[seconds.index(min(seconds))]


def _open(bundle: Bundle, compute_type: ComputeType, convert: Convert = converted) -> Workers:
    assert compute_type in ("float32", "int8")
    try:
        import ctranslate2
    except ImportError:
        raise MissingExtraError("ctranslate2", "fast", "the engine ctranslate2") from None

    count = thread_count()
    # CTranslate2 has read all files when this returns, so the folder may go afterwards
    with convert(bundle, compute_type) as folder:
        model = ctranslate2.Translator(
            str(folder), compute_type=compute_type, inter_threads=count, intra_threads=1
        )
    return Workers(model, count, compute_type, convert)


def _seconds_of(workers: Workers, bundle: Bundle) -> float:
    """The shortest time of several searches of an artificial batch."""
    pieces = vocabulary_pieces(bundle.source_tokenizer)[SPECIAL_COUNT:]
    batch = [[pieces[index % len(pieces)]] * _TRIAL_TOKENS for index in range(_TRIAL_LINES)]

    seconds = []
    for _ in range(_TRIALS):
        # both types generate the same number of tokens, whatever they predict
        began = time.perf_counter()
        workers.model.translate_batch(
            batch, beam_size=1, max_decoding_length=_TRIAL_TOKENS, min_decoding_length=_TRIAL_TOKENS
        )
        seconds.append(time.perf_counter() - began)
    return min(seconds)


@functools.lru_cache(maxsize=64)
def setting_refusals(settings: DecodingConfig, vocabulary_size: int) -> tuple[str, ...]:
    """Everything in ``settings`` that CTranslate2 does not support, or computes in another way."""
    if settings.beam_size == 1:  # patience ends a beam search, and a greedy one never
        settings = settings.model_copy(update={"patience": 1.0})

    if settings.patience == 1.0:
        # "current" compares with the worst of beam_size finished hypotheses; with patience 1 the
        # search has ended once there are so many
        settings = settings.model_copy(update={"stop_bound": "exact"})

    problems = [
        shown_setting(name, getattr(settings, name)) for name in CTRANSLATE2.lacking(settings)
    ]
    finished = settings.patience * settings.beam_size
    is_whole = math.isfinite(finished) and finished == round(finished)
    if settings.patience >= 1 and not is_whole:
        problems.append(
            f"patience={settings.patience} with beam_size={settings.beam_size}, which is no"
            " whole number of hypotheses"
        )

    # the first step has one vocabulary of candidates, of which it takes twice the beam size
    if 2 * settings.beam_size > vocabulary_size:
        problems.append(f"beam_size={settings.beam_size} for {vocabulary_size} target tokens")
    return (*problems, *length_refusals(settings, POSITIONS))


_BATCH_TOKENS = 2560
"""Source tokens times beams of a batch: the fastest of 1,280 to 20,480 on two cores."""


class Ctranslate2Engine(CopiedEngine):
    """Searches a Transformer with CTranslate2, which runs on the CPU and needs no torch.

    Its beam search differs from Pellucid's in the lengths: it compares finished hypotheses by their
    mean log-probability, so all of them are taken and ranked again with our length penalty. The log
    p of each token comes from forced decoding, or from the greedy search itself. Where a
    translation reaches its maximum length, our search compares the stops of all beams; here only
    the likeliest n_best + 1 are scored with a stop, as forced decoding of a whole beam can take
    longer than searching with torch.
    """

    def __init__(self, bundle: Bundle, workers: Workers, reason: str) -> None:
        super().__init__(bundle)
        self._workers = workers
        self._reason = reason
        self._sources = vocabulary_pieces(bundle.source_tokenizer)
        self._targets = vocabulary_pieces(bundle.target_tokenizer)
        self._target_ids = {piece: id_ for id_, piece in enumerate(self._targets)}
        self._has_threads = True
        self._reopening = threading.Lock()

    @property
    def name(self) -> str:
        """Always ``ctranslate2``."""
        return "ctranslate2"

    @property
    def reason(self) -> str:
        """Why this engine was chosen, and how it computes."""
        return f"{self._reason}; {self._workers.description}"

    def signature(self, settings: DecodingConfig) -> str:  # noqa: ARG002  # the same for all
        """``ctranslate2/`` and the type that it computes in."""
        return f"{self.name}/{self._workers.compute_type}"

    def thread_count(self, settings: DecodingConfig) -> int:  # noqa: ARG002  # the same for all
        """The workers, of one thread each."""
        return self._workers.count

    @property
    def _positions(self) -> int | None:
        kind = getattr(self._bundle.config, "positions", None)
        return POSITIONS if kind in ("sinusoidal", "sinusoidal_t2t") else None

    def _setting_refusals(self, settings: DecodingConfig) -> Sequence[str]:
        return setting_refusals(settings, len(self._targets))

    def find(
        self,
        lines: Sequence[ReadLine],
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """All lines at once, cut into batches for all workers.

        A ``watcher`` can end the search between two batches, not within one.
        """
        workers = self._own_workers()
        lengths = [len(line.source_ids) for line in lines]
        limits = length_limits(lengths, settings, self._bundle.max_length)
        rows = [
            Row(number, [self._sources[id_] for id_ in line.source_ids], limit)
            for number, (line, limit) in enumerate(zip(lines, limits, strict=True))
        ]

        most = min(settings.batch_tokens, _BATCH_TOKENS) // settings.beam_size
        batches = [
            [rows[index] for index in batch]
            for batch in balanced_batches(lengths, most, workers.count)
        ]

        search = Search(workers.model, self._targets, self._target_ids, settings)

        # all batches are queued before the first result is awaited, so no worker is idle
        found = []
        for batch in batches:
            ask(watcher)
            found.append((batch, search.start(batch)))

        # the same for scoring, which starts as soon as a batch is found
        scored = []
        for batch, finish in found:
            ask(watcher)
            scored.append((batch, search.start_scoring(batch, finish())))

        results: list[list[Hypothesis]] = [[] for _ in lines]
        for batch, finish_scoring in scored:
            for row, hypotheses in zip(batch, finish_scoring(), strict=True):
                results[row.number] = hypotheses

        return results

    def _own_workers(self) -> Workers:
        """The workers of this process. A fork opens the model again at its first search."""
        if not self._has_threads:
            # Not the engine's lock: opening may wait for the model's lock, and the thread that
            # reads the model holds that one while it takes the engine's, to watch the model.
            with self._reopening:
                if not self._has_threads:  # no other thread has opened it meanwhile
                    workers = self._workers.reopened(self._bundle)
                    with self._lock:
                        if not self._has_threads:  # nor converted it again
                            self._workers = workers
                            self._has_threads = True
        return self._workers

    def _forget_threads(self) -> None:
        self._workers.keep()
        self._has_threads = False
        self._reopening = threading.Lock()  # a thread of the parent may have held the other

    def _convert_again(self) -> None:
        # for this process alone: the cache is for models as they are stored
        self._workers = _open(self._bundle, self._workers.compute_type, converted_for_now)
        self._has_threads = True  # also in a fork
