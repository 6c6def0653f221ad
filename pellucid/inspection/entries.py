"""Intermediates of a forward pass, each with the part of the model that it is."""

import dataclasses
import fnmatch
from collections.abc import Iterable

from torch import Tensor

from pellucid.core.config import did_you_mean
from pellucid.core.errors import ConfigError
from pellucid.inspection.notebook import html_matrix
from pellucid.inspection.parts import Part


@dataclasses.dataclass(frozen=True)
class Entry:
    """One intermediate of one forward pass, with what it is."""

    name: str
    tensor: Tensor
    """Without an axis for the sentence."""
    part: Part
    words: tuple[tuple[str, ...] | None, ...] = ()
    """For each axis the tokens along it; None if it counts something else."""

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
        """Such as ``EQ-52, EQ-53``."""
        return self.part.equation_names

    @property
    def formula(self) -> str:
        """In the letters of the report; empty where the meaning says it all."""
        return self.part.formula

    @property
    def meaning(self) -> str:
        """A sentence or two."""
        return self.part.meaning

    @property
    def shape_in_words(self) -> str:
        """Such as ``head 4 x target token 7 x source token 5``."""
        sizes = zip(self.axes, self.tensor.shape, strict=True)
        return " x ".join(f"{axis} {size}" for axis, size in sizes)

    def _repr_html_(self) -> str:
        caption = f"{self.name} ({self.shape_in_words}), {self.equation_names}. {self.meaning}"
        words = (None, None, *self.words)
        return html_matrix(self.tensor, words[-2], words[-1], caption)


def select(described: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that match a pattern (shell-style, ``*`` spans dots), in their order.

    Raises ConfigError naming every pattern that matches nothing.
    """
    names, patterns = list(described), list(patterns)
    faults = []
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            faults.append(f"{pattern!r}" + did_you_mean(pattern, names, " ({})"))
    if faults:
        raise ConfigError(
            f"each pattern must match an intermediate of this model, got {', '.join(faults)}",
            hint='names are dotted and * spans dots, as in "*.cross_attention.weights"',
        )
    return [
        name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


def locate(name: str) -> tuple[str, int | None]:
    """Where the model keeps what is called ``name``: the name in its trace, and which head."""
    stem, mark, rest = name.partition(".heads.")
    if not mark:
        return name, None
    head, _, part = rest.partition(".")
    return f"{stem}.{'heads' if part == 'output' else part}", int(head)
