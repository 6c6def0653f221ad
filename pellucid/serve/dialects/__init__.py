"""Interfaces of other programs, so that their clients work with this server: each is a folder."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter

from pellucid.serve.http.docs import Sample
from pellucid.serve.schema import Bounds
from pellucid.serve.server.rules import Rulebook


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The routes of an interface, and what the guard and the OpenAPI document must know of them."""

    routers: Sequence[APIRouter]
    rules: Rulebook
    bounds: Bounds
    examples: Callable[[Sample], Mapping[str, Any]]
    """A body for each path that takes one, for the OpenAPI document."""
