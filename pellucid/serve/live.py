"""A served model as the page of ``pellucid export web``, which computes in the reader's browser."""

import dataclasses
import hashlib

from pellucid.core.errors import BundleError
from pellucid.decoding.engine import SearchWatcher
from pellucid.serve.limits import Limits
from pellucid.serve.models import LoadedModel
from pellucid.serve.server.errors import ConflictError


@dataclasses.dataclass(frozen=True)
class LivePage:
    """The page of one model."""

    content: bytes
    tag: str
    """An entity tag: a hash of the content."""


def make_live_page(model: LoadedModel, limits: Limits, watcher: SearchWatcher) -> LivePage:
    """The page of ``model``, with float16 weights and no example.

    Raises ConflictError naming what a page cannot express, or that it would be too large, and what
    the watcher raises.
    """
    # imported here: they import torch, which a server that only translates does without
    from pellucid.backends.web.export import make_page

    watcher.before_step(0)
    try:
        content = make_page(model.bundle, name=model.place.name).encode()
    except BundleError as error:
        raise ConflictError(str(error)) from None
    _require_size(model.place.name, len(content), limits)
    return LivePage(content, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def require_small(model: LoadedModel, limits: Limits) -> None:
    """Raise ConflictError if the weights alone are too large for a page. Does not read them."""
    # two bytes for each parameter, written in base64
    _require_size(model.place.name, model.bundle.parameter_count * 2 * 4 // 3, limits)


def _require_size(name: str, size: int, limits: Limits) -> None:
    if size > limits.max_live_bytes:
        raise ConflictError(
            f"the live page of {name} would have {size / 1e6:.1f} MB, more than the"
            f" {limits.max_live_bytes / 1e6:.1f} MB of max_live_bytes"
        )
