"""The fast engine: CTranslate2 searches batches, and Pellucid scores the hypotheses."""

import functools
import math
import threading
from collections.abc import Sequence

from pellucid.backends.capability import CTRANSLATE2, shown_setting
from pellucid.backends.copied_engine import CopiedEngine, ask, balanced_batches, line_refusals
from pellucid.backends.ctranslate2.search import Row, Search
from pellucid.backends.ctranslate2.support import POSITIONS, vocabulary_pieces
from pellucid.backends.ctranslate2.workers import Workers, open_changed
from pellucid.bundle import Bundle
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import SearchWatcher
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis


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
    if not (math.isfinite(finished) and finished == round(finished)):
        problems.append(
            f"patience={settings.patience} with beam_size={settings.beam_size}, which is no"
            " whole number of hypotheses"
        )

    # the first step has one vocabulary of candidates, of which it takes twice the beam size
    if 2 * settings.beam_size > vocabulary_size:
        problems.append(f"beam_size={settings.beam_size} for {vocabulary_size} target tokens")
    for name in ("max_length", "max_source_tokens"):
        value = getattr(settings, name)
        if value is not None and value >= POSITIONS:
            problems.append(f"{name}={value}, as it numbers {POSITIONS - 1} tokens")

    return tuple(problems)


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

    def refusals(
        self,
        settings: DecodingConfig,
        lines: Sequence[ReadLine] = (),
        watcher: SearchWatcher | None = None,
    ) -> list[str]:
        """Everything in the call that it does not support, in words; empty if it supports all."""
        problems = [*setting_refusals(settings, len(self._targets)), *line_refusals(lines)]
        if lines and not problems:
            problems += self._length_refusals(lines, settings)
        if watcher is not None and watcher.needs_steps:
            problems.append("a search that is watched step by step")
        return problems

    def _length_refusals(self, lines: Sequence[ReadLine], settings: DecodingConfig) -> list[str]:
        """A translation that may be longer than the table of positions, by its source's length."""
        positions = getattr(self._bundle.config, "positions", None)
        if positions not in ("sinusoidal", "sinusoidal_t2t"):
            return []
        lengths = [len(line.source_ids) for line in lines]
        longest = max(length_limits(lengths, settings, self._bundle.max_length))
        if longest < POSITIONS:
            return []
        return [f"a translation of up to {longest} tokens, as it numbers {POSITIONS - 1} tokens"]

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
        self._workers = open_changed(self._bundle, self._workers.compute_type)
        self._has_threads = True  # also in a fork
