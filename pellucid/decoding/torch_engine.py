"""The engine that searches with PyTorch, and can do everything."""

from collections.abc import Sequence
from typing import Literal

from pellucid.core.errors import MissingExtraError
from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.engine import Engine, SearchWatcher
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis


class TorchEngine(Engine):
    """Searches with PyTorch, in batches of lines of like length."""

    def __init__(
        self,
        reason: str = "it was named",
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

    def thread_count(self, settings: DecodingConfig) -> int:  # noqa: ARG002  # the same for all
        """The threads of PyTorch."""
        # imported here for the same reason as in ``search``
        import torch

        return torch.get_num_threads()

    def follow(self, bundle: Translatable) -> None:
        """Do nothing, as this engine computes with the model itself."""

    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """Search with Pellucid's own searches.

        Raises as they do, and MissingExtraError without torch.
        """
        # imported here, as it imports torch, which takes a second and 200 MB
        try:
            from pellucid.decoding.search.search import search_lines
        except ModuleNotFoundError as error:
            purpose = f"this search ({self._reason})"
            raise MissingExtraError.of_training(error, purpose) or error from None

        return search_lines(lines, bundle, settings, watcher)
