"""What to keep of a forward pass. Nothing is stored on a module, nothing is hooked."""

import fnmatch

from torch import Tensor


class Trace:
    """Collects the named intermediates of one forward pass that match a pattern.

    Patterns are shell-style (``*`` spans dots): ``Trace("*.weights")`` keeps every matrix of
    attention weights. A part of the model that is asked for what its fast twin never computes
    works in the open instead; by law the outputs are the same.
    """

    def __init__(self, *patterns: str) -> None:
        self._patterns = patterns
        self._prefix = ""
        self.values: dict[str, Tensor] = {}

    def under(self, name: str) -> "Trace":
        """The same collection, seen from the part of the model called ``name``."""
        if not self._patterns:
            return self
        inner = Trace(*self._patterns)
        inner._prefix = f"{self._prefix}{name}."
        inner.values = self.values
        return inner

    def wants(self, *names: str) -> bool:
        """Whether any of these intermediates is to be kept."""
        return any(
            fnmatch.fnmatchcase(self._prefix + name, pattern)
            for pattern in self._patterns
            for name in names
        )

    def keep(self, name: str, value: Tensor) -> None:
        """Keep ``value`` under its full name if it was asked for."""
        if self._patterns and self.wants(name):
            self.values[self._prefix + name] = value


UNWATCHED = Trace()
"""The trace that wants nothing."""
