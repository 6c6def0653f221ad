"""Names that resemble a misspelt one."""

import difflib
from collections.abc import Iterable

ALIKE = 0.6
"""How similar two names must be; ``difflib.get_close_matches`` has this value too."""


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The valid name closest to a misspelt one, or None if nothing is close."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=ALIKE)
    return close[0] if close else None


def did_you_mean(name: str, names: Iterable[str], around: str = "{}") -> str:
    """``did you mean NAME?`` for the valid name closest to a misspelt one, else nothing.

    ``around`` is what stands about it in a longer message, such as ``; {}`` or `` ({})``.
    """
    nearest = nearest_name(name, names)
    return around.format(f"did you mean {nearest}?") if nearest else ""
