"""The engine that can do everything: our own searches over our own model."""

from collections.abc import Sequence
from typing import Literal

import torch

from pellucid.decoding.batching import inference, is_on_cpu, token_batches
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine
from pellucid.decoding.pipeline import search_lines
from pellucid.decoding.protocols import Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis
from pellucid.decoding.watch import SearchWatcher
from pellucid.decoding.workers import run_tasks, worker_count


class TorchEngine(Engine):
    """Searches with PyTorch, in batches of lines of like length."""

    def __init__(
        self,
        reason: str = "it was asked for",
        compute_type: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        """``compute_type`` is what the matrices of the model's blocks were rounded to."""
        self._reason = reason
        self._compute_type = compute_type

    @property
    def name(self) -> str:
        """Always ``torch``."""
        return "torch"

    @property
    def reason(self) -> str:
        """Why no other engine answers."""
        return self._reason

    def signature(self, settings: DecodingConfig) -> str:  # noqa: ARG002  # the same for all
        """``torch``, or ``torch/bfloat16``."""
        is_wide = self._compute_type == "float32"
        return self.name if is_wide else f"{self.name}/{self._compute_type}"

    def follow(self, bundle: Translatable) -> None:
        """Nothing to do: it computes with the model itself."""

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """The longest lines first, a batch on each thread that PyTorch may use.

        A watcher that wants the steps gets those of one batch after the other. Raises as the
        searches do.
        """
        wants_steps = watcher is not None and watcher.wants_steps
        workers = worker_count() if is_on_cpu(bundle.model) and not wants_steps else 1
        width = max(settings.beam_size, settings.n_best)
        lengths = [len(line.source_ids) for line in lines]
        batches = token_batches(lengths, settings.batch_tokens // width, at_least=workers)

        def search_batch(batch: Sequence[int]) -> list[list[Hypothesis]]:
            with torch.inference_mode():  # holds for one thread
                return search_lines([lines[index] for index in batch], bundle, settings, watcher)

        results: dict[int, list[Hypothesis]] = {}
        with inference(bundle.model):
            for batch, found in run_tasks(search_batch, list(batches), workers):
                results.update(zip(batch, found, strict=True))
        return [results[index] for index in range(len(lines))]
