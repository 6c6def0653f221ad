"""The limits of translation and inspection, beside those of the server."""

from typing import Self

import pydantic

from pellucid.serve.server.limits import ServerLimits


class Limits(ServerLimits):
    """The limits of the server. ``GET /v1/limits`` returns them; options change them."""

    max_text_chars: int = 5000
    """Characters of one text."""
    max_texts: int = 64
    """Texts in one request."""
    max_source_tokens: int = 512
    """Tokens of one sentence; the rest is cut, and the answer has ``truncated``."""
    max_beam_size: int = 16
    """Beam size."""
    max_n_best: int = 16
    """Translations given for one text."""
    max_new_tokens: int = 1024
    """Tokens of the translation of one sentence."""
    max_queue: int = 256
    """Requests that wait for one model; one more is answered with 429."""
    max_batch_sentences: int = 64
    """Sentences translated at a time."""
    max_documents: int = 16
    """Documents that are kept: those that wait, that are translated, and that are not fetched. One
    that was fetched or has failed gives way to a new one."""
    max_document_chars: int = 1_000_000
    """Characters of the text of one document."""
    max_document_seconds: float = 600.0
    """For the translation of one document, from its turn on, and then for its download."""
    max_document_memory_bytes: int = 512 << 20
    """Bytes of memory in which one document is read and written."""
    max_document_cpu_seconds: int = 60
    """CPU seconds in which one document is read and written, its translation not counted."""
    max_inspect_tokens: int = 128
    """Tokens of source and of target of an inspected sentence."""
    max_inspect_values: int = 500_000
    """Numbers in the answer to one inspection; as JSON, about 10 bytes each."""
    max_live_bytes: int = 32 << 20
    """Bytes of the page that ``/live/NAME`` sends, which holds the whole model."""
    max_stuck_seconds: float = 30.0
    """Without a step of a busy model before ``/readyz`` answers 503."""

    @pydantic.model_validator(mode="after")
    def _check_widths(self) -> Self:
        if self.max_n_best > self.max_beam_size:
            raise ValueError(
                f"max_n_best must be at most max_beam_size, got max_n_best={self.max_n_best}"
                f" and max_beam_size={self.max_beam_size}"
            )
        return self
