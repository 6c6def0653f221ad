"""The engine ``kernels``: whole searches in 8 bits, a batch on each thread."""

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pellucid.backends.capability import KERNELS, shown_setting
from pellucid.backends.copied_engine import CopiedEngine, ask, balanced_batches, length_refusals
from pellucid.backends.kernels.library import BOUNDS, Library, Model, Search, installed_library
from pellucid.backends.kernels.opening import open_model
from pellucid.backends.kernels.weights import MOST_POSITIONS, Numbers
from pellucid.bundle import Bundle
from pellucid.core.errors import PellucidError
from pellucid.core.system import thread_count
from pellucid.core.texts import counted
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis, make_hypothesis

_BATCH_TOKENS = 2560
"""Source tokens times beams of a batch: memory for the states of some hundred sentences."""
_MOST_BEAM = 64


@functools.lru_cache(maxsize=64)
def setting_refusals(settings: DecodingConfig, is_numbered: bool) -> tuple[str, ...]:
    """Everything in ``settings`` that the kernels do not support.

    ``is_numbered``: the kernels read its positions from a table, which ends, where the model's own
    positions go on.
    """
    problems = [shown_setting(name, getattr(settings, name)) for name in KERNELS.lacking(settings)]
    if settings.beam_size > _MOST_BEAM:
        problems.append(f"beam_size={settings.beam_size}, as it has at most {_MOST_BEAM} beams")
    lengths = length_refusals(settings, MOST_POSITIONS) if is_numbered else []
    return (*problems, *lengths)


def open_kernels(bundle: Bundle, reason: str) -> "KernelEngine":
    """The engine for a bundle, by the installed library.

    Raises BundleError for a model that it cannot express, or that fails its check, PellucidError
    if pellucid-kernels is not installed or of another release.
    """
    return KernelEngine(bundle, installed_library(), reason)


class KernelEngine(CopiedEngine):
    """Searches a Transformer in 8 bits with the library of pellucid-kernels.

    Greedy and beam search are Pellucid's own, step by step; log-probabilities are those of the
    rounded model, so translations are close to those of float32, and not always equal.
    """

    def __init__(self, bundle: Bundle, library: Library, reason: str) -> None:
        """Raises BundleError as ``open_model`` does."""
        super().__init__(bundle)
        self._library = library
        self._reason = reason
        self._model: Model = open_model(bundle, library)

    @property
    def name(self) -> str:
        """Always ``kernels``."""
        return "kernels"

    @property
    def reason(self) -> str:
        """Why this engine was chosen, and how it computes."""
        workers = counted(thread_count(), "worker")
        return f"{self._reason}; int8 by {self._model.instructions}, {workers}"

    def signature(self, settings: DecodingConfig) -> str:  # noqa: ARG002  # the same for all
        """``kernels/int8``; the instructions change no number."""
        return f"{self.name}/int8"

    def thread_count(self, settings: DecodingConfig) -> int:  # noqa: ARG002  # the same for all
        """One thread for each batch that is searched at a time."""
        return thread_count()

    @property
    def _positions(self) -> int | None:
        is_numbered = self._bundle.max_length is None and self._model.position_count is not None
        return MOST_POSITIONS if is_numbered else None

    def _setting_refusals(self, settings: DecodingConfig) -> Sequence[str]:
        return setting_refusals(settings, self._positions is not None)

    def find(
        self,
        lines: Sequence[ReadLine],
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """All lines in batches of similar length, one on each thread that torch may use.

        A ``watcher`` can end the search between two batches, not within one.
        """
        lengths = [len(line.source_ids) for line in lines]
        limits = length_limits(lengths, settings, self._bundle.max_length)
        penalties = _penalties(settings, max(limits, default=0))
        most = min(settings.batch_tokens, _BATCH_TOKENS) // settings.beam_size
        workers = thread_count()
        batches = balanced_batches(lengths, most, workers)
        model = self._model  # this one to the end, also if another thread converts again

        def search_batch(batch: Sequence[int]) -> list[list[Hypothesis]]:
            """The hypotheses of the lines with these numbers."""
            ask(watcher)
            found = model.search(
                _search(
                    [lines[index].source_ids for index in batch],
                    [limits[index] for index in batch],
                    penalties,
                    settings,
                )
            )
            if not all(found):
                raise PellucidError(
                    "no translation is possible: the model rules out every token",
                    hint="look for infinity in its weights",
                )
            return [
                [make_hypothesis(ids, log_probs, settings.penalty) for ids, log_probs in each]
                for each in found
            ]

        results: list[list[Hypothesis]] = [[] for _ in lines]
        for batch, found in zip(batches, _on_threads(search_batch, batches, workers), strict=True):
            for index, hypotheses in zip(batch, found, strict=True):
                results[index] = hypotheses
        return results

    def _convert_again(self) -> None:
        self._model = open_model(self._bundle, self._library)

    def _forget_threads(self) -> None:
        """It has none between two searches."""


def _on_threads(
    function: Callable[[Sequence[int]], list[list[Hypothesis]]],
    batches: Sequence[Sequence[int]],
    workers: int,
) -> list[list[list[Hypothesis]]]:
    """The result of each batch, in order; the library lets other threads run meanwhile."""
    if min(workers, len(batches)) < 2:
        return [function(batch) for batch in batches]
    with ThreadPoolExecutor(workers, thread_name_prefix="pellucid-kernels") as pool:
        return list(pool.map(function, batches))


def _penalties(settings: DecodingConfig, longest: int) -> Numbers:
    """The divisor of a log-probability by length; no hypothesis has length 0."""
    lengths = range(1, longest + 3)
    return np.array([1.0, *(settings.penalty(length) for length in lengths)], np.float32)


def _search(
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    penalties: Numbers,
    settings: DecodingConfig,
) -> Search:
    beam_size = settings.beam_size
    bound = "at the limit" if settings.length_penalty >= 0 else "at the next token"
    if settings.stop_bound == "current":
        bound = "now"
    return Search(
        sources=sources,
        limits=limits,
        penalties=penalties,
        beam_size=beam_size,
        kept=beam_size if settings.stop_bound == "current" else settings.n_best,
        n_best=settings.n_best,
        bound=BOUNDS.index(bound),
        # patience ends a beam search, and a greedy one never
        enough=settings.patience * beam_size if beam_size > 1 else 1.0,
        free_stop=settings.forced_stop == "free",
    )
