"""A bundle opened by CTranslate2: the type that it computes in, and its workers."""

import ctypes
import dataclasses
import sys
import time
from typing import Any

from pellucid.backends import ComputeType
from pellucid.backends.ctranslate2.cache import Convert, converted, converted_for_now
from pellucid.backends.ctranslate2.support import int8_problem, vocabulary_pieces
from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError, MissingExtraError
from pellucid.core.processor import thread_count
from pellucid.core.special import SPECIAL_COUNT

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
        return f"{self.compute_type}, {self.count} worker{'s' if self.count > 1 else ''}"


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


def open_changed(bundle: Bundle, compute_type: ComputeType) -> Workers:
    """Open a model that was changed after it was read: converted for this process alone.

    Raises BundleError for a model that CTranslate2 cannot express, WriteError.
    """
    return _open(bundle, compute_type, converted_for_now)


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
