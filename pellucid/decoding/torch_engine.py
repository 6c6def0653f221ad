"""The engine that supports every setting: Pellucid's own searches over its own model.

The first search imports torch, so an engine that only falls back on this one does not need it.
"""

from collections.abc import Sequence
from typing import Literal

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine, SearchWatcher, Translatable
from pellucid.decoding.requests import ReadLine
from pellucid.decoding.result import Hypothesis


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
        """Why no other engine was chosen."""
        return self._reason

    def signature(self, settings: DecodingConfig) -> str:  # noqa: ARG002  # the same for all
        """``torch``, or ``torch/bfloat16``."""
        is_wide = self._compute_type == "float32"
        return self.name if is_wide else f"{self.name}/{self._compute_type}"

    def follow(self, bundle: Translatable) -> None:
        """Do nothing, as this engine computes with the model itself."""

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """Search with Pellucid's own searches. Raises as they do."""
        from pellucid.decoding.search.batches import search_batches

        return search_batches(lines, bundle, settings, watcher)
