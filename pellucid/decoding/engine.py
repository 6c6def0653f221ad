"""The interface of engines, the part of a translator that finds hypotheses; imports no torch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pellucid.decoding.config import DecodingConfig
from pellucid.decoding.requests import ReadLine, Translatable
from pellucid.decoding.result import Hypothesis

if TYPE_CHECKING:
    from pellucid.decoding.search.candidates import WatchedStep

_FEWEST_TOKENS = 256
"""Batches are not made smaller than this for more workers, as their products would be too small."""


class SearchWatcher(Protocol):
    """Called by a search at every step; an exception that it raises ends the search."""

    @property
    def needs_steps(self) -> bool:
        """Whether ``saw_step`` is called; if not, watching costs nothing."""
        ...

    def before_step(self, length: int) -> None:
        """Called before the model reads token number ``length``, counted from 0.

        Batches that are searched in parallel call it from several threads, unless
        ``needs_steps``. Raises CancelledError to end the search.
        """
        ...

    def saw_step(self, step: "WatchedStep") -> None:
        """Called after each step if ``needs_steps``."""
        ...


class Engine(ABC):
    """Finds the hypotheses of lines; safe to call from several threads."""

    @property
    @abstractmethod
    def name(self) -> str:
        """``torch`` or ``ctranslate2``."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why this engine was chosen, in a few words."""

    @abstractmethod
    def signature(self, settings: DecodingConfig) -> str:
        """The engine and type for ``settings``, as in a score: ``torch``, ``ctranslate2/int8``."""

    @abstractmethod
    def thread_count(self, settings: DecodingConfig) -> int:
        """How many threads share the lines of a search with ``settings``.

        Batches are made for them, so it can change how scores are rounded.
        """

    @abstractmethod
    def follow(self, bundle: Translatable) -> None:
        """Called before the model of ``bundle`` is given to a caller, who may change it.

        From then on every search uses the model in its current state.
        """

    @abstractmethod
    def search(
        self,
        lines: Sequence[ReadLine],
        bundle: Translatable,
        settings: DecodingConfig,
        watcher: SearchWatcher | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each line, best first, in the order of the lines; none is blank.

        Raises ConfigError naming everything in ``settings`` that this engine cannot do, and what
        the ``watcher`` raises.
        """


def token_batches(
    lengths: Sequence[int], token_budget: int, at_least: int = 1
) -> Iterator[list[int]]:
    """Indices, longest first, in batches of rows · (longest + stop) <= ``token_budget``.

    The longest come first, so that memory runs out at once or not at all. Where that would be
    fewer than ``at_least``, the batches are made smaller, within reason.
    """
    # rounded up, with the stop of each line
    share = -(-sum(length + 1 for length in lengths) // at_least)
    token_budget = min(token_budget, max(share, _FEWEST_TOKENS))

    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        # the first line of a batch is its longest, to which all others are padded
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
