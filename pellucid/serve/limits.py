"""The limits of requests, connections and waiting times; each is finite."""

import math
from typing import Self

import pydantic

from pellucid.core.config import Config


class Limits(Config):
    """What the server takes at most. ``GET /v1/limits`` returns it; options change it."""

    model_config = pydantic.ConfigDict(allow_inf_nan=True)  # `_check` refuses them, all at once

    max_body_bytes: int = 1 << 20
    """Bytes of a request's body."""
    max_text_chars: int = 5000
    """Characters of one text."""
    max_texts: int = 64
    """Texts in one request."""
    max_source_tokens: int = 512
    """Tokens of one sentence; what is beyond is cut, and the answer says so."""
    max_beam_size: int = 16
    """Hypotheses followed at a time."""
    max_n_best: int = 16
    """Translations given for one text."""
    max_new_tokens: int = 1024
    """Tokens of the translation of one sentence."""
    max_queue: int = 256
    """Requests that wait for one model; one more is answered with 429."""
    max_batch_sentences: int = 64
    """Sentences translated at a time."""
    max_inspect_tokens: int = 128
    """Tokens of source and of target that are looked into."""
    max_inspect_values: int = 500_000
    """Numbers of one look inside; as JSON, about 10 bytes each."""
    max_connections: int = 1024
    """Open connections of one worker process; one more is answered with 503."""
    max_request_seconds: float = 30.0
    """From the whole request to the whole answer; then 504."""
    max_receipt_seconds: float = 5.0
    """From the first byte of a request to its last, and for a client that does not read."""
    max_idle_seconds: float = 5.0
    """Between two requests on one connection."""
    max_grace_seconds: float = 20.0
    """For running requests when the server is asked to stop."""
    max_stuck_seconds: float = 30.0
    """Without a step of a busy model before ``/readyz`` says 503."""
    max_header_bytes: int = 32 << 10
    """Bytes of all headers of a request."""
    max_headers: int = 100
    """Headers of a request."""
    max_url_bytes: int = 8 << 10
    """Bytes of a request's target."""
    max_json_depth: int = 32
    """Arrays and objects within each other."""
    max_json_values: int = 10_000
    """Numbers, strings, arrays and objects in one body."""

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        faults = [
            f"{name} must be finite and above 0, got {value}"
            for name, value in self.model_dump().items()
            if not (math.isfinite(value) and value > 0)
        ]
        if self.max_n_best > self.max_beam_size:
            faults.append(
                f"max_n_best must be at most max_beam_size, got max_n_best={self.max_n_best}"
                f" and max_beam_size={self.max_beam_size}"
            )
        if faults:
            raise ValueError("; ".join(faults))
        return self
