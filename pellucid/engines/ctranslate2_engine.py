"""The fast engine: CTranslate2 searches, in our batches, and we score what it found."""

import logging
import threading
from collections.abc import Sequence

from pellucid.bundle import Bundle
from pellucid.core.errors import ConfigError
from pellucid.decoding.config import DecodingConfig, length_limits
from pellucid.decoding.engine import Engine
from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.watch import SearchWatcher
from pellucid.engines.batches import balanced_batches
from pellucid.engines.ctranslate2_search import Row, Search
from pellucid.engines.model_watch import ModelWatch
from pellucid.engines.refusals import line_refusals, setting_refusals
from pellucid.engines.workers import Workers, open_changed
from pellucid.interop.ctranslate2_export import vocabulary_pieces

_log = logging.getLogger("pellucid.engines")

_BATCH_TOKENS = 2560
"""Source tokens times beams of a batch: the fastest of 1280 to 20480 on two cores."""


class Ctranslate2Engine(Engine):
    """Searches a Transformer with CTranslate2, which runs on the CPU and needs no torch.

    Its beam search is ours but for the lengths: it compares finished hypotheses by their mean
    log-probability, so all of them are taken and compared anew under our length penalty. Log
    p of each token comes from forced decoding, or from the greedy search itself. Where a
    translation reaches its maximum length, ours compares the stops of all beams; here the likeliest
    two are given theirs (n_best + 1), as forced decoding of a whole beam can take longer than
    searching with torch.
    """

    def __init__(self, bundle: Bundle, workers: Workers, reason: str) -> None:
        self._bundle = bundle
        self._workers = workers
        self._reason = reason
        self._watch: ModelWatch | None = None
        self._lock = threading.Lock()
        self._sources = vocabulary_pieces(bundle.source_tokenizer)
        self._targets = vocabulary_pieces(bundle.target_tokenizer)
        self._target_ids = {piece: id_ for id_, piece in enumerate(self._targets)}

    @property
    def name(self) -> str:
        """Always ``ctranslate2``."""
        return "ctranslate2"

    @property
    def reason(self) -> str:
        """Why it answers, and how it computes."""
        return f"{self._reason}; {self._workers.description}"

    def signature(self, settings: DecodingConfig) -> str:  # noqa: ARG002  # the same for all
        """``ctranslate2/`` and the type in which it computes."""
        return f"{self.name}/{self._workers.compute_type}"

    def follow(self, bundle: Translatable) -> None:
        """From now on each search first sees whether the model was changed."""
        with self._lock:
            if self._watch is None:
                self._watch = ModelWatch(bundle.model)

    def refusals(
        self,
        settings: DecodingConfig,
        lines: Sequence[ReadLine] = (),
        watcher: SearchWatcher | None = None,
    ) -> list[str]:
        """Everything asked for that it cannot do, in words; empty if it can do it."""
        faults = setting_refusals(settings, len(self._targets)) + line_refusals(lines)
        if watcher is not None and watcher.wants_steps:
            faults.append("a search that is watched step by step")
        return faults

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """All lines at once, cut into batches for all workers.

        A ``watcher`` can end the search between two batches, not within one. Raises ConfigError
        naming everything that was asked for and that it cannot do.
        """
        faults = self.refusals(settings, lines, watcher)
        if faults:
            raise ConfigError(
                f"the engine ctranslate2 cannot do {'; '.join(faults)}",
                hint="take the engine auto or torch",
            )
        workers = self._current_workers()
        lengths = [len(line.source_ids) for line in lines]
        limits = length_limits(lengths, settings, bundle.model.max_length)
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
        found = []
        for batch in batches:
            _ask(watcher)
            found.append((batch, search.start(batch)))
        scored = []
        for batch, finish in found:
            _ask(watcher)
            scored.append((batch, search.start_scoring(batch, finish())))
        results: list[list[Hypothesis]] = [[] for _ in lines]
        for batch, finish_scoring in scored:
            for row, hypotheses in zip(batch, finish_scoring(), strict=True):
                results[row.number] = hypotheses
        return results

    def _current_workers(self) -> Workers:
        """The workers, of a new conversion if the model was changed after the last one."""
        with self._lock:
            if self._watch is None or not self._watch.is_changed():
                return self._workers
            if self._watch.has_other_parts():
                raise ConfigError(
                    "the engine ctranslate2 cannot follow modules that were exchanged or given"
                    " hooks after the model was opened",
                    hint="take the engine auto or torch",
                )
            _log.info("the model was changed and is converted for CTranslate2 again")
            self._workers = open_changed(self._bundle, self._workers.compute_type)
            self._watch = ModelWatch(self._bundle.model)
            return self._workers


def _ask(watcher: SearchWatcher | None) -> None:
    """Let ``watcher`` end the search."""
    if watcher is not None:
        watcher.before_step(0)
