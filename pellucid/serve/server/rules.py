"""The rules of a path for the guard: who needs a key, where it may be, how a body is read.

The guard itself knows no path. Each interface names the rules of its own, and ``Rulebook`` finds
them.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pellucid.serve.server.body import Received, read_json
from pellucid.serve.server.errors import PROBLEM_JSON, ErrorForm
from pellucid.serve.server.limits import ServerLimits

Read = Callable[[Received, ServerLimits], Any]
"""Parses a body. Raises RefusedError, and InvalidError with the names of wrong fields."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules for requests to a path."""

    read: Read = read_json
    """The value of the body, which the route finds in the state of the request."""
    needs_key: bool = True
    no_key_status: int = 401
    """The status for a missing or wrong key."""
    asks_in_browser: bool = False
    """Whether a browser that has no key is made to ask for one: any name, the key as password."""
    takes_query: bool = False
    """Whether fields, the key among them, may be in the query string."""
    takes_key_in_body: bool = False
    """Whether the key may be a field of the body, even of a GET."""
    reads_get: bool = False
    """Whether a GET may have fields in its body."""
    is_upload: bool = False
    """Whether the body is a file: larger than others, and few at a time."""
    is_secret: bool = False
    """Whether the end of the path must not be logged."""
    errors: ErrorForm = PROBLEM_JSON
    """How clients read problems."""


ORDINARY = Rules()
OPEN = Rules(needs_key=False)
"""The rules of paths that hold no data."""


@dataclasses.dataclass(frozen=True)
class Rulebook:
    """The rules of all paths."""

    exact: Mapping[str, Rules] = dataclasses.field(default_factory=dict)
    beginnings: Mapping[str, Rules] = dataclasses.field(default_factory=dict)
    """Rules of the paths that begin so and are not in ``exact``."""

    def of(self, path: str) -> Rules:
        """The rules of a path; ``ORDINARY`` for one that nobody named."""
        found = self.exact.get(path)
        if found is not None:
            return found
        named = (rules for start, rules in self.beginnings.items() if path.startswith(start))
        return next(named, ORDINARY)

    def __or__(self, other: "Rulebook") -> "Rulebook":
        return Rulebook({**self.exact, **other.exact}, {**self.beginnings, **other.beginnings})
