"""The engine that can do everything: our own searches over our own model."""

from collections.abc import Sequence

from pellucid.decoding.batching import inference, token_batches
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine
from pellucid.decoding.pipeline import search_lines
from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.watch import SearchWatcher


class TorchEngine(Engine):
    """Searches with PyTorch, in batches of lines of like length."""

    def __init__(self, reason: str = "it was asked for") -> None:
        self._reason = reason

    @property
    def name(self) -> str:
        """Always ``torch``."""
        return "torch"

    @property
    def reason(self) -> str:
        """Why no other engine answers."""
        return self._reason

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """Batch by batch, the longest lines first. Raises as the searches do."""
        results: dict[int, list[Hypothesis]] = {}
        width = max(settings.beam_size, settings.n_best)
        lengths = [len(line.source_ids) for line in lines]
        for batch in token_batches(lengths, settings.batch_tokens // width):
            with inference(bundle.model):
                chosen = [lines[index] for index in batch]
                found = search_lines(chosen, bundle, settings, watcher)
            results.update(zip(batch, found, strict=True))
        return [results[index] for index in range(len(lines))]
