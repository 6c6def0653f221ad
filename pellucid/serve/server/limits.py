"""The limits of connections, requests and waiting times; each is finite."""

import math
from typing import Self

import pydantic

from pellucid.core.config import Config


class ServerLimits(Config):
    """The limits of the server, whatever the application behind it."""

    model_config = pydantic.ConfigDict(allow_inf_nan=True)  # `_check` refuses them, all at once

    max_body_bytes: int = 1 << 20
    """Bytes of a request's body."""
    max_file_bytes: int = 16 << 20
    """Bytes of the body of an upload."""
    max_connections: int = 1024
    """Open connections of one worker process; one more is answered with 503."""
    max_request_seconds: float = 30.0
    """From the whole request to the whole answer; then 504."""
    max_receipt_seconds: float = 5.0
    """From the first byte of a request to its last, and for a client that does not read."""
    max_upload_seconds: float = 120.0
    """For an upload of ``max_file_bytes`` to arrive; smaller ones have their share of it."""
    max_idle_seconds: float = 5.0
    """Between two requests on one connection."""
    max_grace_seconds: float = 20.0
    """For running requests when the server has to stop."""
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
    def _check_finite(self) -> Self:
        problems = [
            f"{name} must be finite and above 0, got {value}"
            for name, value in self.model_dump().items()
            if not (math.isfinite(value) and value > 0)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self
