"""The intermediates of a forward pass to keep or change, without hooks or state on a module."""

import fnmatch
from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import Tensor

Edit = Callable[[Tensor], Tensor]
"""Maps an intermediate to the tensor of the same shape that the pass continues with."""

_NO_EDITS: Mapping[str, Edit] = MappingProxyType({})


class Trace:
    """Collects, and optionally changes, named intermediates of one forward pass.

    Patterns are shell-style (``*`` spans dots): ``Trace("*.weights")`` keeps every matrix of
    attention weights. ``edits`` maps patterns to functions: an intermediate that matches is
    replaced by the result, and kept as replaced. Where a fast kernel never computes a wanted
    intermediate, the model takes the explicit path; a law test holds both to the same outputs.
    """

    def __init__(self, *patterns: str, edits: Mapping[str, Edit] = _NO_EDITS) -> None:
        self._exact = frozenset(pattern for pattern in patterns if not _has_wildcard(pattern))
        self._globs = tuple(pattern for pattern in patterns if _has_wildcard(pattern))
        self._edits = edits
        self._idle = not patterns and not edits
        self._prefix = ""
        self.values: dict[str, Tensor] = {}

    def under(self, name: str) -> "Trace":
        """The same collection for the part of the model called ``name``."""
        # the usual case: nothing is allocated for a pass that nobody traces
        if self._idle:
            return self
        inner = Trace()
        # the patterns and the collected values are shared with the outer trace
        inner._exact, inner._globs, inner._edits = self._exact, self._globs, self._edits
        inner._idle = False
        inner._prefix = f"{self._prefix}{name}."
        inner.values = self.values
        return inner

    def wants(self, *names: str) -> bool:
        """Whether any of these intermediates should be kept or changed."""
        if self._idle:
            return False
        full_names = [self._prefix + name for name in names]
        return any(self._keeps(name) or self._edits_of(name) for name in full_names)

    def keep(self, name: str, value: Tensor) -> Tensor:
        """Apply the edits to ``value``, keep the result if wanted, and return it."""
        if self._idle:
            return value
        full_name = self._prefix + name

        # edited first: what is kept is what the pass goes on with
        for edit in self._edits_of(full_name):
            value = edit(value)
        if self._keeps(full_name):
            self.values[full_name] = value
        return value

    def _keeps(self, full_name: str) -> bool:
        return full_name in self._exact or any(
            fnmatch.fnmatchcase(full_name, pattern) for pattern in self._globs
        )

    def _edits_of(self, full_name: str) -> list[Edit]:
        return [
            edit for pattern, edit in self._edits.items() if fnmatch.fnmatchcase(full_name, pattern)
        ]


def _has_wildcard(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


UNWATCHED = Trace()
"""The trace that keeps and changes nothing."""
