"""Entries of a capture: named intermediates with their descriptions, and how names are selected."""

import dataclasses
import fnmatch
from collections.abc import Iterable

from torch import Tensor

from pellucid.core.errors import ConfigError
from pellucid.core.near_names import did_you_mean
from pellucid.inspection.notebook import html_matrix
from pellucid.inspection.parts import Part


@dataclasses.dataclass(frozen=True)
class Entry:
    """One intermediate of a forward pass with its description."""

    name: str
    tensor: Tensor
    """The values, without a batch axis."""
    part: Part
    words: tuple[tuple[str, ...] | None, ...] = ()
    """For each axis the tokens along it; None for an axis without tokens."""

    @property
    def axes(self) -> tuple[str, ...]:
        """A name for each axis; axes that end in ``token`` have words of the sentence."""
        return self.part.axes

    @property
    def equations(self) -> tuple[int, ...]:
        """Numbers in docs/EQUATIONS.md."""
        return self.part.equations

    @property
    def equation_names(self) -> str:
        """The equations, such as ``EQ-52, EQ-53``."""
        return self.part.equation_names

    @property
    def formula(self) -> str:
        """The formula in the symbols of the report; may be empty."""
        return self.part.formula

    @property
    def meaning(self) -> str:
        """A description of one or two sentences."""
        return self.part.meaning

    @property
    def shape_in_words(self) -> str:
        """The axes with their sizes, such as ``head 4 x target token 7 x source token 5``."""
        sizes = zip(self.axes, self.tensor.shape, strict=True)
        return " x ".join(f"{axis} {size}" for axis, size in sizes)

    def _repr_html_(self) -> str:
        caption = f"{self.name} ({self.shape_in_words}), {self.equation_names}. {self.meaning}"
        # A vector has one axis of words or none: padded so that the last two are rows and columns.
        words = (None, None, *self.words)
        return html_matrix(self.tensor, words[-2], words[-1], caption)


def select(described: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that match any pattern (shell-style, ``*`` spans dots), in their order.

    Raises ConfigError naming every pattern that matches nothing.
    """
    names, patterns = list(described), list(patterns)

    problems = []
    for pattern in patterns:
        # fnmatchcase and not fnmatch, which ignores case on some systems.
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            problems.append(f"{pattern!r}" + did_you_mean(pattern, names, " ({})"))

    if problems:
        raise ConfigError(
            f"each pattern must match an intermediate of this model, got {', '.join(problems)}",
            hint='names are dotted and * spans dots, as in "*.weights"',
        )

    return [
        name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


def locate(name: str) -> tuple[str, int | None]:
    """The name in the model's trace that holds ``name``, and the head; None for all heads."""
    stem, mark, rest = name.partition(".heads.")
    if not mark:
        return name, None
    # A head's output is captured as `heads.N.output`; the model stacks all of them as `heads`.
    head, _, part = rest.partition(".")
    return f"{stem}.{'heads' if part == 'output' else part}", int(head)
